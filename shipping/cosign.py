"""Signatures and attestations as cosign verifies them with a key.

Their forms are those of https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md and ATTESTATION_SPEC.md:
layers of a manifest under the tag `sha256-DIGEST.sig` or `.att`. The manifest also names its subject, so that a
registry lists it among the referrers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

from hermetic.signing.canonical_json import canonical
from hermetic.signing.envelope import Envelope, signed_bytes
from hermetic.signing.signatures import sign
from shipping.oci_artifacts import Artifact, Blob, referrer
from shipping.signer import Signer
from testbed.images.oci import CONFIG, as_json, digest_of

SIGNATURE_TYPE = "application/vnd.dev.cosign.artifact.sig.v1+json"
ATTESTATION_TYPE = "application/vnd.dev.cosign.artifact.att.v1+json"
PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
ENVELOPE_TYPE = "application/vnd.dsse.envelope.v1+json"
SIGNATURE = "dev.cosignproject.cosign/signature"
PREDICATE = "predicateType"


def cosign_signature(signer: Signer, repository: str, subject: bytes) -> Artifact:
    """The signature of a manifest; `repository` is only told, cosign compares the digest."""
    critical = {
        "identity": {"docker-reference": repository},
        "image": {"docker-manifest-digest": digest_of(subject)},
        "type": "cosign container image signature",
    }
    payload = as_json({"critical": critical, "optional": None})
    signature = base64.b64encode(sign(signer.key, payload)).decode()
    return _under_tag(SIGNATURE_TYPE, subject, "sig", [Blob(PAYLOAD_TYPE, payload, {SIGNATURE: signature})])


def cosign_attestations(subject: bytes, envelopes: Mapping[str, Envelope]) -> Artifact:
    """Signed statements about a manifest, by their predicate types."""
    blobs = [
        Blob(ENVELOPE_TYPE, envelope.as_bytes(), {SIGNATURE: "", PREDICATE: predicate})
        for predicate, envelope in envelopes.items()
    ]
    return _under_tag(ATTESTATION_TYPE, subject, "att", blobs)


def signed_statement(signer: Signer, statement: Mapping[str, Any]) -> Envelope:
    """The DSSE envelope of an in-toto statement."""
    payload = canonical(dict(statement))
    return Envelope(payload, signer.key.public.keyid, sign(signer.key, signed_bytes(payload)))


def _under_tag(kind: str, subject: bytes, suffix: str, blobs: Iterable[Blob]) -> Artifact:
    layers = tuple(blobs)
    roots = {"type": "layers", "diff_ids": [blob.digest for blob in layers]}
    config = Blob(CONFIG, as_json({"architecture": "", "os": "", "config": {}, "rootfs": roots}))
    tag = f"{digest_of(subject).replace(':', '-')}.{suffix}"
    return referrer(kind, subject, layers, config=config, tag=tag)

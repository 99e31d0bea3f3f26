"""The form of an air-gap bundle: one tar that is an OCI layout, with chart, command line, CRDs, manifests and SBOMs.

::

    SHA256SUMS                      every other file, as `sha256sum --check` reads it
    signature.json                  optional: DSSE around an in-toto statement whose subject is SHA256SUMS
    SHA256SUMS.sig                  optional: signature of the same key over SHA256SUMS itself, for openssl
    bundle.json                     version, image, chart and the commit of the sources (description.py)
    oci-layout, index.json, blobs/  the operator's image
    artifacts/                      the chart as a registry has it, SBOM, provenance and signatures (artifacts.py)
    chart/ cli/ crds/ manifests/ docs/ sbom/ and README.md, CHANGELOG.md, LICENSE, SECURITY.md

`python -m shipping bundle` writes it, `hermetic bundle verify` reads it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from hermetic.audit.attestation.statement import STATEMENT_TYPE
from hermetic.errors import BundleRefused, EnvelopeRefused
from hermetic.signing.canonical_json import canonical, read_canonical_json
from hermetic.signing.envelope import Envelope, signed_bytes
from hermetic.signing.keys import PublicKey, SigningKey, TrustedKeys
from hermetic.signing.signatures import is_signed_by, key_named_by, matches, must_be_well_formed, sign

PREDICATE_TYPE = "https://hermetic.dev/attestation/bundle/v1"
SCHEMA = "hermetic.dev/bundle/v1"
CHECKSUMS, SIGNATURE, DESCRIPTION, INDEX, LAYOUT = (
    "SHA256SUMS",
    "signature.json",
    "bundle.json",
    "index.json",
    "oci-layout",
)
PLAIN_SIGNATURE = f"{CHECKSUMS}.sig"
ARTIFACTS = "artifacts/"
BLOBS, COMMAND_LINES = "blobs/sha256/", "cli/"
FILES = frozenset(
    {
        *(CHECKSUMS, SIGNATURE, PLAIN_SIGNATURE, DESCRIPTION, INDEX, LAYOUT),
        *("README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"),
        *(f"{ARTIFACTS}{name}" for name in (INDEX, LAYOUT)),
    }
)
FOLDERS = (BLOBS, f"{ARTIFACTS}{BLOBS}", COMMAND_LINES, "chart/", "crds/", "manifests/", "docs/", "sbom/")
NOT_IN_CHECKSUMS = frozenset({CHECKSUMS, SIGNATURE, PLAIN_SIGNATURE})

_ROOTS = (*FOLDERS, ARTIFACTS)
_NAME = re.compile(r"(?!.*(?:^|/)\.{1,2}(?:/|$))[A-Za-z0-9._+-]+(?:/[A-Za-z0-9._+-]+)*")
_LINE = re.compile(r"(?P<sha256>[0-9a-f]{64})  (?P<name>\S+)")


def is_name(name: str) -> bool:
    """Whether a bundle may contain a file of this name: relative, plain, and in a place that the layout has."""
    return bool(_NAME.fullmatch(name)) and (name in FILES or name.startswith(FOLDERS))


def is_folder_name(name: str) -> bool:
    """Whether a bundle may contain files below a folder of this name."""
    return bool(_NAME.fullmatch(name)) and any(
        f"{name}/".startswith(root) or root.startswith(f"{name}/") for root in _ROOTS
    )


def checksums(digests: Mapping[str, str]) -> bytes:
    """The content of SHA256SUMS for SHA-256 sums by name."""
    return "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()


def read_checksums(content: bytes) -> dict[str, str]:
    """The sums by name. Raises BundleRefused where the bytes differ from those that `checksums` writes."""
    lines = [_LINE.fullmatch(line) for line in content.decode("ascii", errors="replace").splitlines()]
    digests = {line["name"]: line["sha256"] for line in lines if line is not None}
    if checksums(digests) != content:
        raise BundleRefused(f"{CHECKSUMS} is not a sorted list of 'SHA-256  NAME' in which every name occurs once")
    return digests


def sign_checksums(content: bytes, version: str, key: SigningKey, revision: str = "") -> Envelope:
    """The signature of a bundle of this revision with this SHA256SUMS."""
    payload = canonical(_statement(content, version, revision))
    return Envelope(payload, key.public.keyid, sign(key, signed_bytes(payload)))


def signer(envelope: Envelope, content: bytes, version: str, trusted: TrustedKeys, revision: str = "") -> PublicKey:
    """The trusted key that signed this SHA256SUMS. Raises EnvelopeRefused and BundleRefused."""
    key = key_named_by(envelope, trusted)
    if not is_signed_by(key, envelope):
        raise BundleRefused(f"{SIGNATURE}: the signature does not match the payload and the key '{key.name}'")
    if read_canonical_json(envelope.payload, SIGNATURE) != _statement(content, version, revision):
        raise BundleRefused(f"{SIGNATURE} is a signature of '{key.name}' over something else than this {CHECKSUMS}")
    return key


def must_be_signed_by(key: PublicKey, content: bytes, signature: bytes) -> None:
    """Raises BundleRefused unless this is the key's signature over SHA256SUMS itself, as openssl verifies it."""
    try:
        must_be_well_formed(key.algorithm, signature)
    except EnvelopeRefused as refusal:
        raise BundleRefused(f"{PLAIN_SIGNATURE}: {refusal.refusal}: {refusal.message}") from refusal
    if not matches(key, content, signature):
        raise BundleRefused(f"{PLAIN_SIGNATURE} is not a signature of the key '{key.name}' over {CHECKSUMS}")


def _statement(content: bytes, version: str, revision: str) -> dict[str, Any]:
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": CHECKSUMS, "digest": {"sha256": hashlib.sha256(content).hexdigest()}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"version": version, **({"revision": revision} if revision else {})},
    }

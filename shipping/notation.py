"""Signatures as Notation, Ratify and the image integrity of AKS verify them: JWS envelopes with X.509 certificates.

Forms: https://github.com/notaryproject/specifications/blob/main/specs/signature-specification.md and
signature-envelope-jws.md. The signature is ES256 of RFC 7518: r and s of P-256 with 32 bytes each.
"""

from __future__ import annotations

import base64
import json
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

from hermetic import __version__
from hermetic.signing.signatures import sign
from shipping.oci_artifacts import Artifact, Blob, referrer, subject_of
from shipping.signer import Signer
from testbed.images.oci import CREATED, as_json

KIND = "application/vnd.cncf.notary.signature"
ENVELOPE_TYPE = "application/jose+json"
PAYLOAD_TYPE = "application/vnd.cncf.notary.payload.v1+json"
SCHEME, SIGNING_TIME, AGENT = (f"io.cncf.notary.{name}" for name in ("signingScheme", "signingTime", "signingAgent"))
THUMBPRINTS = "io.cncf.notary.x509chain.thumbprint#S256"
_NUMBER_BYTES = 32


def notation_signature(signer: Signer, subject: bytes, moment: datetime) -> Artifact:
    """The signature of a manifest, made at `moment` if the certificate was valid then."""
    time = signer.signing_time(moment).strftime("%Y-%m-%dT%H:%M:%SZ")
    protected = _encoded(
        as_json(
            {
                "alg": "ES256",
                "cty": PAYLOAD_TYPE,
                "crit": [SCHEME],
                SCHEME: "notary.x509",
                SIGNING_TIME: time,
            }
        )
    )
    payload = _encoded(as_json({"targetArtifact": subject_of(subject)}))
    envelope = {
        "payload": payload,
        "protected": protected,
        "header": {
            "x5c": [base64.b64encode(certificate.public_bytes(Encoding.DER)).decode() for certificate in signer.chain],
            AGENT: f"hermetic/{__version__}",
        },
        "signature": _encoded(_es256(signer, f"{protected}.{payload}".encode())),
    }
    thumbprints = [certificate.fingerprint(SHA256()).hex() for certificate in signer.chain]
    return referrer(
        KIND,
        subject,
        (Blob(ENVELOPE_TYPE, as_json(envelope)),),
        config=Blob(KIND, b"{}"),
        annotations={THUMBPRINTS: json.dumps(thumbprints, separators=(",", ":")), CREATED: time},
    )


def _es256(signer: Signer, content: bytes) -> bytes:
    return b"".join(number.to_bytes(_NUMBER_BYTES) for number in decode_dss_signature(sign(signer.key, content)))


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

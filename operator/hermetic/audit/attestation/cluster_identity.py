"""What identifies a cluster, beside its ARM id; the jump box and the operator must compute the same value."""

from __future__ import annotations

import hashlib

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificates


def ca_fingerprint(pem: bytes) -> str:
    """SHA-256 of the API server's CA certificate in DER, as "sha256:" and hexadecimal digits.

    `pem` is `certificate-authority-data` of a kubeconfig, or `ca.crt` of a service account. Of several certificates the
    sorted digests are hashed, so that their order does not matter. Raises ValueError where there is none.
    """
    digests = sorted(
        {
            hashlib.sha256(certificate.public_bytes(Encoding.DER)).digest()
            for certificate in load_pem_x509_certificates(pem)
        }
    )
    if len(digests) == 1:
        return f"sha256:{digests[0].hex()}"
    return f"sha256:{hashlib.sha256(b''.join(digests)).hexdigest()}"

"""The key that signs a release, and its certificates for programs that trust certificates."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.x509 import Certificate, load_pem_x509_certificates

from hermetic.cli.attest.files import load_signing_key
from hermetic.signing.keys import Algorithm, SigningKey
from testbed.errors import BuildError


@dataclass(frozen=True)
class Signer:
    """A private key; `chain` are its certificates, its own first, empty where Notation needs no signature."""

    key: SigningKey
    chain: tuple[Certificate, ...] = ()

    def signing_time(self, moment: datetime) -> datetime:
        """A time at which the first certificate is valid: the given one, or its first second."""
        return max(moment, self.chain[0].not_valid_before_utc)


def load_signer(key: Path, certificates: Path | None = None) -> Signer:
    """The key of a PEM file, with a chain of certificates. Raises BuildError where they do not belong together."""
    signing_key = load_signing_key(key)
    if certificates is None:
        return Signer(signing_key)
    try:
        chain = tuple(load_pem_x509_certificates(certificates.read_bytes()))
    except (OSError, ValueError) as error:
        raise BuildError(f"--certificate {certificates}: holds no certificates in PEM: {error}") from error
    if signing_key.public.algorithm is not Algorithm.P256:
        raise BuildError(f"--sign {key}: Notation knows no Ed25519; sign with a key of P-256")
    public = chain[0].public_key()
    if not isinstance(public, EllipticCurvePublicKey | Ed25519PublicKey) or public != signing_key.public.key:
        raise BuildError(f"--certificate {certificates}: the first certificate is not one of the key {key}")
    return Signer(signing_key, chain)

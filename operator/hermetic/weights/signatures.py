"""Signatures of Model Signing v1.0: ECDSA over P-256, P-384 or P-521, by a key or by a certificate.

The curve decides the hash: SHA-256, SHA-384, SHA-512. The signed content is a stream of bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from hermetic.errors import SigningKeyUnusable
from hermetic.signing.keys import load_private_key

_HASHES: dict[type, type[hashes.HashAlgorithm]] = {
    SECP256R1: hashes.SHA256,
    SECP384R1: hashes.SHA384,
    SECP521R1: hashes.SHA512,
}
LARGEST_PEM = 2**20


@dataclass(frozen=True, slots=True)
class TrustedSigner:
    """A public key whose signatures count. `name` is for messages, `hint` is how a bundle names it."""

    name: str
    key: EllipticCurvePublicKey
    hint: str


def public_key(name: str, pem: bytes) -> TrustedSigner:
    """The key of a PEM text. Raises SigningKeyUnusable."""
    if b"PRIVATE" in pem:
        raise SigningKeyUnusable(f"{name}: is a private key", fix="openssl ec -in KEY -pubout")
    try:
        key = load_pem_public_key(pem[:LARGEST_PEM])
    except (ValueError, UnsupportedAlgorithm):
        raise SigningKeyUnusable(f"{name}: holds no public key in PEM that can be read") from None
    return TrustedSigner(name, _supported(name, key), hint_of(_supported(name, key)))


def private_key(name: str, pem: bytes, passphrase: bytes | None) -> EllipticCurvePrivateKey:
    """The key of a PEM text. Raises SigningKeyUnusable."""
    key = load_private_key(name, pem[:LARGEST_PEM], passphrase, SigningKeyUnusable)
    if not isinstance(key, EllipticCurvePrivateKey):
        raise SigningKeyUnusable(f"{name}: is not an elliptic curve key")
    _supported(name, key.public_key())
    return key


def hint_of(key: EllipticCurvePublicKey) -> str:
    """How a bundle names a key: the SHA-256 of its PEM, in hexadecimal."""
    return hashlib.sha256(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def digest_of(key: EllipticCurvePublicKey, content: Iterable[bytes]) -> bytes:
    """The digest of the signed content, with the hash of the key's curve."""
    digest = running_digest(key)
    for piece in content:
        digest.update(piece)
    return digest.finalize()


def running_digest(key: EllipticCurvePublicKey) -> hashes.Hash:
    """The same hash, to be updated by the caller."""
    return hashes.Hash(_hash_of(key))


def sign(key: EllipticCurvePrivateKey, digest: bytes) -> bytes:
    """The signature over a digest of `digest_of`, in DER."""
    return key.sign(digest, ECDSA(Prehashed(_hash_of(key.public_key()))))


def is_signed(key: EllipticCurvePublicKey, signature: bytes, digest: bytes) -> bool:
    """Whether the signature is one of this key over the digest of `digest_of`."""
    try:
        key.verify(signature, digest, ECDSA(Prehashed(_hash_of(key))))
    except InvalidSignature:
        return False
    return True


def is_supported(key: object) -> TypeGuard[EllipticCurvePublicKey]:
    """Whether it is an elliptic curve key of one of the three curves."""
    return isinstance(key, EllipticCurvePublicKey) and type(key.curve) in _HASHES


def _supported(name: str, key: object) -> EllipticCurvePublicKey:
    if not is_supported(key):
        explanation = "Model Signing v1.0 signs with P-256, P-384 or P-521"
        raise SigningKeyUnusable(
            f"{name}: is a key of another kind; {explanation}", fix="openssl ecparam -name prime256v1 -genkey -noout"
        )
    return key


def _hash_of(key: EllipticCurvePublicKey) -> hashes.HashAlgorithm:
    return _HASHES[type(key.curve)]()

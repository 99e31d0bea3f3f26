"""Keys: Ed25519 and P-256, from PEM. The algorithm follows from the key, never from the envelope.

The id of a key is "sha256:" and the SHA-256 of its SubjectPublicKeyInfo in DER, as
`openssl pkey -pubin -in KEY -outform DER | sha256sum` prints it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    SECP384R1,
    SECP521R1,
    EllipticCurvePrivateKey,
    EllipticCurvePublicKey,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from hermetic.errors import InputError, KeyUnusable

PublicHalf: TypeAlias = Ed25519PublicKey | EllipticCurvePublicKey
PrivateHalf: TypeAlias = Ed25519PrivateKey | EllipticCurvePrivateKey

_ONE_PUBLIC_KEY = re.compile(r"\s*-----BEGIN PUBLIC KEY-----[A-Za-z0-9+/=\s]+-----END PUBLIC KEY-----\s*")
_LARGEST_PEM = 8192

# Y-coordinates (little-endian) of the points whose order divides 8: for such a key, signatures can be forged.
# 0 and 1 are given with their aliases p and p + 1; the sign bit of x does not count. p = 2**255 - 19.
_P = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
WEAK_POINTS = frozenset({0, 1, _P - 1, _P, _P + 1, _ORDER_8, _P - _ORDER_8})


class Algorithm(StrEnum):
    """The algorithm of a key."""

    ED25519 = "Ed25519"
    P256 = "ECDSA P-256 with SHA-256"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key whose signatures count. `name` is for messages; attestations observed after `not_after` do not count."""

    name: str
    key: PublicHalf
    keyid: str
    algorithm: Algorithm
    not_after: datetime | None = None


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key, and its public half."""

    key: PrivateHalf
    public: PublicKey

    def __repr__(self) -> str:
        return f"SigningKey({self.public.keyid})"


TrustedKeys: TypeAlias = Mapping[str, PublicKey]
"""Public keys by their id."""


def trusted(keys: Iterable[PublicKey]) -> TrustedKeys:
    """The keys by their id. Raises KeyUnusable where one key is given twice."""
    by_id: dict[str, PublicKey] = {}
    for key in keys:
        if (same := by_id.get(key.keyid)) is not None:
            raise KeyUnusable(f"'{same.name}' and '{key.name}' are the same key", fix="give every key once")
        by_id[key.keyid] = key
    return MappingProxyType(by_id)


def read_public_key(name: str, pem: str, *, not_after: datetime | None = None) -> PublicKey:
    """The key of a PEM text that holds one public key and nothing else. Raises KeyUnusable."""
    if "PRIVATE" in pem:
        raise KeyUnusable(f"{name}: is a private key; a public key is wanted", fix="openssl pkey -in KEY -pubout")
    if len(pem) > _LARGEST_PEM or not _ONE_PUBLIC_KEY.fullmatch(pem):
        raise KeyUnusable(f"{name}: is not one public key in PEM ('-----BEGIN PUBLIC KEY-----') and nothing else")
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(f"{name}: holds no public key that can be read: {error}") from None
    return _public(name, key, not_after)


def is_ecdsa_public_key(pem: str) -> bool:
    """Whether the text is one P-256, P-384 or P-521 public key in PEM: those that sign manifests of weights."""
    if not _ONE_PUBLIC_KEY.fullmatch(pem):
        return False
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, UnsupportedAlgorithm):
        return False
    return isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1 | SECP384R1 | SECP521R1)


def read_signing_key(name: str, pem: str, passphrase: bytes | None = None) -> SigningKey:
    """The key of a PEM text that holds a private key, encrypted when `passphrase` is given. Raises KeyUnusable."""
    key = load_private_key(name, pem.encode(), passphrase, KeyUnusable)
    if not isinstance(key, Ed25519PrivateKey | EllipticCurvePrivateKey):
        raise KeyUnusable(f"{name}: is a key of another algorithm than Ed25519 or P-256")
    return SigningKey(key, _public(name, key.public_key(), None))


def load_private_key(name: str, pem: bytes, passphrase: bytes | None, unusable: type[InputError]) -> PrivateKeyTypes:
    """The private key of a PEM text, of any algorithm. Raises `unusable`."""
    try:
        return load_pem_private_key(pem, passphrase)
    except TypeError:
        wants = "is encrypted, and no passphrase was given" if passphrase is None else "is not encrypted"
        raise unusable(f"{name}: {wants}", fix="set HERMETIC_SIGNING_PASSPHRASE exactly for an encrypted key") from None
    except (ValueError, UnsupportedAlgorithm):
        # the text of the error could quote the file's content
        raise unusable(f"{name}: holds no private key that can be read, or the passphrase is wrong") from None


def _public(name: str, key: object, not_after: datetime | None) -> PublicKey:
    if isinstance(key, Ed25519PublicKey):
        _must_be_strong(name, key)
        return PublicKey(name, key, _keyid(key), Algorithm.ED25519, not_after)
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return PublicKey(name, key, _keyid(key), Algorithm.P256, not_after)
    raise KeyUnusable(f"{name}: is a key of another algorithm than Ed25519 or P-256")


def _must_be_strong(name: str, key: Ed25519PublicKey) -> None:
    y = int.from_bytes(key.public_bytes_raw(), "little") & ~(1 << 255)
    if y in WEAK_POINTS:
        raise KeyUnusable(f"{name}: is a point of small order: anybody could sign for it")


def _keyid(key: PublicHalf) -> str:
    return "sha256:" + hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

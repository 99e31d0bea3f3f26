"""Signatures of Model Signing v1.0: ECDSA over P-256, P-384 or P-521, by a key or by a certificate.

The curve decides the hash: SHA-256, SHA-384, SHA-512. The signed content is a stream of bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cryptography import x509
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
    load_pem_private_key,
    load_pem_public_key,
)
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import SigningKeyUnusable
from hermetic.weights.findings import WeightsFinding

_HASHES: dict[type, type[hashes.HashAlgorithm]] = {
    SECP256R1: hashes.SHA256,
    SECP384R1: hashes.SHA384,
    SECP521R1: hashes.SHA512,
}
_LARGEST_PEM = 2**20
_TIME = "%Y-%m-%dT%H:%M:%SZ"


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
        key = load_pem_public_key(pem[:_LARGEST_PEM])
    except (ValueError, UnsupportedAlgorithm):
        raise SigningKeyUnusable(f"{name}: holds no public key in PEM that can be read") from None
    return TrustedSigner(name, _supported(name, key), hint_of(_supported(name, key)))


def private_key(name: str, pem: bytes, passphrase: bytes | None) -> EllipticCurvePrivateKey:
    """The key of a PEM text. Raises SigningKeyUnusable."""
    try:
        key = load_pem_private_key(pem[:_LARGEST_PEM], passphrase)
    except TypeError:
        wants = "is encrypted, and no passphrase was given" if passphrase is None else "is not encrypted"
        raise SigningKeyUnusable(
            f"{name}: {wants}", fix="set HERMETIC_SIGNING_PASSPHRASE for an encrypted key"
        ) from None
    except (ValueError, UnsupportedAlgorithm):
        # the text of the error could quote the file's content
        raise SigningKeyUnusable(f"{name}: holds no private key that can be read, or the passphrase is wrong") from None
    if not isinstance(key, EllipticCurvePrivateKey):
        raise SigningKeyUnusable(f"{name}: is no elliptic curve key")
    _supported(name, key.public_key())
    return key


def certificates(name: str, pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM text, at least one. Raises SigningKeyUnusable."""
    try:
        return x509.load_pem_x509_certificates(pem[:_LARGEST_PEM])
    except ValueError:
        raise SigningKeyUnusable(f"{name}: holds no certificate in PEM that can be read") from None


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


def key_of_chain(
    chain: Sequence[bytes], roots: Sequence[x509.Certificate], now: datetime
) -> EllipticCurvePublicKey | WeightsFinding:
    """The key of the first certificate of a chain (DER) that leads to a root and may sign at `now`; else why not."""
    try:
        leaf, *others = [x509.load_der_x509_certificate(each) for each in chain]
        key = leaf.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, "", found="a certificate that cannot be read")
    for each in (leaf, *others):
        if not each.not_valid_before_utc <= now <= each.not_valid_after_utc:
            valid = f"valid from {each.not_valid_before_utc:{_TIME}} to {each.not_valid_after_utc:{_TIME}}"
            subject = each.subject.rfc4514_string()
            return WeightsFinding(
                WeightsReason.CERTIFICATE_EXPIRED, subject, valid, f"{now:%Y-%m-%dT%H:%M:%SZ} (clock of this machine)"
            )
    if not _may_sign(leaf) or not isinstance(key, EllipticCurvePublicKey) or type(key.curve) not in _HASHES:
        what = "a certificate that may not sign: neither digitalSignature nor code signing, or no supported key"
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, leaf.subject.rfc4514_string(), found=what)
    try:
        _verifier(roots, now).verify(leaf, others)
    except verification.VerificationError as error:
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, leaf.subject.rfc4514_string(), found=str(error))
    return key


def _verifier(roots: Sequence[x509.Certificate], now: datetime) -> verification.ClientVerifier:
    """A verifier by RFC 5280: a signer's certificate needs neither the extensions nor the names of web servers."""
    authority = verification.ExtensionPolicy.permit_all().require_present(
        x509.BasicConstraints, verification.Criticality.AGNOSTIC, _must_be_authority
    )
    builder = verification.PolicyBuilder().store(verification.Store(list(roots))).time(now)
    builder = builder.extension_policies(ee_policy=verification.ExtensionPolicy.permit_all(), ca_policy=authority)
    return builder.build_client_verifier()


def _must_be_authority(_policy: Any, _certificate: x509.Certificate, constraints: x509.BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("a certificate of the chain is no authority")


def _may_sign(leaf: x509.Certificate) -> bool:
    try:
        if leaf.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature:
            return True
    except (x509.ExtensionNotFound, ValueError):
        pass
    try:
        usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return False
    return ExtendedKeyUsageOID.CODE_SIGNING in usage


def _supported(name: str, key: object) -> EllipticCurvePublicKey:
    if not isinstance(key, EllipticCurvePublicKey) or type(key.curve) not in _HASHES:
        what = "Model Signing v1.0 signs with P-256, P-384 or P-521"
        raise SigningKeyUnusable(
            f"{name}: is a key of another kind; {what}", fix="openssl ecparam -name prime256v1 -genkey -noout"
        )
    return key


def _hash_of(key: EllipticCurvePublicKey) -> hashes.HashAlgorithm:
    return _HASHES[type(key.curve)]()

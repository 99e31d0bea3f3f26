"""Signatures, in the only encoding that is accepted for each algorithm.

Ed25519: the 64 bytes of RFC 8032. P-256: ECDSA with SHA-256, an ASN.1 DER sequence of r and s, in the shortest form,
with s in the lower half of the order: otherwise a second valid signature could be derived from the first.
"""

from __future__ import annotations

from typing import NoReturn

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from hermetic.signing.envelope import Envelope, signed_bytes
from hermetic.signing.faults import EnvelopeFault, refused
from hermetic.signing.keys import Algorithm, PublicKey, SigningKey, TrustedKeys

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ED25519_BYTES = 64

_MAC_BYTES = (32, 48)  # HMAC with SHA-256 or SHA-384 (SHA-512 has the 64 bytes of Ed25519 and fails as such)
_SEQUENCE = 0x30


def sign(key: SigningKey, message: bytes) -> bytes:
    """The signature over the message, in the encoding above."""
    if isinstance(key.key, Ed25519PrivateKey):
        return key.key.sign(message)
    # RFC 6979: deterministic, so the same report gives the same bytes, and poor randomness cannot reveal the key
    r, s = decode_dss_signature(key.key.sign(message, ECDSA(SHA256(), deterministic_signing=True)))
    return encode_dss_signature(r, min(s, P256_ORDER - s))


def must_be_well_formed(algorithm: Algorithm, signature: bytes) -> None:
    """Raises EnvelopeRefused for bytes that cannot be a signature of this algorithm, for any key and message."""
    if algorithm is Algorithm.ED25519:
        _must_be_ed25519(signature)
    else:
        _must_be_p256(signature)


def matches(key: PublicKey, message: bytes, signature: bytes) -> bool:
    """Whether the (well-formed) signature is one of this key over the message."""
    try:
        if isinstance(key.key, Ed25519PublicKey):
            key.key.verify(signature, message)
        else:
            key.key.verify(signature, message, ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True


def _must_be_ed25519(signature: bytes) -> None:
    if len(signature) == ED25519_BYTES:
        return
    if _der_numbers(signature) is not None:
        _refuse_confusion("an ECDSA signature", Algorithm.ED25519)
    _refuse_form(signature, Algorithm.ED25519, cut=len(signature) < ED25519_BYTES)


def _must_be_p256(signature: bytes) -> None:
    numbers = _der_numbers(signature)
    if numbers is None:
        if len(signature) == ED25519_BYTES:
            _refuse_confusion("64 bytes, as of Ed25519 or of r and s without DER", Algorithm.P256)
        _refuse_form(signature, Algorithm.P256, cut=_is_cut_der(signature))
    r, s = numbers
    if not (0 < r < P256_ORDER and 0 < s < P256_ORDER):
        raise refused(EnvelopeFault.BAD_SIGNATURE, "the signature's numbers are out of the range of P-256")
    if s > P256_ORDER // 2:
        raise refused(
            EnvelopeFault.BAD_SIGNATURE, "the signature is the second form (high s) of another: only low s counts"
        )


def _refuse_form(signature: bytes, algorithm: Algorithm, *, cut: bool) -> NoReturn:
    if len(signature) in _MAC_BYTES:
        _refuse_confusion(f"{len(signature)} bytes, as of a shared-secret code", algorithm)
    refusal = EnvelopeFault.TRUNCATED if cut else EnvelopeFault.BAD_SIGNATURE
    raise refused(refusal, f"the signature has {len(signature)} bytes, which are not a signature by {algorithm}")


def _refuse_confusion(actual: str, algorithm: Algorithm) -> NoReturn:
    raise refused(
        EnvelopeFault.ALGORITHM_CONFUSION, f"the signature is {actual}; the key that is named signs {algorithm}"
    )


def _der_numbers(signature: bytes) -> tuple[int, int] | None:
    """r and s of the shortest DER form; None for anything else."""
    try:
        r, s = decode_dss_signature(signature)
        shortest = encode_dss_signature(r, s)
    except ValueError:
        return None
    return (r, s) if shortest == signature else None


def _is_cut_der(signature: bytes) -> bool:
    return len(signature) < 2 or (signature[0] == _SEQUENCE and len(signature) < 2 + signature[1])


def key_named_by(envelope: Envelope, trusted: TrustedKeys) -> PublicKey:
    """The trusted key that the envelope names. The signature is not verified yet. Raises EnvelopeRefused."""
    key = trusted.get(envelope.keyid)
    if key is None:
        key_names = ", ".join(f"{trusted_key.name} ({trusted_key.keyid})" for trusted_key in trusted.values()) or "none"
        raise refused(
            EnvelopeFault.UNKNOWN_KEY, f"signed by the key {envelope.keyid[:80] or 'without id'}; trusted: {key_names}"
        )
    return key


def is_signed_by(key: PublicKey, envelope: Envelope) -> bool:
    """Whether the signature matches. Raises EnvelopeRefused for bytes that are no signature of the key's algorithm."""
    must_be_well_formed(key.algorithm, envelope.signature)
    return matches(key, signed_bytes(envelope.payload), envelope.signature)

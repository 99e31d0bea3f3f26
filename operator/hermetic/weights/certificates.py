"""Certificates of signers: read from PEM, and followed to a trusted root by RFC 5280.

A module of its own: a signature by key is verified without loading what reads certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import SigningKeyUnusable
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.signatures import LARGEST_PEM, is_supported

_TIME = "%Y-%m-%dT%H:%M:%SZ"


def certificates(name: str, pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM text, at least one. Raises SigningKeyUnusable."""
    try:
        return x509.load_pem_x509_certificates(pem[:LARGEST_PEM])
    except ValueError:
        raise SigningKeyUnusable(f"{name}: holds no certificate in PEM that can be read") from None


def key_of_chain(
    chain: Sequence[bytes], roots: Sequence[x509.Certificate], now: datetime
) -> tuple[EllipticCurvePublicKey, str] | WeightsFinding:
    """Key and subject of the first certificate of a chain (DER) that leads to a root and may sign at `now`.

    Else why it does not.
    """
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
    if not _may_sign(leaf) or not is_supported(key):
        what = "a certificate that may not sign: neither digitalSignature nor code signing, or no supported key"
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, leaf.subject.rfc4514_string(), found=what)
    try:
        _verifier(roots, now).verify(leaf, others)
    except verification.VerificationError as error:
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, leaf.subject.rfc4514_string(), found=str(error))
    return key, leaf.subject.rfc4514_string()


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

"""Certificates of signers: read from PEM, and followed to a trusted root by RFC 5280.

A module of its own: a signature by key is verified without loading what reads certificates.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import SigningKeyUnusable
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.signatures import LARGEST_PEM, is_supported

Extension = TypeVar("Extension", bound=x509.ExtensionType)

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
        leaf, *intermediates = [x509.load_der_x509_certificate(der) for der in chain]
        key = leaf.public_key()
    except (ValueError, UnsupportedAlgorithm):
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, "", observed="a certificate that cannot be read")
    for certificate in (leaf, *intermediates):
        if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
            valid = (
                f"valid from {certificate.not_valid_before_utc:{_TIME}} to {certificate.not_valid_after_utc:{_TIME}}"
            )
            subject = certificate.subject.rfc4514_string()
            return WeightsFinding(
                WeightsReason.CERTIFICATE_EXPIRED, subject, valid, f"{now:%Y-%m-%dT%H:%M:%SZ} (clock of this machine)"
            )
    if not _may_sign(leaf) or not is_supported(key):
        explanation = (
            "a certificate that may not sign: without digitalSignature, for other purposes, or no supported key"
        )
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, leaf.subject.rfc4514_string(), observed=explanation)
    try:
        _verifier(roots, now).verify(leaf, intermediates)
    except verification.VerificationError as error:
        return WeightsFinding(WeightsReason.CERTIFICATE_UNTRUSTED, leaf.subject.rfc4514_string(), observed=str(error))
    return key, leaf.subject.rfc4514_string()


def _verifier(roots: Sequence[x509.Certificate], now: datetime) -> verification.ClientVerifier:
    """A verifier by RFC 5280: a signer's certificate needs neither the extensions nor the names of web servers."""
    authority = (
        verification.ExtensionPolicy.permit_all()
        .require_present(x509.BasicConstraints, verification.Criticality.AGNOSTIC, _must_be_authority)
        .may_be_present(x509.KeyUsage, verification.Criticality.AGNOSTIC, _must_sign_certificates)
        .may_be_present(x509.ExtendedKeyUsage, verification.Criticality.AGNOSTIC, _must_issue_signers)
    )
    builder = verification.PolicyBuilder().store(verification.Store(list(roots))).time(now)
    builder = builder.extension_policies(ee_policy=verification.ExtensionPolicy.permit_all(), ca_policy=authority)
    return builder.build_client_verifier()


def _must_be_authority(_policy: Any, _certificate: x509.Certificate, constraints: x509.BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("a certificate of the chain is not that of an authority")


def _must_sign_certificates(_policy: Any, _certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    """RFC 5280, section 6.1.4 (n)."""
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("a certificate of the chain may not sign certificates: its key usage has no keyCertSign")


def _must_issue_signers(_policy: Any, _certificate: x509.Certificate, purposes: x509.ExtendedKeyUsage | None) -> None:
    """An authority for other purposes, of servers for example, issues no signers."""
    if purposes is not None and not _are_for_signing(purposes):
        raise ValueError("a certificate of the chain is for other purposes than code signing: its extended key usage")


def _may_sign(leaf: x509.Certificate) -> bool:
    """Whether what the certificate says of its key allows signing.

    As Model Signing has it, digitalSignature or code signing must be there (`_verify_certificates` of
    src/model_signing/_signing/sign_certificate.py in https://github.com/sigstore/model-transparency). Beyond that both
    must allow it where they are (RFC 5280, section 4.2.1.12): else any server's certificate could sign weights.
    """
    try:
        usage = _extension(leaf, x509.KeyUsage)
        purposes = _extension(leaf, x509.ExtendedKeyUsage)
    except ValueError:
        return False
    if purposes is not None and not _are_for_signing(purposes):
        return False
    if usage is not None:
        return usage.digital_signature
    return purposes is not None and ExtendedKeyUsageOID.CODE_SIGNING in purposes


def _are_for_signing(purposes: x509.ExtendedKeyUsage) -> bool:
    return not {ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}.isdisjoint(purposes)


def _extension(certificate: x509.Certificate, kind: type[Extension]) -> Extension | None:
    """The extension of this kind. Raises ValueError where the extensions cannot be read."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    except x509.DuplicateExtension as error:
        raise ValueError(str(error)) from None

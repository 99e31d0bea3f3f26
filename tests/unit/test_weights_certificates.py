"""Which certificate may sign weights, and which may issue it: by RFC 5280, key usage and extended key usage."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from hermetic.weights.certificates import key_of_chain
from hermetic.weights.findings import WeightsFinding

NOW = datetime.now(UTC)
CODE, ANY = ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE
TLS, MAIL = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.EMAIL_PROTECTION
Usage = Sequence[str] | None
Purposes = Sequence[ObjectIdentifier]
BITS = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip
Issuer = tuple[x509.Certificate | None, ec.EllipticCurvePrivateKey]


def issued(
    name: str, by: Issuer | None, *, ca: bool | None, usage: Usage = None, purposes: Purposes = ()
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate and its key. `ca` None: no basic constraints; `usage` None: no key usage; `by` None: its own."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer = subject if by is None or by[0] is None else by[0].subject
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(NOW - timedelta(1)).not_valid_after(NOW + timedelta(1))
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca, None), critical=True)
    if usage is not None:
        builder = builder.add_extension(x509.KeyUsage(*(bit in usage for bit in BITS)), critical=True)
    if purposes:
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    return builder.sign(key if by is None else by[1], hashes.SHA256()), key


def refusal(root: x509.Certificate, *chain: x509.Certificate) -> str | None:
    """Why a chain does not count; None where it does."""
    chain_result = key_of_chain([certificate.public_bytes(Encoding.DER) for certificate in chain], [root], NOW)
    return f"{chain_result.reason.value}: {chain_result.observed}" if isinstance(chain_result, WeightsFinding) else None


@pytest.mark.parametrize(
    ("usage", "purposes", "is_right"),
    [
        (("digital_signature",), (), True),
        (("digital_signature",), (CODE,), True),
        (("digital_signature",), (ANY,), True),
        (("digital_signature",), (TLS, CODE), True),
        (None, (CODE,), True),
        (None, (ANY,), False),
        (("digital_signature",), (TLS,), False),
        (("digital_signature",), (MAIL,), False),
        (("digital_signature",), (ExtendedKeyUsageOID.CLIENT_AUTH, TLS), False),
        (("key_encipherment",), (), False),
        (("key_encipherment",), (CODE,), False),
        (None, (), False),
    ],
)
def test_who_may_sign(usage: Usage, purposes: Purposes, is_right: bool) -> None:
    """Else every server with a certificate of the organisation's authority could sign weights."""
    root, key = issued("root", None, ca=True, usage=("key_cert_sign",))
    leaf, _ = issued("leaf", (root, key), ca=False, usage=usage, purposes=purposes)
    complaint = refusal(root, leaf)
    assert (complaint is None) == is_right, complaint
    assert complaint is None or complaint.startswith("CertificateUntrusted: a certificate that may not sign")


AUTHORITIES: dict[str, tuple[bool | None, Usage, Purposes, bool]] = {
    "usual": (True, ("key_cert_sign", "crl_sign"), (), True),
    "without key usage": (True, None, (), True),
    "for code": (True, ("key_cert_sign",), (CODE,), True),
    "for everything": (True, ("key_cert_sign",), (ANY,), True),
    "that signs no certificates": (True, ("digital_signature",), (), False),
    "for revocation lists": (True, ("crl_sign",), (), False),
    "for servers": (True, ("key_cert_sign",), (TLS,), False),
    "for mail, without key usage": (True, None, (MAIL,), False),
    "that is none": (False, ("digital_signature",), (CODE,), False),
    "that does not say it is one": (None, ("key_cert_sign",), (), False),
}


@pytest.mark.parametrize("key_usage", AUTHORITIES)
def test_who_may_issue_a_signer(key_usage: str) -> None:
    ca, usage, purposes, is_right = AUTHORITIES[key_usage]
    root, root_key = issued("root", None, ca=True, usage=("key_cert_sign",))
    middle, key = issued("middle", (root, root_key), ca=ca, usage=usage, purposes=purposes)
    leaf, _ = issued("leaf", (middle, key), ca=False, usage=("digital_signature",), purposes=(CODE,))
    complaint = refusal(root, leaf, middle)
    assert (complaint is None) == is_right, complaint
    assert complaint is None or complaint.startswith("CertificateUntrusted: ")


@pytest.mark.parametrize("key_usage", AUTHORITIES)
def test_a_root_that_is_named_must_be_one_that_may_issue(key_usage: str) -> None:
    ca, usage, purposes, is_right = AUTHORITIES[key_usage]
    root, key = issued("root", None, ca=ca, usage=usage, purposes=purposes)
    leaf, _ = issued("leaf", (root, key), ca=False, usage=("digital_signature",))
    assert (refusal(root, leaf) is None) == is_right

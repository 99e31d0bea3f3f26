"""Certificates and kubeconfigs of a test cluster: one authority, valid for days, never written outside its folder."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = datetime.timedelta(days=30)
CLOCK_SKEW = datetime.timedelta(hours=1)
SIGNS_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Credential:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Writes `name.crt` and `name.key` (mode 0600) and returns their paths."""
        return write_private(folder / f"{name}.crt", self.certificate), write_private(folder / f"{name}.key", self.key)


class Authority:
    """A certificate authority in memory that issues server and client certificates."""

    def __init__(self, name: str) -> None:
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
        certificate = (
            self._draft(self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(SIGNS_CERTIFICATES, critical=True)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, name: str, hosts: Iterable[str]) -> Credential:
        """A server certificate for the hosts, each an IP address or a DNS name."""
        alternatives = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._issue(name, (), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client(self, user: str, groups: Iterable[str] = ()) -> Credential:
        """A client certificate: Kubernetes takes the common name as the user, the organizations as its groups."""
        return self._issue(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        name: str,
        groups: Iterable[str],
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None = None,
    ) -> Credential:
        key = ec.generate_private_key(ec.SECP256R1())
        organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name), *organizations])
        draft = (
            self._draft(subject, key)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if alternatives is not None:
            draft = draft.add_extension(alternatives, critical=False)
        certificate = draft.sign(self._key, hashes.SHA256())
        return Credential(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))

    def _draft(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + LIFETIME)
        )


def service_account_keys(folder: Path) -> tuple[Path, Path]:
    """Writes the RSA pair that signs and checks service account tokens; returns (private, public)."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    return write_private(folder / "sa.key", _pem(key)), write_private(folder / "sa.pub", public)


def write_kubeconfig(path: Path, server: str, authority: bytes, credential: Credential | str) -> Path:
    """Writes a kubeconfig (JSON, which is YAML) with everything inline; a `str` credential is a bearer token."""
    user = (
        {"token": credential}
        if isinstance(credential, str)
        else {"client-certificate-data": _base64(credential.certificate), "client-key-data": _base64(credential.key)}
    )
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
        "clusters": [
            {"name": "testbed", "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
        ],
        "users": [{"name": "testbed", "user": user}],
    }
    return write_private(path, json.dumps(config, indent=1).encode())


def write_private(path: Path, content: bytes) -> Path:
    """Writes a file that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()

"""Attestations as tests need them: keys, a report, and everything around it, with telling defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, derive_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from hermetic.api.times import timestamp
from hermetic.audit.attestation.choosing import ChosenAttestation, authenticated, choose_among
from hermetic.audit.attestation.signing import Provenance, sign_report
from hermetic.audit.attestation.statement import Inputs, Scope, Tool
from hermetic.audit.attestation.verification import Attestation, Expected, authenticate
from hermetic.signing.canonical_json import canonical, read_json
from hermetic.signing.envelope import Envelope, signed_bytes
from hermetic.signing.keys import SigningKey, TrustedKeys, read_signing_key, trusted
from hermetic.signing.signatures import sign

SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000001"
CLUSTER = f"{SUBSCRIPTION}/resourceGroups/rg-gpu/providers/Microsoft.ContainerService/managedClusters/aks-gpu"
OTHER_CLUSTER = CLUSTER.replace("aks-gpu", "aks-other")
SUBNET = f"{SUBSCRIPTION}/resourceGroups/rg-gpu/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
POOLS = ("gpu", "real", "system")
COVERAGE = {
    "pools": [{"name": name, "subnets": [SUBNET], "scaleSets": [], "nodeImage": ""} for name in POOLS],
    "subnets": [{"id": SUBNET, "prefixes": ["10.1.0.0/24"]}],
}
"""The pools of the test bed: those of `testbed.fleet`, and that of the real node."""
CA = "sha256:" + "ca" * 32
UID = "3f1c2d4e-0000-4000-8000-00000000beef"
SNAPSHOT = "sha256:" + "5a" * 32
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OBSERVED = NOW - timedelta(hours=2)

PrivateKey = Ed25519PrivateKey | EllipticCurvePrivateKey


def pem_of(key: Any, passphrase: bytes | None = None) -> str:
    """The private key in PEM, encrypted when there is a passphrase."""
    encryption = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    return pem.decode()


def public_pem_of(key: Any) -> str:
    """The public half of a private key in PEM."""
    pem: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem.decode()


def an_ed25519_key(seed: int = 1, name: str = "platform-2026") -> SigningKey:
    """Always the same key for the same seed."""
    return read_signing_key(name, pem_of(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)))


def a_p256_key(seed: int = 1, name: str = "platform-p256") -> SigningKey:
    """Always the same key for the same seed."""
    return read_signing_key(name, pem_of(derive_private_key(2**200 + seed, SECP256R1())))


def a_finding(verdict: str = "Pass", check: str = "subnet-default-outbound", **changes: Any) -> dict[str, Any]:
    """One finding of the audit JSON, critical."""
    finding = {
        "check": check,
        "verdict": verdict,
        "severity": "critical",
        "resource": SUBNET,
        "reason": "",
        "message": "",
        "remedy": "",
        "paths": [],
        "evidence": [{"request": f"GET {SUBNET}?api-version=2025-05-01", "status": 200, "sha256": "ab" * 32}],
    }
    return {**finding, **changes}


def an_excepted_finding(expiry: str, accepted: str = "Fail") -> dict[str, Any]:
    """A finding that an owner accepts until a day."""
    exception = {"reason": "until the hub moves", "owner": "network team", "expiry": expiry, "accepted": accepted}
    return a_finding("Excepted", "peering-any", exception=exception)


def a_report(*findings: dict[str, Any], observed: datetime = OBSERVED, **changes: Any) -> dict[str, Any]:
    """The audit JSON with these findings, or with one Pass; counts are right, the verdict is to be said."""
    chosen_findings = list(findings) or [a_finding()]
    verdicts = ("Pass", "Fail", "Unknown", "Excepted", "NotApplicable")
    report = {
        "schema": "hermetic.dev/audit/v1",
        "cluster": CLUSTER,
        "sources": ["azure"],
        "profile": "sealed",
        "startedAt": timestamp(observed),
        "finishedAt": timestamp(observed + timedelta(minutes=2)),
        "verdict": "Pass",
        "notAsked": {"kube": ["k8s-public-lb"]},
        "summary": {verdict: sum(finding["verdict"] == verdict for finding in chosen_findings) for verdict in verdicts},
        "findings": chosen_findings,
        "coverage": COVERAGE,
    }
    return {**report, **changes}


def provenance(cluster: str = CLUSTER, ca: str | None = CA, uid: str | None = UID) -> Provenance:
    """What was audited, and with what."""
    return Provenance(
        Scope(cluster_arm_id=cluster, api_server_ca_fingerprint=ca, kube_system_uid=uid),
        Tool(name="hermetic", version="0.1.0", digest="sha256:" + "70" * 32),
        Inputs(snapshot=SNAPSHOT, policy=None, exceptions=None),
    )


def signed(key: SigningKey, report: dict[str, Any] | None = None, **options: Any) -> Envelope:
    """The report (or an ordinary one), signed at NOW."""
    about = options.pop("about", None) or provenance()
    return sign_report(report or a_report(), about, key, **{"now": NOW, **options})


def resigned(key: SigningKey, envelope: Envelope, change: Any) -> Envelope:
    """The statement, changed in place and signed by the same key as it then is: what a rogue signer could do."""
    statement = read_json(envelope.payload, "the payload")
    change(statement)
    return signed_as_it_stands(key, canonical(statement))


def signed_as_it_stands(key: SigningKey, payload: bytes) -> Envelope:
    """Any bytes under a valid signature."""
    return Envelope(payload, key.public.keyid, sign(key, signed_bytes(payload)))


def trust(*keys: SigningKey) -> TrustedKeys:
    """Their public halves, trusted."""
    return trusted(key.public for key in keys)


def choose(
    objects: Iterable[Mapping[str, Any]], trusted: TrustedKeys, expected: Expected, now: datetime
) -> ChosenAttestation:
    """The newest EgressAttestation that counts, of objects as the API server returns them."""
    return choose_among(
        {str(stored["metadata"]["name"]): authenticated(stored, trusted) for stored in objects}, expected, now
    )


def a_chain(length: int, key: SigningKey, every: timedelta = timedelta(hours=12)) -> list[Envelope]:
    """Attestations that follow each other; the last one is of OBSERVED."""
    envelopes: list[Envelope] = []
    last: Attestation | None = None
    for position in range(length):
        observed = OBSERVED - every * (length - 1 - position)
        envelope = signed(key, a_report(observed=observed), now=observed + timedelta(minutes=5), previous=last)
        last = authenticate(envelope, trust(key))
        envelopes.append(envelope)
    return envelopes

"""EgressAudit and EgressAttestation: what the proof of isolation must show, and the evidence from outside."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from hermetic.api.conditions import LONGEST_MESSAGE, Condition
from hermetic.api.field_types import PinnedImage, PublicKeyPem, Timestamp, list_of, matches
from hermetic.api.rules import ApiModel, Rule, immutable
from hermetic.signing.envelope import LARGEST_PAYLOAD

"""Characters of base64. With name and signature an object of this size still fits into etcd's 1 MiB."""
MOST_REFUSALS, MOST_IMPORTS = 16, 64
MOST_LISTED = 20
"""Findings that a status lists."""
LONGEST_LISTED_TEXT = 1024
"""Characters of each text of a listed finding."""
CLUSTER_ARM_ID = (
    r"(?i)^/subscriptions/[0-9a-f-]{36}/resourceGroups/[^/]+"
    r"/providers/Microsoft\.ContainerService/managedClusters/[^/]+$"
)

Digest = Annotated[str, StringConstraints(max_length=71, pattern=r"^sha256:[a-f0-9]{64}$")]
KeyName = Annotated[
    str,
    StringConstraints(max_length=63),
    matches(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "must be lower-case letters, digits, '-' and '.'"),
]
PolicyDigest = Annotated[
    str,
    StringConstraints(max_length=71),
    matches(r"^sha256:[a-f0-9]{64}$", "must be 'sha256:' and 64 lower-case hex digits, as 'sha256sum policy.yaml' has"),
]
NOT_BLANK = matches(r"^[\s\S]*\S[\s\S]*$", "must not be blank")
Verdict = Literal["Pass", "Fail", "Unknown"]


class TrustedKey(ApiModel):
    """A public key whose attestations count."""

    name: KeyName
    """Name of the key, shown wherever its evidence is used."""
    public_key: PublicKeyPem
    """PEM of an Ed25519 or P-256 public key."""
    not_after: Timestamp | None = None
    """Evidence observed after this moment does not count: set it on a key that is being replaced. Default: no end."""


TargetAddress = Annotated[
    str, StringConstraints(max_length=45), matches(r"^[0-9A-Fa-f:.]{2,45}$", "must be an IPv4 or IPv6 address")
]
TargetName = Annotated[
    str,
    StringConstraints(max_length=253),
    matches(r"^[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9])?$", "must be a DNS name"),
]


TargetPort = Annotated[int, Field(ge=1, le=65535, description="A port, 1 to 65535.")]


class Listener(ApiModel):
    """An address and a port."""

    address: TargetAddress
    """IPv4 or IPv6 address."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Port, 1 to 65535."""


class ProbeTargets(ApiModel):
    """What the probe calls; a list that is not given keeps its default."""

    public_addresses: Annotated[list[TargetAddress], Field(min_length=3, max_length=10), list_of("set")] | None = None
    """Public addresses of different owners and kinds, most of them with a TLS service on 443, three of them IPv4.
    Default: public resolvers, Microsoft 365, GitHub Pages, a time server and the edge of a CDN."""
    tcp_ports: Annotated[list[TargetPort], Field(max_length=8), list_of("set")] | None = None
    """TCP ports called on each public address beside 443; every round adds another one to each address where there is
    room. Default: 80, 22, 53 and 49152."""
    udp_ports: Annotated[list[TargetPort], Field(max_length=4), list_of("set")] | None = None
    """UDP ports called on each public address; every round adds the port of IPsec, WireGuard, STUN, NTP or QUIC to each
    address where there is room. Default: 53, 123 and 443."""
    vary_ports: bool | None = None
    """Whether every round adds ports of its own to the listed ones. Without them a network that is open for other ports
    alone is not seen. Default: true."""
    storage_names: Annotated[list[TargetName], Field(max_length=2), list_of("set")] = []
    """Blob endpoints of storage accounts in the cluster's region that are not yours. Without one that can be called,
    by name or by address, storage of the same region is Unknown. Default: none."""
    storage_addresses: Annotated[list[TargetAddress], Field(max_length=2), list_of("set")] = []
    """Public addresses of such endpoints, for networks in which their names do not resolve. Default: none."""
    proxies: Annotated[list[Listener], Field(max_length=4), list_of("map", "address", "port")] = []
    """HTTP proxies that must not let the cluster through. Default: none."""
    forbidden: Annotated[list[Listener], Field(max_length=8), list_of("map", "address", "port")] = []
    """Addresses in other networks that must not answer. Default: none."""
    controls: Annotated[list[Listener], Field(max_length=2), list_of("map", "address", "port")] = []
    """What must answer, or silence means nothing. Default: the API server by its Service."""
    resolvers: Annotated[list[TargetAddress], Field(max_length=4), list_of("set")] | None = None
    """Resolvers asked beside those of the pod. Default: Azure's own, 168.63.129.16."""
    canary: Annotated[TargetName, StringConstraints(max_length=180)] | None = None
    """A registered domain without a wildcard; random names below it are asked for. Default: example.com."""


class Probe(ApiModel):
    """The active probe from inside the node subnets."""

    interval_seconds: Annotated[int, Field(ge=300, le=86400)] = 3600
    """Seconds between probes, 300 to 86400. Default: 3600."""
    image: PinnedImage
    """Image of the probe by digest."""
    targets: ProbeTargets = ProbeTargets()
    """What is called, where the defaults are not enough. Default: the defaults of every list."""


class ExceptionSpec(ApiModel):
    """An accepted risk: a finding, its owner and its last day."""

    check: Annotated[
        str,
        StringConstraints(min_length=1, max_length=64),
        matches(r"^[a-z0-9-]+$", "must be the id of a check, such as 'peering-any'"),
    ]
    """Id of the check, for example 'peering-any'."""
    resource: Annotated[str, StringConstraints(min_length=1, max_length=1024), NOT_BLANK]
    """ARM id or glob of the resource, not case-sensitive."""
    reason: Annotated[str, StringConstraints(min_length=8, max_length=1024), NOT_BLANK]
    """Why the risk is accepted."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=256), NOT_BLANK]
    """Who answers for it."""
    expires: Annotated[
        str,
        StringConstraints(max_length=10),
        matches(r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$", "must be a date YYYY-MM-DD"),
    ]
    """Last day (UTC) on which the exception counts, YYYY-MM-DD."""

    @field_validator("expires")
    @classmethod
    def _is_a_day(cls, expires: str) -> str:
        try:
            date.fromisoformat(expires)
        except ValueError as error:  # 31 November
            raise ValueError(f"{expires!r} is not a day: {error}") from None
        return expires


class EgressAuditSpec(ApiModel):
    """The scope of the audit, its interval, and the signers whose evidence counts."""

    cluster: Annotated[
        str,
        StringConstraints(max_length=512),
        matches(CLUSTER_ARM_ID, "must be the ARM id of the AKS cluster: /subscriptions/…/managedClusters/NAME"),
        immutable("cluster"),
    ]
    """ARM id of this cluster. Immutable."""
    profile: Literal["Sealed", "Filtered"] = "Sealed"
    """Sealed: no egress path at all. Filtered: one declared firewall is allowed, and evaluated. Default: Sealed."""
    trusted_keys: Annotated[list[TrustedKey], Field(max_length=16), list_of("map", "name")] = []
    """Public keys whose attestations count. Default: none, so no attestation counts."""
    max_evidence_age_seconds: Annotated[int, Field(ge=300, le=604800)] = 86400
    """Oldest attestation that still counts, in seconds, 300 to 604800. Default: 86400 (a day)."""
    policy_digests: Annotated[list[PolicyDigest], Field(max_length=16), list_of("set")] = []
    """SHA-256 of the policy files with which an audit counts, as `hermetic attest verify` prints them. An attestation
    of another policy file, or of none, is refused. Default: none, so every policy file counts."""
    probe: Probe | None = None
    """The active probe. Default: none."""
    exceptions: Annotated[list[ExceptionSpec], Field(max_length=256), list_of("map", "check", "resource")] = []
    """Findings that are accepted, each with reason, owner and last day. Default: none."""


class Counts(ApiModel):
    """Findings by verdict."""

    pass_: Annotated[int, Field(ge=0, alias="pass")] = 0
    """Evaluated and as required."""
    fail: Annotated[int, Field(ge=0)] = 0
    """Evaluated and not as required."""
    unknown: Annotated[int, Field(ge=0)] = 0
    """Could not be seen well enough."""
    excepted: Annotated[int, Field(ge=0)] = 0
    """Accepted by an exception that has not expired."""
    not_applicable: Annotated[int, Field(ge=0)] = 0
    """Not a question here."""
    blocking: Annotated[int, Field(ge=0)] = 0
    """Those of `fail` and `unknown` that are critical or high: with one of them the verdict is not Pass."""
    warnings: Annotated[int, Field(ge=0)] = 0
    """Those of `fail` and `unknown` that are neither critical nor high: they do not decide the verdict."""


class ListedFinding(ApiModel):
    """A finding that fails or is unknown."""

    check: Annotated[str, StringConstraints(max_length=64)]
    """Id of the check; `hermetic explain CHECK` says more."""
    severity: Literal["critical", "high", "medium", "low", "info"]
    """critical and high decide the verdict."""
    verdict: Literal["Fail", "Unknown"]
    """Fail or Unknown."""
    reason: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Why, in one word."""
    resource: Annotated[str, StringConstraints(max_length=LONGEST_LISTED_TEXT)]
    """ARM id or Kubernetes reference of what has to be changed."""
    message: Annotated[str, StringConstraints(max_length=LONGEST_LISTED_TEXT)] | None = None
    """What was found."""
    remedy: Annotated[str, StringConstraints(max_length=LONGEST_LISTED_TEXT)] | None = None
    """What to do, commands in backticks."""


class AzureEvidence(ApiModel):
    """The newest attestation that counts."""

    digest: Digest
    """SHA-256 of the attestation's payload."""
    observed_at: Timestamp
    """When Azure was read."""
    expires_at: Timestamp
    """When the attestation stops counting."""
    signed_by: KeyName
    """The trusted key that signed it."""


class KubernetesEvidence(ApiModel):
    """The newest evaluation of the cluster's own objects."""

    observed_at: Timestamp
    """When they were read."""


class ProbeEvidence(ApiModel):
    """The newest run of the active probe."""

    observed_at: Timestamp
    """When it ended."""
    nodes: Annotated[int, Field(ge=0)]
    """Nodes it ran on."""


class Accepted(ApiModel):
    """An attestation that was accepted once; older ones are not taken after it."""

    digest: Digest
    """SHA-256 of its payload."""
    observed_at: Timestamp
    """When Azure was read."""


class RefusedAttestation(ApiModel):
    """The attestation that the conditions name as refused."""

    name: Annotated[str, StringConstraints(max_length=253)]
    """Name of the EgressAttestation."""
    reason: Annotated[str, StringConstraints(max_length=64)]
    """Why, in one word that `hermetic explain` knows."""


class EvidenceStatus(ApiModel):
    """What the verdict rests on."""

    azure: AzureEvidence | None = None
    """The attestation from outside."""
    kubernetes: KubernetesEvidence | None = None
    """The cluster's own objects."""
    probe: ProbeEvidence | None = None
    """The active probe."""


class ImportedStatement(ApiModel):
    """A signed statement about this cluster, and when it was first imported."""

    digest: Digest
    """SHA-256 of its payload."""
    at: Timestamp
    """When it was first imported, by the clock of the API server."""


class EgressAuditStatus(ApiModel):
    """The verdict, and what it rests on."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The metadata.generation that this status is about; -1 until it was first evaluated."""
    conditions: Annotated[list[Condition], Field(max_length=16), list_of("map", "type")] = []
    """Ready and what it is made of."""
    verdict: Verdict | None = None
    """Pass, Fail or Unknown; absent until it was first evaluated."""
    message: Annotated[str, StringConstraints(max_length=LONGEST_MESSAGE)] | None = None
    """The worst finding in one sentence."""
    counts: Counts | None = None
    """Findings by verdict."""
    evidence: EvidenceStatus | None = None
    """What the verdict rests on."""
    findings: Annotated[list[ListedFinding], Field(max_length=MOST_LISTED), list_of("atomic")] = []
    """The findings that fail or are unknown, the worst first, 20 at most."""
    more_findings: Annotated[int, Field(ge=0)] = 0
    """How many more of them there are."""
    refused: RefusedAttestation | None = None
    """The newest attestation that is refused; absent while another one counts."""
    refusals: Annotated[list[RefusedAttestation], Field(max_length=MOST_REFUSALS), list_of("atomic")] = []
    """The attestations that are refused, also while another one counts: those of trusted keys first, 16 at most."""
    more_refusals: Annotated[int, Field(ge=0)] = 0
    """How many more of them there are."""
    newest_accepted: Accepted | None = None
    """The newest attestation that was ever accepted: what is older is a replay."""
    imports: Annotated[list[ImportedStatement], Field(max_length=MOST_IMPORTS), list_of("map", "digest")] = []
    """When signed statements about this cluster were first imported, the latest 64: their own clocks may be wrong."""


class EgressAudit(ApiModel):
    """The proof that this cluster's node subnets have no egress path. One per cluster, named 'cluster'."""

    RULES = (
        Rule(
            cel="self.metadata.name == 'cluster'",
            message="must be 'cluster': there is one EgressAudit per cluster",
            holds=lambda audit: audit.metadata.get("name") == "cluster",
            field=".metadata.name",
            show="'\\'' + self.metadata.name + '\\''",
        ),
    )

    api_version: Literal["hermetic.dev/v1alpha1"]
    kind: Literal["EgressAudit"]
    metadata: dict[str, Any]
    spec: EgressAuditSpec
    """The scope of the audit, its interval, and the signers whose evidence counts."""
    status: EgressAuditStatus = EgressAuditStatus()
    """The verdict, and what it rests on."""


Base64 = StringConstraints(pattern=r"^[A-Za-z0-9+/]+={0,2}$")


class EnvelopeSignature(ApiModel):
    """One signature over the payload."""

    keyid: Annotated[str, StringConstraints(max_length=256)] = ""
    """'sha256:' and the SHA-256 of the public key in DER. Evidence without it is refused. Default: empty."""
    sig: Annotated[str, Base64, StringConstraints(min_length=1, max_length=1024)]
    """The signature in base64."""


class SignedEnvelope(ApiModel):
    """A DSSE envelope around an in-toto Statement."""

    payload_type: Literal["application/vnd.in-toto+json"]
    """Media type of the payload."""
    payload: Annotated[str, Base64, StringConstraints(min_length=1, max_length=LARGEST_PAYLOAD)]
    """The statement in base64."""
    signatures: Annotated[list[EnvelopeSignature], Field(min_length=1, max_length=1), list_of("atomic")]
    """The signature over payload type and payload: exactly one, for one that is not checked could say anything."""


class EgressAttestationSpec(ApiModel):
    """The signed result of an audit made outside the cluster."""

    envelope: SignedEnvelope
    """The DSSE envelope as `hermetic audit --attestation` writes it."""


class EgressAttestation(ApiModel):
    """Signed evidence from outside. It cannot be changed, only replaced by a newer one."""

    RULES = (
        Rule(
            cel="self.spec == oldSelf.spec",
            message="`spec` is immutable: apply a new EgressAttestation instead",
            field=".spec",
        ),
    )

    api_version: Literal["hermetic.dev/v1alpha1"]
    kind: Literal["EgressAttestation"]
    metadata: dict[str, Any]
    spec: EgressAttestationSpec
    """The signed result of an audit made outside the cluster."""

"""The operator's own configuration: one YAML file, read once at start, every key declared and explained here."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.engine import Member
from hermetic.api.field_types import (
    AbsolutePath,
    CertificatePem,
    DnsLabel,
    HostName,
    KindOfAGroup,
    LabelKey,
    LabelValue,
    Namespaces,
    ObjectName,
    PinnedImage,
    PublicKeyPem,
    RelativePath,
    Repository,
    SourceRange,
    matches,
)
from hermetic.api.gateway import AllowedGateway, GatewayRoute
from hermetic.api.integrity import INTEGRITY_POLICIES, IntegrityPolicy
from hermetic.api.ip_ranges import is_address, is_in, parse_address
from hermetic.api.log_settings import LogSettings
from hermetic.api.model_metadata import ModelMetadata
from hermetic.api.modeldeployment import Enforcement, Toleration
from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.api.pod_users import PodUser
from hermetic.api.preflight import PreflightFloor
from hermetic.api.reserved_flags import NO_RENAMED_VARIABLE, NO_RESERVED_VARIABLE, REMOTE_CODE, VLLM
from hermetic.api.rules import ApiModel, Rule
from hermetic.api.strictness import Strictness, covers

ENFORCEMENTS: Strictness[Enforcement] = Strictness(("Enforce", "Report", "Off"))


def _sign_weights(keys: list[str]) -> bool:
    from hermetic.signing.keys import is_ecdsa_public_key  # a tenth of a second to import, for `hermetic validate`

    return all(is_ecdsa_public_key(pem) for pem in keys)


def _is_address(text: str) -> bool:
    return "%" not in text and is_address(text)


ServerAddress = Annotated[
    str,
    StringConstraints(max_length=45),
    Rule(cel="isIP(self)", message="must be an IP address such as '10.1.0.4', without a port", holds=_is_address),
]


class AllowedRegistry(ApiModel):
    """A registry that serving images and image volumes may come from."""

    host: Annotated[
        str,
        StringConstraints(max_length=259),
        matches(
            r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$", "must be a registry host such as 'contoso.azurecr.io'"
        ),
    ]
    """Host of the registry, with its port if it has one."""
    repositories: Annotated[list[Repository], Field(max_length=64)] = []
    """Repositories that may be used, for example 'nim' or 'vllm/vllm-openai': each with everything below it, and not
    those that only begin alike ('nim' does not allow 'nim-mirror'). Default: every repository of the host."""
    namespaces: Namespaces
    """Namespaces whose deployments may use it; '*' allows every namespace."""


class AllowedShare(ApiModel):
    """A share that weights may be read from: `account` and `share` of Azure Files, or `server` and `path` of NFS."""

    RULES = (
        Rule(
            cel="",
            message="must set either `account` and `share` (Azure Files) or `server` and `path` (NFS)",
            holds=lambda allowed: (
                (allowed.account is not None and allowed.share is not None and allowed.path is None)
                or (allowed.server is not None and allowed.path is not None and allowed.account is None)
            ),
        ),
    )

    account: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][-a-z0-9]{2,62}$")] | None = None
    """Storage account, or for a Microsoft.FileShares share the first label of its host name."""
    share: Annotated[str, StringConstraints(max_length=63)] | None = None
    """Name of the Azure Files share."""
    server: HostName | None = None
    """NFS server; beside `account`, the one host name that the share may be mounted from when it is not the default."""
    path: AbsolutePath | None = None
    """Exported path of the NFS server."""
    folders: Annotated[list[RelativePath], Field(max_length=64)] = []
    """Folders of the share that may be read, for example 'team-a': each with everything below it, and not those that
    only begin alike. One line for each namespace keeps namespaces apart on one share. Default: the whole share."""
    namespaces: Namespaces
    """Namespaces whose deployments may read it; '*' allows every namespace."""


class AllowedEngineSettings(ApiModel):
    """Variables and arguments that deployments may give to an engine beside those that Hermetic has reviewed."""

    RULES = (
        Rule(
            cel="",
            message="must name at least one of `variables` and `arguments`",
            holds=lambda allowed: bool(allowed.variables or allowed.arguments),
        ),
    )

    engine: Member
    """Engine that they are for: vllm, nim or sglang."""
    variables: Annotated[
        list[
            Annotated[
                str,
                StringConstraints(max_length=128),
                matches(r"^[A-Za-z_][A-Za-z0-9_]*$", "must be the name of a variable"),
                NO_RESERVED_VARIABLE,
                NO_RENAMED_VARIABLE,
            ]
        ],
        Field(max_length=64),
    ] = []
    """Names of variables, written out. Their values may name files of the image, and still no URL, no address and
    nothing below the weights. Reserved names are refused here as well. Default: none."""
    arguments: Annotated[
        list[
            Annotated[
                str,
                StringConstraints(max_length=128),
                matches(r"^--[a-z0-9][a-z0-9-]*$", "must be a flag with '--', written out, without a value"),
                *VLLM.rules(),
                Rule(
                    cel="",
                    message=f"must not be '{REMOTE_CODE}': `remoteCode` allows it",
                    holds=lambda argument: argument != REMOTE_CODE,
                ),
            ]
        ],
        Field(max_length=64),
    ] = []
    """Flags with '--', written out. The same holds for their values. Reserved flags are refused here as well. Default:
    none."""
    namespaces: Namespaces
    """Namespaces whose deployments may use them; '*' allows every namespace."""


class AllowedRemoteCode(ApiModel):
    """Namespaces whose deployments may run the Python code that lies beside their weights in an image."""

    namespaces: Namespaces
    """Namespaces whose deployments may run it; '*' allows every namespace."""


class AllowedAddresses(ApiModel):
    """Addresses that load balancers of some namespaces may ask for."""

    ranges: Annotated[list[SourceRange], Field(min_length=1, max_length=64)]
    """Ranges of addresses, for example '10.13.76.32/28', or one address with '/32'."""
    namespaces: Namespaces
    """Namespaces whose deployments may ask for them; '*' allows every namespace."""


class AllowedToleration(ApiModel):
    """A taint that pods of some namespaces may accept."""

    key: LabelKey
    """Key of the taint, for example 'sku'."""
    values: Annotated[list[LabelValue], Field(max_length=64)] = []
    """Values of the taint that may be accepted, each by `operator` 'Equal'. Default: every value, and 'Exists' too."""
    namespaces: Namespaces
    """Namespaces whose deployments may accept it; '*' allows every namespace."""


class AllowedPriorityClass(ApiModel):
    """A PriorityClass that pods of some namespaces may have."""

    name: ObjectName
    """Name of the PriorityClass. The operator always refuses the classes of the system ('system-...')."""
    namespaces: Namespaces
    """Namespaces whose deployments may name it; '*' allows every namespace."""


class AllowedNodeLabel(ApiModel):
    """A node label that pods of some namespaces may select."""

    key: LabelKey
    """Key of the label, for example 'kubernetes.azure.com/agentpool'."""
    values: Annotated[list[LabelValue], Field(max_length=64)] = []
    """Values that may be selected. Default: every value."""
    namespaces: Namespaces
    """Namespaces whose deployments may select it; '*' allows every namespace."""


class EnforcementOverride(ApiModel):
    """Another least enforcement for some namespaces."""

    minimum_enforcement: Enforcement
    """The least `isolation.enforcement` that counts in these namespaces: Enforce, Report or "Off"."""
    namespaces: Namespaces
    """Namespaces that it is about; '*' means every namespace. Of several that name one, the strictest counts."""


class IsolationFloor(ApiModel):
    """The least that any deployment may ask of the proof of isolation."""

    minimum_enforcement: Enforcement = "Enforce"
    """The least `isolation.enforcement` that counts: a deployment that asks for less is treated as if it asked for
    this, and its status says so. Enforce, Report or "Off" (quote it). Default: Enforce."""
    overrides: Annotated[list[EnforcementOverride], Field(max_length=64)] = []
    """Namespaces with another minimum, for example a sandbox without a proof. Default: none."""

    replacements: Literal["Refuse", "Admit"] = "Refuse"
    """Pods that take the place of pods that ended, while isolation is not proven: Refuse keeps them from starting,
    Admit lets them start, since the Deployment they are of was proven when it was written. It is kept by the admission
    policy 'hermetic-pod-gate'. Default: Refuse."""

    def minimum_of(self, namespace: str) -> Enforcement:
        named = ((one.namespaces, one.minimum_enforcement) for one in self.overrides)
        return ENFORCEMENTS.minimum(named, namespace, self.minimum_enforcement)


class IntegrityOverride(ApiModel):
    """Another least policy of integrity for some namespaces."""

    minimum_policy: IntegrityPolicy
    """The least `weights.integrity.policy` that counts in these namespaces: Require, Warn or "Off"."""
    namespaces: Namespaces
    """Namespaces that it is about; '*' means every namespace. Of several that name one, the strictest counts."""


class IntegrityFloor(ApiModel):
    """How weights on shares and claims are verified before an engine starts."""

    RULES = (
        Rule(
            cel="",
            message="`publicKeys`: each must be one P-256, P-384 or P-521 public key in PEM",
            holds=lambda floor: not floor.public_keys or _sign_weights(floor.public_keys),
        ),
    )

    verifiers: Annotated[list[PinnedImage], Field(max_length=8)] = []
    """Images of Hermetic by digest that verify weights in an init container of the pods, the newest first. New pod
    templates take the first; a template that has another one of the list keeps it, so that adding an image restarts no
    pod, and removing one restarts those that have it. Default: none, and deployments whose weights must be verified are
    refused with the reason VerifierNotConfigured."""
    public_keys: Annotated[list[PublicKeyPem], Field(max_length=16)] = []
    """PEM of the keys that may sign weights. With one, every manifest must be signed by one of them, beside any
    `digest` that a deployment pins. A template keeps its keys while all of them are listed. Default: none, and each
    deployment pins a digest or names a key."""
    certificate_roots: Annotated[list[CertificatePem], Field(max_length=8)] = []
    """PEM of certificates that a signer's may lead to, beside the keys, and as these. Default: none."""
    minimum_policy: IntegrityPolicy = "Require"
    """The least `weights.integrity.policy` that counts, for `azureFiles`, `nfs` and `persistentVolumeClaim`: a
    deployment that asks for less, or says nothing, is treated as if it asked for this. Require, Warn or "Off" (quote
    it: weights are then served unverified, unless a deployment asks for more). Default: Require."""
    overrides: Annotated[list[IntegrityOverride], Field(max_length=64)] = []
    """Namespaces with another minimum. Default: none."""

    def minimum_of(self, namespace: str) -> IntegrityPolicy:
        named = ((one.namespaces, one.minimum_policy) for one in self.overrides)
        return INTEGRITY_POLICIES.minimum(named, namespace, self.minimum_policy)


class Volumes(ApiModel):
    """PersistentVolumes for shares."""

    create: bool = True
    """Create PersistentVolumes and claims for `azureFiles` and `nfs`. false: only claims made by the platform team,
    baked images and image volumes are accepted. Default: true."""


class Lease(ApiModel):
    """The lease that makes this process the only writer."""

    namespace: DnsLabel = "hermetic-system"
    """Namespace of the Lease 'hermetic', the operator's own. Default: hermetic-system."""


class Configuration(ApiModel):
    """The configuration of the operator."""

    RULES = (
        Rule(
            cel="",
            message="`trustedNodeAgents`: the registry of every image must be a host of `registries`",
            holds=lambda configuration: (
                {one.image.partition("/")[0] for one in configuration.trusted_node_agents}
                <= {one.host for one in configuration.registries}
            ),
        ),
    )

    registries: Annotated[list[AllowedRegistry], Field(max_length=64)] = []
    """Registries that images may come from. Nothing is allowed that is not listed. Default: none."""
    shares: Annotated[list[AllowedShare], Field(max_length=256)] = []
    """Shares that weights may be read from. Nothing is allowed that is not listed. Default: none."""
    addresses: Annotated[list[AllowedAddresses], Field(max_length=256)] = []
    """Addresses that `endpoint.internalLoadBalancer.address` may ask for, by namespace. With one line, nothing is
    allowed that is not listed. Default: none, and every namespace may ask for every private address that is free."""
    gateways: Annotated[list[AllowedGateway], Field(max_length=64)] = []
    """Gateways of the Gateway API that `endpoint.gateway` may name, by namespace, and the pods through which their
    requests come. Nothing is allowed that is not listed. Default: none.

    gateways: [{name: models, namespace: gateways, namespaces: [team-a], dataPlane: {namespace: envoy-gateway-system,
    podLabels: {gateway.envoyproxy.io/owning-gateway-name: models}}}]"""
    tolerations: Annotated[list[AllowedToleration], Field(max_length=256)] = []
    """Taints that `accelerator.tolerations` may accept, by namespace: what keeps a model off the GPU nodes of other
    teams. With one line, nothing is allowed that is not listed, the default `sku=gpu` included. Default: none, and
    every namespace may accept every taint, as any pod may."""
    priority_classes: Annotated[list[AllowedPriorityClass], Field(max_length=64)] = []
    """PriorityClasses that `scheduling.priorityClassName` may name, by namespace. Nothing is allowed that is not
    listed. Default: none."""
    node_labels: Annotated[list[AllowedNodeLabel], Field(max_length=256)] = []
    """Node labels that `scheduling.nodeSelector` may select, by namespace. Nothing is allowed that is not listed.
    Default: none."""
    engine_settings: Annotated[list[AllowedEngineSettings], Field(max_length=64)] = []
    """Variables and arguments for engines in addition to the reviewed lists. You are responsible for these names:
    they may load code or open connections. Default: none."""
    remote_code: Annotated[list[AllowedRemoteCode], Field(max_length=64)] = []
    """Namespaces that may give '--trust-remote-code' to vLLM and SGLang, where the weights are in an image pinned by
    digest (`weights.bakedImage` or `weights.imageVolume`). The engine then runs the Python files beside the weights,
    with all rights of the pod: know who builds these images. Default: none.

    remoteCode: [{namespaces: [research]}]"""
    model_metadata: ModelMetadata = ModelMetadata()
    """Labels and annotations of the platform team on every object of every model, and on its pods: given to all, or
    copied from each ModelDeployment. A change of one restarts the pods that have it. Keys that change what pods do are
    refused. Default: none.

    modelMetadata: {labels: {environment: production}, propagatedLabels: [cost-centre]}"""
    pod_users: Annotated[list[PodUser], Field(max_length=64)] = []
    """User and group ids of models' pods, for policies that ask for ids above 10000. Of several entries for a namespace
    and an engine the first counts. A change restarts the pods of those models. Default: none, and each engine has its
    own: 2000 and group 0 for vLLM and SGLang, 1000 for NIM.

    podUsers: [{runAsUser: 10001, runAsGroup: 10001, namespaces: ["*"]}]"""
    watch_namespaces: Annotated[list[DnsLabel], Field(max_length=64)] = []
    """Namespaces to manage. Default: every namespace."""
    isolation: IsolationFloor = IsolationFloor()
    """The least that any deployment may ask of the proof of isolation."""
    integrity: IntegrityFloor = IntegrityFloor()
    """How weights on shares and claims are verified before an engine starts."""
    preflight: PreflightFloor = PreflightFloor()
    """How GPUs are checked before an engine starts."""
    volumes: Volumes = Volumes()
    """PersistentVolumes for shares."""
    lease: Lease = Lease()
    """The lease that makes this process the only writer."""
    probe_namespace: DnsLabel = "hermetic-probe"
    """Namespace of the egress probe's pods. Some of them share their machine's network, so its Pod Security Standard is
    privileged and nothing else belongs there. Default: hermetic-probe."""
    additional_private_ranges: Annotated[list[SourceRange], Field(max_length=32)] = []
    """Address ranges of your virtual networks outside RFC 1918 and 100.64.0.0/10 that are private all the same. A load
    balancer address in none of them is taken for public. Default: none."""
    pod_ranges: Annotated[list[SourceRange], Field(max_length=32)] = []
    """Address ranges of the cluster's pods. They are taken out of the ranges from which clients of a load balancer may
    connect: Calico and Azure Network Policy Manager apply a range to addresses of pods too, and pods come in by
    `endpoint.allowedClients` alone. Default: none."""
    allowed_dns_servers: Annotated[list[ServerAddress], Field(max_length=32)] = []
    """IP addresses of DNS servers that CoreDNS and the machines may ask beside Azure's own: those of which you know
    that they ask no server outside in turn. The same list is in the file given to `hermetic audit --policy`. Default:
    none."""
    harmless_kinds: Annotated[list[KindOfAGroup], Field(max_length=256)] = []
    """Kinds of the API server that let no packet out, as GROUP/Kind, or GROUP/* for all of a group: those of which you
    know that. The same list is in the file given to `hermetic audit --policy`. Default: none."""
    trusted_node_agents: Annotated[list[TrustedNodeAgent], Field(max_length=64)] = []
    """Your own agents on the nodes, such as NVIDIA's device plug-in, that may have rights over their node: each by
    namespace, controller and image, and nothing wider. The registry of each image must be one of `registries`. The same
    list goes into the file given to `hermetic audit --policy`. Default: none."""
    workers: Annotated[int, Field(ge=1, le=64)] = 8
    """Deployments reconciled at the same time, 1 to 64. Default: 8."""
    max_requests_in_flight: Annotated[int, Field(ge=1, le=100)] = 20
    """Requests to the API server at the same time, 1 to 100. Default: 20."""
    resync_seconds: Annotated[int, Field(ge=30, le=86400)] = 600
    """Seconds between full lists of everything, which repair the effects of missed watch events. Default: 600."""
    max_evidence_age_seconds: Annotated[int, Field(ge=300, le=604800)] = 86400
    """Oldest evidence of isolation that any deployment may accept, in seconds; a deployment can ask for fresher
    evidence, never for older. Default: 86400 (a day)."""
    http_port: Annotated[int, Field(ge=1024, le=65535)] = 8080
    """Port of /healthz, /readyz and /metrics. Default: 8080."""
    log: LogSettings = LogSettings()
    """The operator's log. Default: level info, one JSON object per line."""

    def allows_toleration(self, toleration: Toleration, namespace: str) -> bool:
        """Whether a deployment of the namespace may accept the taints of this toleration."""
        named = [one for one in self.tolerations if covers(one.namespaces, namespace) and one.key == toleration.key]
        by_value = toleration.operator == "Equal"
        return not self.tolerations or any(
            not one.values or (by_value and (toleration.value or "") in one.values) for one in named
        )

    def pod_user(self, engine: Member, namespace: str) -> PodUser | None:
        """The user of the pods of an engine in the namespace; None for the engine's own."""
        named = (user for user in self.pod_users if covers(user.namespaces, namespace) and engine in user.engines)
        return next(named, None)

    def gateways_for(self, route: GatewayRoute, namespace: str) -> tuple[AllowedGateway, ...]:
        """The lines that allow a deployment of the namespace the Gateway of its route."""
        return tuple(allowed for allowed in self.gateways if allowed.takes(route, namespace))

    def allows_address(self, address: str, namespace: str) -> bool:
        """Whether a deployment of the namespace may ask for this address."""
        named = [one for one in self.addresses if covers(one.namespaces, namespace)]
        ranges = [ip_network(cidr) for one in named for cidr in one.ranges]
        return not self.addresses or not address or is_in(parse_address(address), ranges)

"""The operator's own configuration: one YAML file, read once at start, every key declared and explained here."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.allow_lists import (
    AllowedAddresses,
    AllowedEngineSettings,
    AllowedNodeLabel,
    AllowedPriorityClass,
    AllowedRegistry,
    AllowedRemoteCode,
    AllowedShare,
    AllowedToleration,
)
from hermetic.api.engine import Member
from hermetic.api.field_types import DnsLabel, KindOfAGroup, SourceRange
from hermetic.api.gateway import AllowedGateway
from hermetic.api.integrity import IntegrityFloor
from hermetic.api.ip_ranges import is_address, is_in, parse_address
from hermetic.api.isolation import IsolationFloor
from hermetic.api.log_settings import LogSettings
from hermetic.api.model_metadata import ModelMetadata
from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.api.pod_users import PodUser
from hermetic.api.preflight import PreflightFloor
from hermetic.api.rules import ApiModel, Rule
from hermetic.api.scheduling import Toleration
from hermetic.api.strictness import covers


def _is_address(text: str) -> bool:
    return "%" not in text and is_address(text)


ServerAddress = Annotated[
    str,
    StringConstraints(max_length=45),
    Rule(cel="isIP(self)", message="must be an IP address such as '10.1.0.4', without a port", holds=_is_address),
]


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
                {agent.image.partition("/")[0] for agent in configuration.trusted_node_agents}
                <= {registry.host for registry in configuration.registries}
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
        named = [
            allowed
            for allowed in self.tolerations
            if covers(allowed.namespaces, namespace) and allowed.key == toleration.key
        ]
        by_value = toleration.operator == "Equal"
        return not self.tolerations or any(
            not allowed.values or (by_value and (toleration.value or "") in allowed.values) for allowed in named
        )

    def pod_user(self, engine: Member, namespace: str) -> PodUser | None:
        """The user of the pods of an engine in the namespace; None for the engine's own."""
        named = (user for user in self.pod_users if covers(user.namespaces, namespace) and engine in user.engines)
        return next(named, None)

    def gateways_for(self, gateway: tuple[str, str], namespace: str) -> tuple[AllowedGateway, ...]:
        """The lines that allow a deployment of the namespace a Gateway (namespace, name)."""
        return tuple(allowed for allowed in self.gateways if allowed.takes(gateway, namespace))

    def allows_address(self, address: str, namespace: str) -> bool:
        """Whether a deployment of the namespace may ask for this address."""
        named = [allowed for allowed in self.addresses if covers(allowed.namespaces, namespace)]
        ranges = [ip_network(cidr) for allowed in named for cidr in allowed.ranges]
        return not self.addresses or not address or is_in(parse_address(address), ranges)

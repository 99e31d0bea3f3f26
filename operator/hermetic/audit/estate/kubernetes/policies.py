"""Network policies of Kubernetes, Cilium and Calico: the pods that they select, and the egress that they allow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes import dns_ports
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, WithUnreadFields, api_object
from hermetic.audit.estate.resource import Part


class Requirement(Part):
    """One expression of a selector: In, NotIn, Exists, DoesNotExist; open."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None

    def holds(self, labels: Mapping[str, str]) -> bool | None:
        """Whether labels meet it; None for an unknown operator."""
        match self.operator:
            case "In":
                return labels.get(self.key) in (self.values or ())
            case "NotIn":
                return labels.get(self.key) not in (self.values or ())
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
        return None


class LabelSelector(WithUnreadFields):
    """A label selector; an empty one selects everything."""

    match_labels: FreeMap[str] | None = None
    match_expressions: list[Requirement] | None = None

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """All its requirements; matchLabels are converted to expressions, unread fields to one that is not known."""
        named = (
            Requirement.model_construct(key=key, operator="In", values=[value])
            for key, value in (self.match_labels or {}).items()
        )
        unread = (Requirement.model_construct(key=field) for field in self.unread_fields or ())
        return (*named, *(self.match_expressions or ()), *unread)


class IpBlock(WithUnreadFields):
    cidr: str = ""
    except_: list[str] | None = None


class Peer(WithUnreadFields):
    """One destination: an address range, or pods by their labels."""

    ip_block: IpBlock | None = None
    pod_selector: LabelSelector | None = None
    namespace_selector: LabelSelector | None = None


class EgressRule(WithUnreadFields):
    """Destinations; without any, all of them."""

    to: list[Peer] | None = None
    ports: list[dns_ports.RulePort] | None = None

    @property
    def is_dns_only(self) -> bool:
        """Whether it allows the ports of DNS and no other."""
        return dns_ports.kubernetes_ports(self.ports)


class NetworkPolicySpec(WithUnreadFields):
    """`policy_types` absent: Ingress, and Egress exactly where there are egress rules."""

    HARMLESS: ClassVar = frozenset({"ingress"})
    pod_selector: LabelSelector = LabelSelector()
    policy_types: list[str] | None = None
    egress: list[EgressRule] | None = None


@api_object("networking.k8s.io/v1/networkpolicies", "NetworkPolicy")
class NetworkPolicy(KubernetesObject):
    spec: NetworkPolicySpec = NetworkPolicySpec()

    @property
    def closes_egress(self) -> bool:
        """Whether pods that it selects may connect only where some policy allows it."""
        types = self.spec.policy_types
        return bool(self.spec.egress) if types is None else "Egress" in types


class CidrRule(WithUnreadFields):
    """A range as text, and its exceptions; or a reference to a group of ranges."""

    cidr: str | None = None
    cidr_group_ref: str | None = None
    cidr_group_selector: FreeMap[Any] | None = None
    except_: list[str] | None = None


class CiliumEgressRule(WithUnreadFields):
    """Egress that Cilium allows. Without a destination, only ports: everywhere.

    The fields are those of cilium/cilium, pkg/policy/api/egress.go; toRequires allows nothing by itself.
    """

    HARMLESS: ClassVar = frozenset({"authentication", "toRequires"})
    to_entities: list[str] | None = None
    to_cidr: list[str] | None = None
    to_cidr_set: list[CidrRule] | None = None
    to_fqdns: list[FreeMap[Any]] | None = None
    to_endpoints: list[LabelSelector] | None = None
    to_services: list[FreeMap[Any]] | None = None
    to_nodes: list[FreeMap[Any]] | None = None
    to_groups: list[FreeMap[Any]] | None = None
    to_ports: list[dns_ports.CiliumPorts] | None = None
    icmps: list[FreeMap[Any]] | None = None

    @property
    def is_dns_only(self) -> bool:
        """Whether it allows the ports of DNS and no other."""
        return dns_ports.cilium_ports(self.to_ports)

    @property
    def destinations(self) -> tuple[list[Any] | None, ...]:
        """All its destination fields; None for one that is not there."""
        return (
            self.to_entities, self.to_cidr, self.to_cidr_set, self.to_fqdns, self.to_endpoints, self.to_services,
            self.to_nodes, self.to_groups,
        )  # fmt: skip

    @property
    def names_a_destination(self) -> bool | None:
        """Whether a destination restricts it; None where its only ones are empty lists that versions read differently.

        An empty list of toEndpoints, toCIDR, toCIDRSet or toEntities selects nothing since
        github.com/cilium/cilium/pull/29608, and restricts nothing before; of toNodes it is not documented. Empty
        lists of the others restrict nothing.
        """
        if any(self.destinations):
            return True
        since = (self.to_endpoints, self.to_cidr, self.to_cidr_set, self.to_entities, self.to_nodes)
        return None if any(destination_list is not None for destination_list in since) else False

    @property
    def is_unsupported(self) -> bool:
        """Whether versions of the agent reject a policy with this rule, with all its other rules.

        cilium/cilium, pkg/policy/api/rule_validation.go: "Combining ToEndpoints and ToCIDR is not supported yet", for
        each two destination fields; ICMPs only without toPorts; toServices with toPorts in some versions.
        """
        services_with_ports = bool(self.to_services and self.to_ports)
        return sum(map(bool, self.destinations)) > 1 or services_with_ports or bool(self.to_ports and self.icmps)


class CiliumIngressRule(Part):
    """Ingress that Cilium allows; read only to see whether the agent takes the whole policy."""

    from_entities: list[str] | None = None
    from_cidr: list[str] | None = None
    from_cidr_set: list[CidrRule] | None = None
    from_endpoints: list[LabelSelector] | None = None
    from_nodes: list[FreeMap[Any]] | None = None
    from_groups: list[FreeMap[Any]] | None = None
    to_ports: list[FreeMap[Any]] | None = None
    icmps: list[FreeMap[Any]] | None = None

    @property
    def is_unsupported(self) -> bool:
        """As `CiliumEgressRule.is_unsupported`."""
        some = (
            self.from_entities, self.from_cidr, self.from_cidr_set, self.from_endpoints, self.from_nodes,
            self.from_groups,
        )  # fmt: skip
        return sum(map(bool, some)) > 1 or bool(self.to_ports and self.icmps)


class DefaultDeny(Part):
    """Whether a policy denies a direction by default; absent: where it has rules."""

    egress: bool | None = None


class CiliumSpec(WithUnreadFields):
    HARMLESS: ClassVar = frozenset({"description", "labels", "log"})
    endpoint_selector: LabelSelector | None = None
    node_selector: LabelSelector | None = None
    enable_default_deny: DefaultDeny | None = None
    ingress: list[CiliumIngressRule] | None = None
    ingress_deny: list[CiliumIngressRule] | None = None
    egress: list[CiliumEgressRule] | None = None
    egress_deny: list[CiliumEgressRule] | None = None

    @property
    def is_unsupported(self) -> bool:
        """Whether versions of the agent reject it (cilium/cilium, pkg/policy/api/rule_validation.go)."""
        both = self.endpoint_selector is not None and self.node_selector is not None
        outward = any(rule.is_unsupported for rules in (self.egress, self.egress_deny) for rule in rules or ())
        inward = any(rule.is_unsupported for rules in (self.ingress, self.ingress_deny) for rule in rules or ())
        return both or outward or inward

    @property
    def closes_egress(self) -> bool:
        """Whether what it selects may connect only where some policy allows it. An empty list has no effect.

        `enableDefaultDeny.egress` can only take the effect away: the agent reads it where the rule has a section
        egress or egressDeny (cilium/cilium, pkg/policy/repository.go, computePolicyEnforcementAndRules).
        """
        default = self.enable_default_deny.egress if self.enable_default_deny is not None else None
        return bool(self.egress or self.egress_deny) and default is not False


class CiliumCondition(Part):
    type: str | None = None
    status: str | None = None


class CiliumStatus(Part):
    conditions: list[CiliumCondition] | None = None


class CiliumPolicy(KubernetesObject):
    """The common fields of both kinds of Cilium policies: one rule in `spec`, or several in `specs`."""

    spec: CiliumSpec | None = None
    specs: list[CiliumSpec] | None = None
    status: CiliumStatus | None = None

    @property
    def may_be_rejected(self) -> bool:
        """Whether Cilium says that it is not valid, or a rule shows it: the agent takes a policy whole or not at all.

        Cilium's operator sets the condition Valid (cilium/cilium, operator/pkg/ciliumpolicyvalidator); versions that
        do not set it leave the rules.
        """
        conditions = (self.status.conditions if self.status is not None else None) or ()
        is_invalid = any(condition.type == "Valid" and condition.status == "False" for condition in conditions)
        return is_invalid or any(rule.is_unsupported for rule in self.rules)

    @property
    def rules(self) -> Iterator[CiliumSpec]:
        if self.spec is not None:
            yield self.spec
        yield from self.specs or ()


@api_object("cilium.io/v2/ciliumnetworkpolicies", "CiliumNetworkPolicy")
class CiliumNetworkPolicy(CiliumPolicy):
    pass


@api_object("cilium.io/v2/ciliumclusterwidenetworkpolicies", "CiliumClusterwideNetworkPolicy", namespaced=False)
class CiliumClusterwideNetworkPolicy(CiliumPolicy):
    pass


class CalicoDestination(WithUnreadFields):
    """Destination of a Calico rule; without any field, everywhere. `domains` are external names."""

    HARMLESS: ClassVar = frozenset({"notPorts"})
    ports: list[int | str] | None = None
    nets: list[str] | None = None
    not_nets: list[str] | None = None
    domains: list[str] | None = None
    selector: str | None = None
    not_selector: str | None = None
    namespace_selector: str | None = None
    services: FreeMap[Any] | None = None
    service_accounts: FreeMap[Any] | None = None


class CalicoRule(WithUnreadFields):
    """`action` is Allow, Deny, Pass or Log; open. The other fields only restrict it (api/policy_common.go)."""

    HARMLESS: ClassVar = frozenset({"ipVersion", "notProtocol", "icmp", "notICMP", "source", "http", "metadata"})
    action: str = ""
    protocol: str | int | None = None
    destination: CalicoDestination | None = None

    @property
    def is_dns_only(self) -> bool:
        """Whether it allows the ports of DNS and no other."""
        return self.destination is not None and dns_ports.calico_ports(self.destination.ports, self.protocol)


CALICO_DEFAULT_TIER = "default"


class CalicoSpec(WithUnreadFields):
    """Rules in order. `types` absent: Egress exactly where there are egress rules; `tier` absent: the default tier."""

    HARMLESS: ClassVar = frozenset(
        {"order", "selector", "namespaceSelector", "serviceAccountSelector", "ingress", "doNotTrack", "preDNAT",
         "applyOnForward", "performanceHints"}
    )  # fmt: skip
    tier: str | None = None
    types: list[str] | None = None
    egress: list[CalicoRule] | None = None

    @property
    def closes_egress(self) -> bool:
        """Whether what it selects may connect only where some policy allows it."""
        return bool(self.egress) if self.types is None else "Egress" in self.types

    @property
    def is_in_the_default_tier(self) -> bool:
        """Whether its tier is the one that holds the policies of Kubernetes.

        By the field alone, as Calico reads it: a name may have the tier as its prefix (`default.x`) or not.
        """
        return (self.tier or CALICO_DEFAULT_TIER) == CALICO_DEFAULT_TIER


@api_object("crd.projectcalico.org/v1/networkpolicies", "NetworkPolicy")
class CalicoNetworkPolicy(KubernetesObject):
    spec: CalicoSpec = CalicoSpec()


@api_object("crd.projectcalico.org/v1/globalnetworkpolicies", "GlobalNetworkPolicy", namespaced=False)
class CalicoGlobalNetworkPolicy(KubernetesObject):
    spec: CalicoSpec = CalicoSpec()


class CalicoSetSpec(WithUnreadFields):
    """Addresses and names; those of a HostEndpoint are `expected_ips`."""

    HARMLESS: ClassVar = frozenset({"node", "interfaceName", "profiles", "ports"})
    nets: list[str] | None = None
    expected_ips: list[str] | None = None
    allowed_egress_domains: list[str] | None = None


class CalicoSet(KubernetesObject):
    """What a selector of a policy selects, beside pods."""

    spec: CalicoSetSpec = CalicoSetSpec()


@api_object("crd.projectcalico.org/v1/networksets", "NetworkSet")
class CalicoNetworkSet(CalicoSet):
    pass


@api_object("crd.projectcalico.org/v1/globalnetworksets", "GlobalNetworkSet", namespaced=False)
class CalicoGlobalNetworkSet(CalicoSet):
    pass


@api_object("crd.projectcalico.org/v1/hostendpoints", "HostEndpoint", namespaced=False)
class CalicoHostEndpoint(CalicoSet):
    """The interface of a machine, by its addresses: Calico does not check whether some machine has them.

    projectcalico/calico, felix/labelindex/named_port_index.go, extractCIDRsFromHostEndpoint.
    """


CALICO_SETS: tuple[type[CalicoSet], ...] = (CalicoNetworkSet, CalicoGlobalNetworkSet, CalicoHostEndpoint)


class AdminPeer(WithUnreadFields):
    """One destination: pods, namespaces, nodes, ranges of addresses, or names."""

    namespaces: FreeMap[Any] | None = None
    pods: FreeMap[Any] | None = None
    nodes: FreeMap[Any] | None = None
    networks: list[str] | None = None
    domain_names: list[str] | None = None


class AdminRule(WithUnreadFields):
    """`action` is Allow, Accept, Deny or Pass; open. Pass leaves it to the policies that follow."""

    HARMLESS: ClassVar = frozenset({"name"})
    action: str = ""
    to: list[AdminPeer] | None = None
    ports: list[dns_ports.AdminPort] | None = None
    protocols: list[dns_ports.AdminProtocol] | None = None

    @property
    def is_dns_only(self) -> bool:
        """Whether it allows the ports of DNS and no other."""
        return dns_ports.admin_ports(self.ports, self.protocols)


class AdminSpec(WithUnreadFields):
    HARMLESS: ClassVar = frozenset({"tier", "priority", "subject", "ingress"})
    egress: list[AdminRule] | None = None


class AdminPolicy(KubernetesObject):
    spec: AdminSpec = AdminSpec()

    @property
    def denies_ranges(self) -> bool:
        """Whether a rule of it denies egress to addresses: it isolates pods if the engine implements the kind."""
        return any(rule.action == "Deny" and peer.networks for rule in self.spec.egress or () for peer in rule.to or ())


@api_object("policy.networking.k8s.io/v1alpha1/adminnetworkpolicies", "AdminNetworkPolicy", namespaced=False)
class AdminNetworkPolicy(AdminPolicy):
    """Before every NetworkPolicy."""


@api_object(
    "policy.networking.k8s.io/v1alpha1/baselineadminnetworkpolicies", "BaselineAdminNetworkPolicy", namespaced=False
)
class BaselineAdminNetworkPolicy(AdminPolicy):
    """For pods that no NetworkPolicy selects."""


@api_object("policy.networking.k8s.io/v1alpha2/clusternetworkpolicies", "ClusterNetworkPolicy", namespaced=False)
class ClusterNetworkPolicy(AdminPolicy):
    """The successor of both, with a tier. v1alpha2 is the only version released (network-policy-api v0.2.0)."""


ADMIN_KINDS: tuple[type[AdminPolicy], ...] = (AdminNetworkPolicy, BaselineAdminNetworkPolicy, ClusterNetworkPolicy)

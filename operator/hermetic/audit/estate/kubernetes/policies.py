"""Network policies of Kubernetes, and those of its administrators: what they select, and the egress that they allow."""

from __future__ import annotations

from collections.abc import Mapping
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

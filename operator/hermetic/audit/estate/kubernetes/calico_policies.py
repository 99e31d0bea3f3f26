"""Policies and sets of addresses of Calico: the egress that they allow, and what their selectors select."""

from __future__ import annotations

from typing import Any, ClassVar

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes import dns_ports
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, WithUnreadFields, api_object


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

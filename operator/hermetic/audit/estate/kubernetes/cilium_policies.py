"""Policies of Cilium: the endpoints that they select, and the egress that they allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes import dns_ports
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, WithUnreadFields, api_object
from hermetic.audit.estate.kubernetes.policies import LabelSelector
from hermetic.audit.estate.resource import Part


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

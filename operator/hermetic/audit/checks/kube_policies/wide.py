"""Policies are additive: one rule that allows everything overrides all narrower ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from hermetic.api.ip_ranges import AZURE_HOST, IPV4_MAPPED, METADATA_HOST, unmapped
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.cluster.workloads import trust_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.calico_policies import (
    CALICO_DEFAULT_TIER,
    CALICO_SETS,
    CalicoGlobalNetworkPolicy,
    CalicoNetworkPolicy,
    CalicoRule,
    CalicoSet,
    CalicoSpec,
)
from hermetic.audit.estate.kubernetes.cilium_policies import (
    CiliumClusterwideNetworkPolicy,
    CiliumEgressRule,
    CiliumNetworkPolicy,
)
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.platform import PLATFORM_NAMESPACES, PlatformTrust, is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import (
    ADMIN_KINDS,
    AdminPeer,
    AdminPolicy,
    EgressRule,
    LabelSelector,
    NetworkPolicy,
    Peer,
    Requirement,
)
from hermetic.audit.evaluation.each_object import Objections, counted, not_known, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import (
    ANY_V4,
    ANY_V6,
    OF_THE_HOST,
    holds_outside,
    internet,
    network,
    networks,
    overlap,
    prefixes,
    space,
    without,
)
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

K = TypeVar("K", bound=KubernetesObject)


class Wide(NamedTuple):
    """Whether a rule leads out (None: unknown), and why.

    `severity` where it differs from that of the check; `host_address` where it leads to one of these and not further.
    """

    leads_out: bool | None
    why: str
    severity: Severity | None = None
    host_address: str = ""


_WHAT_ANSWERS = {
    AZURE_HOST: "the host of the machine answers there; only port 53 by UDP and TCP, for DNS, may be open to pods",
    METADATA_HOST: "the metadata service answers there, with tokens of the identities of the machine",
}

ALLOWS = frozenset({"Allow", "Accept"})
WORLD = frozenset({"all", "world", "world-ipv4", "world-ipv6"})
INSIDE = frozenset(
    {"cluster", "host", "remote-node", "kube-apiserver", "init", "ingress", "health", "unmanaged", "none"}
)


# Cilium's reserved labels of what is no pod: "reserved:world" is everything outside. A dot equals the colon.
_RESERVED = re.compile(r"(?:any[:.])?reserved(?:[:.](?P<entity>.*))?")
_OF_A_NAMESPACE = re.compile(
    r"(?:(?:k8s|any)[:.])?io\.(?:kubernetes\.pod\.namespace$|cilium\.k8s\.namespace\.labels\.)"
)
_WITHOUT = frozenset({"DoesNotExist", "NotIn"})
_NAMES_NOTHING = "an egress rule has a destination that names nothing this release knows"


@check("k8s-policy-allow-all")
def k8s_policy_allow_all(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """No egress rule of any policy leads to public addresses."""
    plain = everywhere(estate, NetworkPolicy)
    cilium, clusterwide = everywhere(estate, CiliumNetworkPolicy), everywhere(estate, CiliumClusterwideNetworkPolicy)
    calico, calico_global = everywhere(estate, CalicoNetworkPolicy), everywhere(estate, CalicoGlobalNetworkPolicy)
    admin = tuple(everywhere(estate, kind) for kind in ADMIN_KINDS)
    sets = tuple(everywhere(estate, kind) for kind in CALICO_SETS)
    outside = tuple(calico_set for listing in sets for calico_set in listing if _leads_outside(calico_set))
    pods = everywhere(estate, Pod)
    spared = _of_the_platform_alone(pods, trust_of(estate, policy))

    def by_calico(policy: CalicoNetworkPolicy | CalicoGlobalNetworkPolicy) -> Iterator[Wide]:
        return _calico(policy, outside)

    results = (
        *objections(plain, _evaluate(_plain, spared)),
        *objections(cilium, _evaluate(_cilium, spared)),
        *objections(clusterwide, _evaluate(_cilium, spared)),
        *objections(calico, _evaluate(by_calico, spared)),
        *objections(calico_global, _evaluate(by_calico, spared)),
        *(result for listing in admin for result in objections(listing, _evaluate(_admin, spared))),
    )
    policies = (plain, cilium, clusterwide, calico, calico_global, *admin)
    listings = (*policies, *sets, pods)
    number = sum(len(listing.items) for listing in policies)
    fine = f"{counted(number, 'network policy', 'network policies')}: no egress rule leads to public addresses"
    yield from settled(estate, results, "NoWideRule", fine, *listings)


def _of_the_platform_alone(pods: Iterable[Pod], trust: PlatformTrust) -> frozenset[str]:
    """Platform namespaces with platform pods only, whose policies select no other pod."""
    foreign = set()
    for pod in pods:
        try:
            if not pod.has_ended and not is_the_platforms(pod, trust):
                foreign.add(pod.namespace)
        except FactDamaged:
            foreign.add(pod.namespace)
    return (PLATFORM_NAMESPACES & trust.namespaces) - foreign


def _evaluate(rules_of: Callable[[K], Iterable[Wide]], spared: Container[str]) -> Objections[K]:
    def evaluate(policy: K) -> Iterator[CheckResult]:
        if policy.namespace in spared:
            return
        yield from not_known(policy)
        for wide in rules_of(policy):
            if wide.leads_out is None:
                yield unknown(policy.id, "RuleUnknown", wide.why, policy)
            elif wide.leads_out:
                yield _leads_out(policy, wide)

    return evaluate


def _leads_out(policy: KubernetesObject, wide: Wide) -> CheckResult:
    path = path_of(POD, hops.kubernetes(policy.id), wide.host_address or INTERNET)
    return fails(
        policy.id,
        "HostAddressAllowed" if wide.host_address else "WideEgressRule",
        wide.why,
        policy,
        paths=(path,),
        severity=wide.severity,
        blames=(("spec", "egress"),),
    )


# ------------------------------------------------------------------ Kubernetes


def _plain(policy: NetworkPolicy) -> Iterator[Wide]:
    if policy.closes_egress:
        for rule in policy.spec.egress or ():
            yield from _plain_rule(rule)


def _plain_rule(rule: EgressRule) -> Iterator[Wide]:
    if not rule.to:
        yield Wide(True, "an egress rule without `to` lets traffic go everywhere")
        return
    for peer in rule.to:
        if peer.ip_block is not None:
            yield _range(peer.ip_block.cidr, peer.ip_block.except_ or (), dns_only=rule.is_dns_only)
        elif peer == Peer():
            yield Wide(None, _NAMES_NOTHING)


# ------------------------------------------------------------------ SIG Network's admin policies


def _admin(policy: AdminPolicy) -> Iterator[Wide]:
    for rule in policy.spec.egress or ():
        if rule.action in ALLOWS:
            for peer in rule.to or ():
                yield from _admin_peer(peer, dns_only=rule.is_dns_only)
        elif rule.action not in {"Deny", "Pass"}:
            yield Wide(None, f"action {rule.action}, which this release does not know")


def _admin_peer(peer: AdminPeer, *, dns_only: bool) -> Iterator[Wide]:
    for cidr in peer.networks or ():
        yield _range(cidr, (), dns_only=dns_only)
    if peer.domain_names:
        yield Wide(True, f"domainNames: {', '.join(peer.domain_names[:3])} are let through")
    if peer == AdminPeer():
        yield Wide(None, _NAMES_NOTHING)


# ------------------------------------------------------------------ Cilium


def _cilium(policy: CiliumNetworkPolicy | CiliumClusterwideNetworkPolicy) -> Iterator[Wide]:
    for spec in policy.rules:
        for rule in spec.egress or ():
            yield from _cilium_rule(rule)


def _cilium_rule(rule: CiliumEgressRule) -> Iterator[Wide]:
    # A rule without any field allows nothing: Cilium's form of a default deny.
    if rule.to_ports is not None or rule.icmps is not None:
        yield from _with_ports(rule)
    for entity in rule.to_entities or ():
        if entity in WORLD:
            yield Wide(True, f"toEntities: {entity}")
        elif entity not in INSIDE:
            yield Wide(None, f"toEntities: {entity}, which this release does not know")
    yield from _cilium_ranges(rule)
    for selector in rule.to_endpoints or ():
        yield from _endpoints(selector)
    if rule.to_fqdns:
        yield Wide(True, "toFQDNs: names outside are let through")
    if rule.to_groups:
        yield Wide(None, "toGroups names addresses that only a cloud knows")


def _cilium_ranges(rule: CiliumEgressRule) -> Iterator[Wide]:
    for cidr in rule.to_cidr or ():
        yield _range(cidr, (), dns_only=rule.is_dns_only)
    for cidr_rule in rule.to_cidr_set or ():
        if cidr_rule.cidr:
            yield _range(cidr_rule.cidr, cidr_rule.except_ or (), dns_only=rule.is_dns_only)
        else:
            yield Wide(None, "toCIDRSet names ranges that stand elsewhere")


def _with_ports(rule: CiliumEgressRule) -> Iterator[Wide]:
    if rule.to_services and rule.to_ports:  # github.com/cilium/cilium/issues/20067
        yield Wide(None, "toServices with toPorts: some versions let the ports go everywhere")
    elif rule.names_a_destination is None:
        yield Wide(None, "an egress rule with ports has an empty list as its destination: everywhere in some versions")
    elif not rule.names_a_destination and not rule.unread_fields:
        yield Wide(True, "an egress rule with ports and no destination lets them go everywhere")


def _endpoints(selector: LabelSelector) -> Iterator[Wide]:
    some = [Requirement.model_construct(key=key, operator="Exists", values=None) for key in selector.match_labels or ()]
    for requirement in (*some, *(selector.match_expressions or ())):
        shown = f"toEndpoints: {requirement.key} {requirement.operator}"
        if match := _RESERVED.fullmatch(requirement.key):
            wide = match["entity"] in WORLD and requirement.operator not in _WITHOUT
            message = f"toEndpoints: {requirement.key}" if wide else f"{shown}, which this release does not know"
            yield Wide(True if wide else None, message)
        elif requirement.operator in _WITHOUT and _OF_A_NAMESPACE.match(requirement.key):
            yield Wide(
                None, f"{shown}: destinations outside of the cluster have no namespace, and are selected as well"
            )


# ------------------------------------------------------------------ Calico


def _calico(policy: CalicoNetworkPolicy | CalicoGlobalNetworkPolicy, outside: tuple[CalicoSet, ...]) -> Iterator[Wide]:
    for rule in policy.spec.egress or ():
        if rule.action == "Allow":
            yield from _calico_rule(rule, outside)
        elif rule.action == "Pass":
            yield from _calico_pass(rule, policy.spec, outside)
        elif rule.action not in {"Deny", "Log"}:
            yield Wide(None, f"action {rule.action}, which this release does not know")


def _calico_pass(rule: CalicoRule, spec: CalicoSpec, outside: tuple[CalicoSet, ...]) -> Iterator[Wide]:
    """What a rule passes on leaves its tier, and no later policy of the tier sees it.

    Policies of Kubernetes stand in the default tier, at order 1000 (projectcalico/calico,
    libcalico-go/lib/backend/k8s/conversion/conversion.go). What passes the last tier meets the profile of the
    namespace, which allows everything (ibid., NamespaceToProfile; tigera/docs, calico/reference/resources/tier.mdx).
    """
    tier = spec.tier or CALICO_DEFAULT_TIER
    for wide in _calico_rule(rule, outside):
        if wide.leads_out is False:
            continue
        if wide.leads_out and spec.is_in_the_default_tier:
            yield wide._replace(why=f"Pass in the default tier goes past the policies of Kubernetes: {wide.why}")
        else:
            yield Wide(None, f"Pass in tier {tier}, and what follows is not evaluated: {wide.why}")


def _calico_rule(rule: CalicoRule, outside: tuple[CalicoSet, ...]) -> Iterator[Wide]:
    to = rule.destination
    if to is not None and to.domains:
        yield Wide(True, f"domains outside are let through: {', '.join(to.domains[:3])}")
    elif to is not None and (to.selector or to.namespace_selector or to.services or to.service_accounts):
        if outside:
            yield Wide(None, f"its destination is a selector, and {outside[0].id} holds public addresses or names")
    elif to is not None and to.nets:
        for net in to.nets:
            yield _range(net, to.not_nets or (), dns_only=rule.is_dns_only)
    elif to is not None and to.not_nets:
        # Without nets and ipVersion, a rule is for both families.
        families = [_range(str(prefix), to.not_nets, dns_only=rule.is_dns_only) for prefix in (ANY_V4, ANY_V6)]
        wide = next((candidate for candidate in families if candidate.leads_out), None)
        yield wide or next((candidate for candidate in families if candidate.leads_out is None), families[0])
    elif to is None or not to.unread_fields:
        yield Wide(True, f"{rule.action}: a rule without a destination lets traffic go everywhere")


def _leads_outside(calico_set: CalicoSet) -> bool:
    named = (*(calico_set.spec.nets or ()), *(calico_set.spec.expected_ips or ()))
    nets = networks(named)
    unread = len(nets) != len(named) or calico_set.spec.unread_fields
    return bool(unread) or bool(calico_set.spec.allowed_egress_domains) or any(holds_outside(net) for net in nets)


def _range(cidr: str | None, excepted: Iterable[str], *, dns_only: bool) -> Wide:
    net = network(cidr or "")
    if net is None:
        return Wide(None, f"{cidr!r} is not a range of addresses")
    net = unmapped(net)
    left = without(space((net,)), space(networks(excepted)))
    public = next(prefixes(overlap(left, internet())), None)
    if public is not None:
        return Wide(
            True, f"lets traffic go to {cidr}" + (f", which still holds {public}" if str(public) != cidr else "")
        )
    if overlap(left, space((IPV4_MAPPED,))):
        return Wide(None, f"{cidr} holds IPv4 addresses written as IPv6, which engines read differently")
    return _host_address(
        cidr, [str(prefix.network_address) for prefix in prefixes(overlap(left, OF_THE_HOST))], dns_only
    )


def _host_address(cidr: str | None, addresses: Sequence[str], dns_only: bool) -> Wide:
    """The addresses of the host in a range. Azure's resolver answers on port 53 of the first.

    Metadata is medium: it gives tokens of the machine's identities, and forwards no packet.
    """
    closed = [address for address in addresses if not (dns_only and address == AZURE_HOST)]
    if not closed:
        return Wide(False, "")
    holds = "" if f"{closed[0]}/32" == cidr else f", which holds {closed[0]}"
    message = f"lets traffic go to {cidr}{holds}: {_WHAT_ANSWERS[closed[0]]}"
    return Wide(True, message, None if AZURE_HOST in closed else Severity.MEDIUM, closed[0])

"""Policies are additive: one rule that allows everything overrides all narrower ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeVar

from hermetic.api.ip_ranges import IPV4_MAPPED, unmapped
from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.egress.address_ranges import (
    ANY_V4,
    ANY_V6,
    internet,
    is_public,
    network,
    networks,
    overlap,
    prefixes,
    space,
    without,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import KubernetesObject
from hermetic.audit.estate.kubernetes.platform import PLATFORM_NAMESPACES, PlatformTrust, is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import (
    ADMIN_KINDS,
    CALICO_DEFAULT_TIER,
    CALICO_SETS,
    AdminPeer,
    AdminPolicy,
    CalicoGlobalNetworkPolicy,
    CalicoNetworkPolicy,
    CalicoRule,
    CalicoSet,
    CalicoSpec,
    CiliumClusterwideNetworkPolicy,
    CiliumEgressRule,
    CiliumNetworkPolicy,
    EgressRule,
    LabelSelector,
    NetworkPolicy,
    Peer,
    Requirement,
)
from hermetic.audit.evaluation import CheckResult, fails, unknown
from hermetic.audit.hops import INTERNET, POD, path_of
from hermetic.audit.kube_findings import Objections, counted, everywhere, not_known, objections, settled
from hermetic.audit.policy import Policy
from hermetic.audit.workloads import trust_of
from hermetic.errors import FactDamaged

K = TypeVar("K", bound=KubernetesObject)
Wide = tuple[bool | None, str]
"""Whether a rule leads out (None: unknown), and why."""

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
    outside = tuple(one for listing in sets for one in listing if _leads_outside(one))
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
        *(one for listing in admin for one in objections(listing, _evaluate(_admin, spared))),
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
        for wide, why in rules_of(policy):
            if wide is None:
                yield unknown(policy.id, "RuleUnknown", why, policy)
            elif wide:
                yield fails(
                    policy.id,
                    "WideEgressRule",
                    why,
                    policy,
                    paths=(path_of(POD, hops.kubernetes(policy.id), INTERNET),),
                    blames=(("spec", "egress"),),
                )

    return evaluate


# ------------------------------------------------------------------ Kubernetes


def _plain(policy: NetworkPolicy) -> Iterator[Wide]:
    if policy.closes_egress:
        for rule in policy.spec.egress or ():
            yield from _plain_rule(rule)


def _plain_rule(rule: EgressRule) -> Iterator[Wide]:
    if not rule.to:
        yield True, "an egress rule without `to` lets traffic go everywhere"
        return
    for peer in rule.to:
        if peer.ip_block is not None:
            yield _range(peer.ip_block.cidr, peer.ip_block.except_ or ())
        elif peer == Peer():
            yield None, _NAMES_NOTHING


# ------------------------------------------------------------------ SIG Network's admin policies


def _admin(policy: AdminPolicy) -> Iterator[Wide]:
    for rule in policy.spec.egress or ():
        if rule.action in ALLOWS:
            for peer in rule.to or ():
                yield from _admin_peer(peer)
        elif rule.action not in {"Deny", "Pass"}:
            yield None, f"action {rule.action}, which this release does not know"


def _admin_peer(peer: AdminPeer) -> Iterator[Wide]:
    for cidr in peer.networks or ():
        yield _range(cidr, ())
    if peer.domain_names:
        yield True, f"domainNames: {', '.join(peer.domain_names[:3])} are let through"
    if peer == AdminPeer():
        yield None, _NAMES_NOTHING


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
            yield True, f"toEntities: {entity}"
        elif entity not in INSIDE:
            yield None, f"toEntities: {entity}, which this release does not know"
    for cidr in rule.to_cidr or ():
        yield _range(cidr, ())
    for one in rule.to_cidr_set or ():
        yield _range(one.cidr, one.except_ or ()) if one.cidr else (None, "toCIDRSet names ranges that stand elsewhere")
    for selector in rule.to_endpoints or ():
        yield from _endpoints(selector)
    if rule.to_fqdns:
        yield True, "toFQDNs: names outside are let through"
    if rule.to_groups:
        yield None, "toGroups names addresses that only a cloud knows"


def _with_ports(rule: CiliumEgressRule) -> Iterator[Wide]:
    if rule.to_services and rule.to_ports:  # github.com/cilium/cilium/issues/20067
        yield None, "toServices with toPorts: some versions let the ports go everywhere"
    elif rule.names_a_destination is None:
        yield None, "an egress rule with ports has an empty list as its destination: everywhere in some versions"
    elif not rule.names_a_destination and not rule.unread_fields:
        yield True, "an egress rule with ports and no destination lets them go everywhere"


def _endpoints(selector: LabelSelector) -> Iterator[Wide]:
    some = [Requirement.model_construct(key=key, operator="Exists", values=None) for key in selector.match_labels or ()]
    for one in (*some, *(selector.match_expressions or ())):
        shown = f"toEndpoints: {one.key} {one.operator}"
        if found := _RESERVED.fullmatch(one.key):
            wide = found["entity"] in WORLD and one.operator not in _WITHOUT
            yield (True, f"toEndpoints: {one.key}") if wide else (None, f"{shown}, which this release does not know")
        elif one.operator in _WITHOUT and _OF_A_NAMESPACE.match(one.key):
            yield None, f"{shown}: what is outside of the cluster has no namespace, and is selected as well"


# ------------------------------------------------------------------ Calico


def _calico(policy: CalicoNetworkPolicy | CalicoGlobalNetworkPolicy, outside: tuple[CalicoSet, ...]) -> Iterator[Wide]:
    for rule in policy.spec.egress or ():
        if rule.action == "Allow":
            yield from _calico_rule(rule, outside)
        elif rule.action == "Pass":
            yield from _calico_pass(rule, policy.spec, outside)
        elif rule.action not in {"Deny", "Log"}:
            yield None, f"action {rule.action}, which this release does not know"


def _calico_pass(rule: CalicoRule, spec: CalicoSpec, outside: tuple[CalicoSet, ...]) -> Iterator[Wide]:
    """What a rule passes on leaves its tier, and no later policy of the tier sees it.

    Policies of Kubernetes stand in the default tier, at order 1000 (projectcalico/calico,
    libcalico-go/lib/backend/k8s/conversion/conversion.go). What passes the last tier meets the profile of the
    namespace, which allows everything (ibid., NamespaceToProfile; tigera/docs, calico/reference/resources/tier.mdx).
    """
    for wide, why in _calico_rule(rule, outside):
        if wide is False:
            continue
        if wide and spec.is_in_the_default_tier:
            yield True, f"Pass in the default tier goes past the policies of Kubernetes: {why}"
        else:
            yield None, f"Pass in tier {spec.tier or CALICO_DEFAULT_TIER}, and what follows is not evaluated: {why}"


def _calico_rule(rule: CalicoRule, outside: tuple[CalicoSet, ...]) -> Iterator[Wide]:
    to = rule.destination
    if to is not None and to.domains:
        yield True, f"domains outside are let through: {', '.join(to.domains[:3])}"
    elif to is not None and (to.selector or to.namespace_selector or to.services or to.service_accounts):
        if outside:
            yield None, f"its destination is a selector, and {outside[0].id} holds public addresses or names"
    elif to is not None and to.nets:
        for net in to.nets:
            yield _range(net, to.not_nets or ())
    elif to is not None and to.not_nets:
        # Without nets and ipVersion, a rule is for both families.
        some = tuple(_range(str(every), to.not_nets) for every in (ANY_V4, ANY_V6))
        yield next((one for one in some if one[0]), None) or next((one for one in some if one[0] is None), some[0])
    elif to is None or not to.unread_fields:
        yield True, f"{rule.action}: a rule without a destination lets traffic go everywhere"


def _leads_outside(one: CalicoSet) -> bool:
    named = (*(one.spec.nets or ()), *(one.spec.expected_ips or ()))
    nets = networks(named)
    unread = len(nets) != len(named) or one.spec.unread_fields
    return bool(unread) or bool(one.spec.allowed_egress_domains) or any(is_public(net) for net in nets)


def _range(cidr: str | None, excepted: Iterable[str]) -> Wide:
    whole = network(cidr or "")
    if whole is None:
        return None, f"{cidr!r} is not a range of addresses"
    whole = unmapped(whole)
    left = without(space((whole,)), space(networks(excepted)))
    public = next(prefixes(overlap(left, internet())), None)
    if public is None and overlap(left, space((IPV4_MAPPED,))):
        return None, f"{cidr} holds IPv4 addresses written as IPv6, which engines read differently"
    if public is None:
        return False, ""
    return True, f"lets traffic go to {cidr}" + (f", which still holds {public}" if str(public) != cidr else "")

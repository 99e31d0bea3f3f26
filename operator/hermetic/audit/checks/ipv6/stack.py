"""IPv6 has routes, NAT and rules of its own, which checks of IPv4 do not cover."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import ScopedSubnet, subnets_of
from hermetic.audit.cluster.resource_lookup import readable
from hermetic.audit.estate.azure.aks import ManagedCluster, NetworkProfile
from hermetic.audit.estate.azure.vnet import Subnet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import each_subnet, of_cluster
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import network
from hermetic.audit.model.hops import INTERNET, NODE, POD, path_of
from hermetic.audit.policy.declarations import Policy

ENGINE_WITHOUT_V6 = "azure"
KNOWN_ENGINES = {"azure", "calico", "cilium"}


@check_each("cluster-dual-stack", of_cluster)
def cluster_dual_stack(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """The cluster assigns IPv6 addresses."""
    families = _families(cluster.network_profile)
    if "ipv6" in families:
        message = f"ipFamilies is {', '.join(sorted(families))}: nodes and pods have a second way to route by"
        yield fails(
            estate.cluster, "DualStack", message, cluster, paths=(path_of(NODE, "ipv6 default route", INTERNET),)
        )
    elif families == {"ipv4"}:
        yield passes(estate.cluster, "IPv4Only", "ipFamilies is IPv4", cluster)
    else:
        message = f"ipFamilies is {', '.join(sorted(families)) or 'absent'}, which is not IPv4 alone"
        yield unknown(estate.cluster, "FamiliesUnknown", message, cluster)


@check_each("subnet-ipv6-prefix", each_subnet)
def subnet_ipv6_prefix(_estate: Estate, _policy: Policy, scoped: ScopedSubnet, subnet: Subnet) -> Iterator[CheckResult]:
    """A subnet of the cluster has an IPv6 prefix."""
    parsed = {text: network(text) for text in subnet.prefixes}
    v6 = sorted(text for text, prefix in parsed.items() if prefix is not None and prefix.version == 6)
    if v6:
        path = path_of(hops.subnet(subnet.name), "ipv6 default route", INTERNET)
        message = f"it has the IPv6 prefix {', '.join(v6)}"
        yield fails(scoped.id, "IPv6Prefix", message, scoped.observation, paths=(path,))
    elif not parsed or None in parsed.values():
        message = f"its prefixes cannot be read: {', '.join(sorted(parsed)) or 'none'}"
        yield unknown(scoped.id, "PrefixesUnknown", message, scoped.observation)
    else:
        yield passes(scoped.id, "IPv4Only", "all of its prefixes are IPv4", scoped.observation)


@check_each("nsg-v6", of_cluster)
def nsg_v6(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Azure's own policy engine filters IPv4 only: with IPv6 in use, NetworkPolicies cover IPv4 alone."""
    profile = cluster.network_profile
    engine = (profile.network_policy if profile is not None else None) or ""
    named, observations = _subnets_with_v6(estate)
    users = [*(["the cluster"] if "ipv6" in _families(profile) else []), *named]
    if engine.lower() in {"", "none"}:
        yield does_not_apply(
            estate.cluster, "NoEngine", "the cluster has no policy engine: see aks-network-policy", cluster
        )
    elif engine.lower() not in KNOWN_ENGINES:
        yield unknown(estate.cluster, "EngineUnknown", f"networkPolicy {engine!r} is not known", cluster)
    elif engine.lower() != ENGINE_WITHOUT_V6:
        yield passes(estate.cluster, "EngineKnowsIPv6", f"networkPolicy is {engine}", cluster)
    elif users:
        message = f"networkPolicy is azure, which filters no IPv6, and IPv6 is used by {', '.join(users)}"
        yield fails(
            estate.cluster, "IPv6Unfiltered", message, cluster, paths=(path_of(POD, "ipv6", "anywhere in reach"),)
        )
    elif _families(profile) != {"ipv4"}:
        yield unknown(estate.cluster, "FamiliesUnknown", "ipFamilies is not IPv4 alone", cluster)
    else:
        yield passes(estate.cluster, "NoIPv6", "networkPolicy is azure, and nothing uses IPv6", cluster, *observations)


def _families(profile: NetworkProfile | None) -> set[str]:
    return {family.lower() for family in (profile.ip_families if profile is not None else None) or ()}


def _subnets_with_v6(estate: Estate) -> tuple[list[str], tuple[Observation, ...]]:
    subnets, observations = subnets_of(estate)
    damaged: list[Observation] = []
    values = [scoped.observation.value for scoped in subnets if scoped.observation.value is not None]
    names = [
        f"subnet {subnet.name}"
        for subnet, prefixes in readable(values, lambda subnet: subnet.prefixes, damaged)
        if any(":" in prefix for prefix in prefixes)
    ]
    return names, (*observations, *(scoped.observation for scoped in subnets), *damaged)

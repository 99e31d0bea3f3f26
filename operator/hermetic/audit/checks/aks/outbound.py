"""Outbound settings of the cluster: type, addresses, gateways, proxy."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks import outbound as table_a
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import of_cluster, pools_of
from hermetic.audit.estate.azure.aks import HttpProxy, ManagedCluster, NetworkProfile
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.findings import Parts, Severity
from hermetic.audit.hops import INTERNET, NODE_SUBNETS, POD, PUBLIC_IP, path_of
from hermetic.audit.policy import Policy

PROFILE_NOT_SEEN = "the answer has no networkProfile with an outboundType"
POOL_MODES = {"system", "user", "gateway"}
ADDS_NOTHING = {"none", "block"}
LEFT_BEHIND = """\
The outbound type of the cluster adds no address. Delete those that an earlier type left behind:
az network public-ip delete --ids ATTACHED_ID"""
NETWORK_WAYS = Parts(
    tuple(check.page.id for check in table_a.CHECKS if check.page.severity is Severity.CRITICAL),
    fail_reason="NoneWithWayOut",
    unknown_reason="NoneUnproved",
)
"""With `none`, AKS adds no egress path, but ways of the network itself remain: default outbound access first of all."""


@check_each("aks-outbound-type", of_cluster)
def aks_outbound_type(estate: Estate, policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """`block` passes; `none` only means that AKS adds nothing and passes where table A does; other types fail."""
    outbound_type = _profile(cluster).outbound_type or ""
    if outbound_type.lower() == "block":
        yield passes(estate.cluster, "Block", "outboundType is block", cluster)
    elif outbound_type.lower() == "none":
        words = "outboundType is none, and no outbound method of the network was found"
        yield passes(estate.cluster, "None", words, cluster, parts=NETWORK_WAYS)
    elif outbound_type.lower() == "userdefinedrouting" and policy.profile == "filtered":
        words = "outboundType is userDefinedRouting, which the profile filtered allows"
        yield passes(estate.cluster, "UserDefinedRouting", words, cluster)
    else:
        gateway = _profile(cluster).nat_gateway_profile
        sku = f" ({gateway.sku})" if gateway is not None and gateway.sku and "nat" in outbound_type.lower() else ""
        words = f"outboundType is {outbound_type or 'absent, which means loadBalancer'}{sku}"
        word = outbound_type or "loadBalancer"
        path = path_of(NODE_SUBNETS, hops.gateway(word) if "natgateway" in word.lower() else word, INTERNET)
        yield fails(estate.cluster, "OutboundType", words, cluster, paths=(path,))


@check_each("aks-effective-outbound-ips", of_cluster)
def aks_effective_outbound_ips(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Public addresses that the cluster uses for outbound traffic now, with any outbound type."""
    profile = _profile(cluster)
    if not _is_seen(profile):
        yield unknown(estate.cluster, "ProfileNotSeen", PROFILE_NOT_SEEN, cluster)
        return
    held = (profile.load_balancer_profile, profile.nat_gateway_profile)
    found = [str(ip.get("id", "?")) for one in held if one is not None for ip in one.effective_outbound_ips or ()]
    if found:
        words = f"the cluster leaves by {', '.join(found)}"
        path = path_of(NODE_SUBNETS, PUBLIC_IP, INTERNET)
        remedy = LEFT_BEHIND if (profile.outbound_type or "").lower() in ADDS_NOTHING else ""
        fill = {"ATTACHED_ID": found}
        yield fails(estate.cluster, "OutboundAddresses", words, cluster, paths=(path,), remedy=remedy, fill=fill)
    else:
        yield passes(estate.cluster, "NoOutboundAddress", "the cluster names no outbound address", cluster)


@check_each("aks-static-egress", of_cluster)
def aks_static_egress(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Static egress gateways: pods leave by them, and no network policy applies."""
    pools = pools_of(estate)
    network = _profile(cluster)
    profile = network.static_egress_gateway_profile
    gateways = [pool.name for pool in pools if (pool.mode or "").lower() == "gateway"]
    odd = [f"{pool.name} ({pool.mode})" for pool in pools if (pool.mode or "user").lower() not in POOL_MODES]
    path = path_of(POD, hops.gateway("gateway pool"), PUBLIC_IP, INTERNET)
    if profile is not None and profile.enabled:
        words = "staticEgressGatewayProfile is enabled"
        yield fails(estate.cluster, "StaticEgress", words, cluster, paths=(path,), fill={"GATEWAY_NAME": gateways})
    elif gateways:
        words = f"gateway pools: {', '.join(gateways)}"
        yield fails(estate.cluster, "GatewayPool", words, cluster, paths=(path,), fill={"GATEWAY_NAME": gateways})
    elif profile is not None and profile.enabled is None:
        words = "staticEgressGatewayProfile does not say whether it is enabled"
        yield unknown(estate.cluster, "StateUnknown", words, cluster)
    elif odd:
        words = f"pools of a mode that is not known: {', '.join(odd)}"
        yield unknown(estate.cluster, "ModeUnknown", words, cluster)
    elif not _is_seen(network):
        yield unknown(estate.cluster, "ProfileNotSeen", PROFILE_NOT_SEEN, cluster)
    else:
        yield passes(estate.cluster, "NoStaticEgress", "no gateway pool, and the feature is off", cluster, pools)


@check_each("aks-http-proxy", of_cluster)
def aks_http_proxy(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """A proxy that AKS configures on nodes and pods; Medium where it is disabled, since one change enables it."""
    proxy = cluster.http_proxy_config or HttpProxy()
    servers = [one for one in (proxy.http_proxy, proxy.https_proxy) if one]
    if servers:
        off = proxy.enabled is False
        words = f"nodes and pods are given {', '.join(servers)}{' (switched off)' if off else ''}"
        path = path_of(POD, f"proxy {servers[0]}", INTERNET)
        severity = Severity.MEDIUM if off else None
        yield fails(estate.cluster, "HttpProxy", words, cluster, paths=(path,), severity=severity)
    else:
        yield passes(estate.cluster, "NoProxy", "no proxy is set", cluster)


def _profile(cluster: ManagedCluster) -> NetworkProfile:
    return cluster.network_profile or NetworkProfile()


def _is_seen(profile: NetworkProfile) -> bool:
    """Whether the answer has a networkProfile: AKS omits features that are off, and never the outbound type."""
    return profile.outbound_type is not None

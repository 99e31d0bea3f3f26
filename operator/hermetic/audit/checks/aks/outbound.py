"""Outbound settings of the cluster: type, addresses, gateways, proxy."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks import outbound as table_a
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import pools_of
from hermetic.audit.estate.azure.aks import HttpProxy, ManagedCluster, NetworkProfile
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import of_cluster
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Parts, Severity
from hermetic.audit.model.hops import INTERNET, NODE_SUBNETS, POD, PUBLIC_IP, path_of
from hermetic.audit.policy.declarations import Policy

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
        message = "outboundType is set to none, and no outbound method of the network was found"
        yield passes(estate.cluster, "None", message, cluster, parts=NETWORK_WAYS)
    elif outbound_type.lower() == "userdefinedrouting" and policy.profile == "filtered":
        message = "outboundType is userDefinedRouting, which the profile filtered allows"
        yield passes(estate.cluster, "UserDefinedRouting", message, cluster)
    else:
        gateway = _profile(cluster).nat_gateway_profile
        sku = f" ({gateway.sku})" if gateway is not None and gateway.sku and "nat" in outbound_type.lower() else ""
        message = f"outboundType is {outbound_type or 'absent, which means loadBalancer'}{sku}"
        word = outbound_type or "loadBalancer"
        path = path_of(NODE_SUBNETS, hops.gateway(word) if "natgateway" in word.lower() else word, INTERNET)
        yield fails(estate.cluster, "OutboundType", message, cluster, paths=(path,))


@check_each("aks-effective-outbound-ips", of_cluster)
def aks_effective_outbound_ips(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Public addresses that the cluster uses for outbound traffic now, with any outbound type."""
    profile = _profile(cluster)
    profiles = [profile.load_balancer_profile, profile.nat_gateway_profile]
    addresses = [str(ip.get("id", "?")) for part in profiles if part for ip in part.effective_outbound_ips or ()]
    if addresses:
        message = f"the cluster leaves by {', '.join(addresses)}"
        path = path_of(NODE_SUBNETS, PUBLIC_IP, INTERNET)
        remedy = LEFT_BEHIND if (profile.outbound_type or "").lower() in ADDS_NOTHING else ""
        fill = {"ATTACHED_ID": addresses}
        yield fails(estate.cluster, "OutboundAddresses", message, cluster, paths=(path,), remedy=remedy, fill=fill)
    elif not _is_seen(profile):
        yield unknown(estate.cluster, "ProfileNotSeen", PROFILE_NOT_SEEN, cluster)
    else:
        yield passes(estate.cluster, "NoOutboundAddress", "the cluster names no outbound address", cluster)


@check_each("aks-static-egress", of_cluster)
def aks_static_egress(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Static egress gateways: pods leave by them, and no network policy applies."""
    pools = pools_of(estate)
    network = _profile(cluster)
    profile = network.static_egress_gateway_profile
    gateways = [pool.name for pool in pools if (pool.mode or "").lower() == "gateway"]
    unknown_pools = [f"{pool.name} ({pool.mode})" for pool in pools if (pool.mode or "user").lower() not in POOL_MODES]
    path = path_of(POD, hops.gateway("gateway pool"), PUBLIC_IP, INTERNET)
    if profile is not None and profile.enabled:
        message = "staticEgressGatewayProfile is enabled"
        yield fails(estate.cluster, "StaticEgress", message, cluster, paths=(path,), fill={"GATEWAY_NAME": gateways})
    elif gateways:
        message = f"gateway pools: {', '.join(gateways)}"
        yield fails(estate.cluster, "GatewayPool", message, cluster, paths=(path,), fill={"GATEWAY_NAME": gateways})
    elif profile is not None and profile.enabled is None:
        message = "staticEgressGatewayProfile does not say whether it is enabled"
        yield unknown(estate.cluster, "StateUnknown", message, cluster)
    elif unknown_pools:
        message = f"pools of a mode that is not known: {', '.join(unknown_pools)}"
        yield unknown(estate.cluster, "ModeUnknown", message, cluster)
    elif not _is_seen(network):
        yield unknown(estate.cluster, "ProfileNotSeen", PROFILE_NOT_SEEN, cluster)
    else:
        yield passes(estate.cluster, "NoStaticEgress", "no gateway pool, and the feature is off", cluster, pools)


@check_each("aks-http-proxy", of_cluster)
def aks_http_proxy(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """A proxy that AKS configures on nodes and pods; Medium where it is disabled, since one change enables it."""
    proxy = cluster.http_proxy_config or HttpProxy()
    servers = [server for server in (proxy.http_proxy, proxy.https_proxy) if server]
    if servers:
        off = proxy.enabled is False
        message = f"nodes and pods are given {', '.join(servers)}{' (switched off)' if off else ''}"
        path = path_of(POD, f"proxy {servers[0]}", INTERNET)
        severity = Severity.MEDIUM if off else None
        yield fails(estate.cluster, "HttpProxy", message, cluster, paths=(path,), severity=severity)
    else:
        yield passes(estate.cluster, "NoProxy", "no proxy is set", cluster)


def _profile(cluster: ManagedCluster) -> NetworkProfile:
    return cluster.network_profile or NetworkProfile()


def _is_seen(profile: NetworkProfile) -> bool:
    """Whether the answer has a networkProfile: AKS omits features that are off, and never the outbound type."""
    return profile.outbound_type is not None

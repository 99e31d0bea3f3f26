"""Public addresses of nodes: in the settings of a pool, in the model of a scale set, on an instance."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import cluster_of, instance_nics_of, is_flexible, pools_of
from hermetic.audit.egress.masks import masks_of_nodes
from hermetic.audit.estate.azure.aks import AgentPool
from hermetic.audit.estate.azure.balancing import ScaleSetPublicAddress
from hermetic.audit.estate.azure.vnet import ScaleSet
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation.each_resource import each_scale_set, whole_or_unknown
from hermetic.audit.evaluation.results import (
    CheckResult,
    does_not_apply,
    fails,
    passes,
    unknown,
    whatever_is_damaged,
    with_masks,
)
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, PUBLIC_IP, path_of
from hermetic.audit.policy.declarations import Policy


@check("nodepool-node-public-ip")
def nodepool_node_public_ip(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """A pool with node public IPs has them with any outbound type."""
    pools = pools_of(estate)
    for pool in pools:
        resource = f"{estate.cluster}/agentPools/{pool.name}"
        yield from whatever_is_damaged(resource, _pool(estate, pool, resource))
    yield from whole_or_unknown(estate.cluster, "the pools of the cluster", pools)


def _pool(estate: Estate, pool: AgentPool, resource: str) -> Iterator[CheckResult]:
    cluster = cluster_of(estate)
    path = (path_of(hops.node(f"node of pool {pool.name}"), PUBLIC_IP, INTERNET),)
    masks = masks_of_nodes(estate)
    if pool.enable_node_public_ip is True:
        message = "enableNodePublicIP is true"
        yield with_masks(fails(resource, "NodePublicIp", message, cluster, paths=path), masks)
    if pool.node_public_ip_prefix_id:
        message = f"nodes take public addresses from {pool.node_public_ip_prefix_id}"
        yield with_masks(fails(resource, "NodePublicIpPrefix", message, cluster, paths=path), masks)
    if not pool.enable_node_public_ip and not pool.node_public_ip_prefix_id:
        yield passes(resource, "NoNodePublicIp", "nodes of this pool get no public address", cluster)


@check_each("vmss-public-ip-config", each_scale_set)
def vmss_public_ip_config(estate: Estate, _policy: Policy, scale_set: ScaleSet) -> Iterator[CheckResult]:
    """Any IP configuration of any interface of the model, IPv4 or IPv6."""
    named = [
        f"{nic.name}/{configuration.name}"
        for nic in scale_set.nics
        for configuration in nic.ip_configurations
        if configuration.public_ip_address_configuration is not None
    ]
    if named:
        message = f"publicIPAddressConfiguration in {', '.join(named)}: every new instance gets a public address"
        paths = (path_of(f"scale set {scale_set.name}", PUBLIC_IP, INTERNET),)
        yield with_masks(fails(scale_set.id, "ModelPublicIp", message, scale_set, paths=paths), masks_of_nodes(estate))
    elif not scale_set.nics:
        yield unknown(scale_set.id, "NoInterfaces", "the model shows no network interface", scale_set)
    else:
        yield passes(scale_set.id, "NoModelPublicIp", "no address configuration of the model is public", scale_set)


@check_each("vmss-instance-pip", each_scale_set)
def vmss_instance_pip(estate: Estate, _policy: Policy, scale_set: ScaleSet) -> Iterator[CheckResult]:
    """Addresses of the instances: one that differs from its model shows only here."""
    if is_flexible(scale_set):
        message = "its instances are machines of their own: their interfaces are evaluated one by one"
        yield does_not_apply(scale_set.id, "FlexibleMode", message, scale_set, instance_nics_of(estate))
        return
    public_addresses: Listing[ScaleSetPublicAddress] = estate.every(ScaleSetPublicAddress, scale_set.id)
    if public_addresses.items:
        addresses = sorted(
            address.ip_address or address.id or "an address without a name" for address in public_addresses
        )
        message = f"instances hold public addresses: {', '.join(addresses)}"
        paths = (path_of(f"scale set {scale_set.name}", "instance", PUBLIC_IP, INTERNET),)
        yield with_masks(
            fails(scale_set.id, "InstancePublicIp", message, public_addresses, paths=paths), masks_of_nodes(estate)
        )
    else:
        yield passes(scale_set.id, "NoInstancePublicIp", "no instance holds a public address", public_addresses)

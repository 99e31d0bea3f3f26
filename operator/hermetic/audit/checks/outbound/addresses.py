"""Public addresses and prefixes that are not in use: attaching one takes a single write."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import network_ids_of, node_group_of, subnets_of, whole_or_unknown
from hermetic.audit.estate.arm_ids import group_of, is_below
from hermetic.audit.estate.azure.addresses import PublicAddress, PublicPrefix
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import Judgement, fails, passes, whatever_is_damaged
from hermetic.audit.policy import Policy


@check("pip-and-prefix-inventory")
def pip_and_prefix_inventory(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Every address in the node resource group; in the networks' groups idle addresses and all prefixes."""
    nodes = node_group_of(estate)
    groups = {one.lower(): one for one in (nodes, *(group_of(one) for one in network_ids_of(estate))) if one}
    looks: list[Observation] = [*subnets_of(estate)[1]]
    found = 0
    for _, group in sorted(groups.items()):
        addresses, prefixes = estate.every(PublicAddress, group), estate.every(PublicPrefix, group)
        looks += (addresses, prefixes)
        for address in addresses:
            yield from whatever_is_damaged(address.id, _address(address, nodes))
        for prefix in prefixes:
            yield from whatever_is_damaged(prefix.id, _prefix(prefix, nodes))
        found += len(addresses) + len(prefixes)
    if found:
        yield from whole_or_unknown(estate.cluster, "public addresses and prefixes", *looks)
    else:
        yield passes(
            estate.cluster, "NoPublicAddress", "no public address or prefix in the groups of the nodes", *looks
        )


def _address(address: PublicAddress, nodes: str) -> Iterator[Judgement]:
    shown = address.ip_address or "not allocated yet"
    holder = address.ip_configuration or address.nat_gateway
    if nodes and is_below(address.id, nodes):
        yield fails(address.id, "AddressInNodeGroup", f"a public address ({shown}) lies in the node group", address)
    elif holder is None:
        yield fails(address.id, "IdleAddress", f"a public address ({shown}) that is attached to nothing", address)
    else:
        yield passes(address.id, "InUse", f"it belongs to {holder.id}, which is judged by itself", address)


def _prefix(prefix: PublicPrefix, nodes: str) -> Iterator[Judgement]:
    shown = prefix.ip_prefix or "not allocated yet"
    holder = prefix.load_balancer_frontend_ip_configuration or prefix.nat_gateway
    if holder is not None:
        yield fails(prefix.id, "PrefixInUse", f"the public prefix ({shown}) belongs to {holder.id}", prefix)
    elif nodes and is_below(prefix.id, nodes):
        yield fails(prefix.id, "PrefixInNodeGroup", f"a public prefix ({shown}) lies in the node group", prefix)
    else:
        yield fails(prefix.id, "IdlePrefix", f"a public prefix ({shown}) that is attached to nothing", prefix)

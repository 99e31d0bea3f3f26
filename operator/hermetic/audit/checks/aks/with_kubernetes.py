"""Checks that need both Azure's and the cluster's answers."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.members import NODE_CLASS, node_classes_of, subnets_of
from hermetic.audit.estate.azure.aks import ManagedCluster, NetworkProfile
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumClusterwideNetworkPolicy, CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.nodes import AksNodeClass
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import each_or_none, of_cluster
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import NODE, path_of
from hermetic.audit.policy.declarations import Policy

MODES = {"auto", "manual"}


@check_each("aks-acns", of_cluster)
def aks_acns(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Policies by host name while the feature that evaluates names is off: they block and do not filter."""
    advanced = (cluster.network_profile or NetworkProfile()).advanced_networking
    security = advanced.security if advanced is not None else None
    is_on = advanced is not None and advanced.enabled is True and security is not None and security.enabled is True
    named, policies = _by_host_name(estate)
    if named and not is_on:
        message = f"policies by host name without advanced networking's security: {', '.join(named)}"
        yield fails(estate.cluster, "NamesNotFiltered", message, cluster, *policies)
    else:
        message = "no policy by host name, or what it takes is on"
        yield passes(estate.cluster, "Consistent", message, cluster, *policies)


def _by_host_name(estate: Estate) -> tuple[list[str], tuple[Observation, ...]]:
    spaced, wide = (
        estate.every(CiliumNetworkPolicy, EVERYWHERE),
        estate.every(CiliumClusterwideNetworkPolicy, EVERYWHERE),
    )
    policies = (*spaced, *wide)
    named = [
        policy.id for policy in policies if any(rule.to_fqdns for spec in policy.rules for rule in spec.egress or ())
    ]
    return named, (spaced, wide)


@check_each("aks-nap", of_cluster)
def aks_nap(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Node classes may name subnets that no pool uses; such a subnet fails here and is audited like any other."""
    profile = cluster.node_provisioning_profile
    mode = (profile.mode if profile is not None else None) or "Manual"
    if mode.lower() == "manual":
        message = "nodeProvisioningProfile.mode is Manual: no nodes but those of pools"
        yield does_not_apply(estate.cluster, "Manual", message, cluster)
    elif mode.lower() not in MODES:
        yield unknown(estate.cluster, "ModeUnknown", f"provisioning mode {mode!r} is not known", cluster)
    else:
        classes = node_classes_of(estate)
        none = "no node class names a subnet of its own"
        yield from each_or_none(
            estate.cluster, classes, lambda node_class: _node_class(estate, node_class), none, cluster
        )


def _node_class(estate: Estate, node_class: AksNodeClass) -> Iterator[CheckResult]:
    subnets, observations = subnets_of(estate)
    named = node_class.spec.vnet_subnet_id
    evaluated_ids = {scoped.id.lower() for scoped in subnets if scoped.roles != {NODE_CLASS}}
    if not named:
        yield passes(node_class.id, "PoolSubnet", "new nodes go where the first pool is", node_class, *observations)
    elif named.lower() in evaluated_ids:
        yield passes(
            node_class.id, "SubnetChecked", f"new nodes go to {named}, which is evaluated", node_class, *observations
        )
    elif (
        gap := next((observation for observation in observations if observation.problem is not None), None)
    ) is not None:
        yield unknown(node_class.id, "SubnetsNotSeen", f"new nodes go to {named}; subnets were not seen whole", gap)
    else:
        message = f"new nodes go to {named}, which no pool and no interface of the cluster names"
        yield fails(
            node_class.id,
            "SubnetNotChecked",
            message,
            node_class,
            *observations,
            paths=(path_of(NODE, hops.subnet(named), "not checked"),),
        )

"""Policies, updates, locks: settings that keep the cluster in its audited state, and settings that are not known."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.checks.properties import PropertyIs
from hermetic.audit.estate.azure.aks import ManagedCluster, NetworkProfile, NodeGroupProfile
from hermetic.audit.estate.azure.cluster_unread import ClusterUnread
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import of_cluster
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.policy.declarations import Policy

ENGINES = {"cilium", "calico", "azure"}
CHANNELS = {"nodeimage", "none", "securitypatch"}
LOCKED = PropertyIs(
    "restrictionLevel",
    required="ReadOnly",
    absent_means="Unrestricted",
    fine=("ReadOnly", "the node resource group is read-only"),
    wrong=("Unrestricted", "the node resource group is open to changes"),
    unclear=("LevelUnknown", ""),
)


@check_each("aks-network-policy", of_cluster)
def aks_network_policy(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Without a network policy engine, NetworkPolicies are not enforced."""
    profile = cluster.network_profile or NetworkProfile()
    engine, plugin = (profile.network_policy or "none").lower(), (profile.network_plugin or "").lower()
    if engine in ENGINES:
        yield passes(estate.cluster, "EngineSet", f"networkPolicy is {profile.network_policy}", cluster)
    elif engine != "none":
        message = f"networkPolicy {profile.network_policy!r} is not known"
        yield unknown(estate.cluster, "EngineUnknown", message, cluster)
    elif plugin == "none":
        message = "the cluster brings its own network plug-in: Azure does not show what enforces policies"
        yield unknown(estate.cluster, "OwnPlugin", message, cluster)
    else:
        message = f"networkPolicy is {profile.network_policy or 'absent, which means none'}: nothing enforces policies"
        yield fails(estate.cluster, "NoEngine", message, cluster)


@check_each("aks-os-channel", of_cluster)
def aks_os_channel(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Nodes with the channel Unmanaged fetch updates from the internet; isolated clusters do not support it."""
    profile = cluster.auto_upgrade_profile
    channel = (profile.node_os_upgrade_channel if profile is not None else None) or ""
    if channel.lower() in CHANNELS:
        yield passes(estate.cluster, "ChannelSupported", f"nodeOSUpgradeChannel is {channel}", cluster)
    elif channel.lower() == "unmanaged":
        yield fails(estate.cluster, "Unmanaged", "nodeOSUpgradeChannel is Unmanaged", cluster)
    else:
        message = f"nodeOSUpgradeChannel is {channel or 'absent'}"
        yield unknown(estate.cluster, "ChannelUnknown", message, cluster)


@check_each("aks-node-rg-lockdown", of_cluster)
def aks_node_rg_lockdown(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Absent means unrestricted: an account with write access may add an address or a NAT gateway there."""
    profile = cluster.node_resource_group_profile or NodeGroupProfile()
    yield LOCKED.result(estate.cluster, cluster, profile.restriction_level)


@check("aks-unread-features")
def aks_unread_features(estate: Estate, _policy: Policy) -> Iterator[CheckResult]:
    """A field that is set and that no model reads may open an egress path: Unknown."""
    observation = estate.one(ClusterUnread, estate.cluster)
    if observation.value is None:
        yield unknown(estate.cluster, "ClusterNotSeen", "the cluster could not be read", observation)
    elif observation.value.unread:
        message = f"set, and not known to this release: {', '.join(observation.value.unread)}"
        yield unknown(estate.cluster, "FeatureUnknown", message, observation)
    else:
        message = f"every field that is set is one of api-version {CONTAINER_SERVICE}"
        yield passes(estate.cluster, "AllFieldsKnown", message, observation)


@check_each("aks-managed-operators", of_cluster)
def aks_managed_operators(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """KAITO and KEDA: pods of AKS that fetch or call for those who may create their objects."""
    scalers = cluster.workload_auto_scaler_profile
    switches = {
        "KAITO": cluster.ai_toolchain_operator_profile,
        "KEDA": scalers.keda if scalers is not None else None,
    }
    enabled = [name for name, switch in switches.items() if switch is not None and switch.enabled]
    if enabled:
        message = (
            f"enabled: {', '.join(enabled)}; each account that may create its objects decides what it fetches or calls"
        )
        yield fails(estate.cluster, "OperatorsOn", message, cluster)
    else:
        yield passes(estate.cluster, "OperatorsOff", "neither KAITO nor KEDA is enabled", cluster)

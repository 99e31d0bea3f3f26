"""Who reaches the API server, and how."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.aks.cluster import of_cluster
from hermetic.audit.egress.prefixes import network as prefix_of
from hermetic.audit.estate.azure.aks import ApiServerAccess
from hermetic.audit.estate.azure.cluster_features import ClusterFeatures
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import Judgement, cannot_say, does_not_apply, fails, passes
from hermetic.audit.hops import INTERNET, POD, path_of
from hermetic.audit.policy import Policy


def private_api(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Neither isolation nor an API server in the network makes it private: only this does."""

    def judge(cluster: ClusterFeatures) -> Iterator[Judgement]:
        if _is_private(cluster):
            yield passes(estate.cluster, "Private", "enablePrivateCluster is true", cluster)
        else:
            words = "enablePrivateCluster is not true: the API server has a public address"
            yield fails(estate.cluster, "PublicApiServer", words, cluster, paths=(path_of(INTERNET, "api server"),))

    yield from of_cluster(estate, judge)


def public_name(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A private cluster has a public name unless it is told otherwise."""

    def judge(cluster: ClusterFeatures) -> Iterator[Judgement]:
        named = _access(cluster).enable_private_cluster_public_fqdn
        if not _is_private(cluster):
            yield does_not_apply(estate.cluster, "PublicApiServer", "the API server is public anyway", cluster)
        elif named is False:
            yield passes(estate.cluster, "NoPublicName", "enablePrivateClusterPublicFQDN is false", cluster)
        else:
            words = f"enablePrivateClusterPublicFQDN is {'true' if named else 'absent, which means true'}"
            yield fails(estate.cluster, "PublicName", words, cluster)

    yield from of_cluster(estate, judge)


def authorized_ranges(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A public API server lets in whoever is listed; nobody listed is everybody."""

    def judge(cluster: ClusterFeatures) -> Iterator[Judgement]:
        ranges = _access(cluster).authorized_ip_ranges or []
        prefixes = {one: prefix_of(one) for one in ranges}
        wide = [one for one, prefix in prefixes.items() if prefix is not None and prefix.prefixlen < 8]
        odd = [one for one, prefix in prefixes.items() if prefix is None]
        if _is_private(cluster):
            yield does_not_apply(estate.cluster, "Private", "the API server is private", cluster)
        elif not ranges or wide:
            words = f"{', '.join(wide)} may connect" if wide else "no range is listed: every address may connect"
            path = path_of(INTERNET, "api server")
            yield fails(estate.cluster, "ApiServerForAll", words, cluster, paths=(path,))
        elif odd:
            yield cannot_say(estate.cluster, "RangeUnknown", f"{', '.join(odd)} is no range", cluster)
        else:
            yield passes(estate.cluster, "ListedRanges", f"only {', '.join(ranges)} may come", cluster)

    yield from of_cluster(estate, judge)


def public_network_access(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """Absent means enabled."""

    def judge(cluster: ClusterFeatures) -> Iterator[Judgement]:
        access = cluster.public_network_access or "Enabled"
        if access.lower() == "disabled":
            yield passes(estate.cluster, "Disabled", "publicNetworkAccess is Disabled", cluster)
        elif access.lower() == "enabled":
            words = f"publicNetworkAccess is {cluster.public_network_access or 'absent, which means Enabled'}"
            yield fails(estate.cluster, "PublicAccess", words, cluster)
        else:
            yield cannot_say(estate.cluster, "AccessUnknown", f"publicNetworkAccess {access!r} is not known", cluster)

    yield from of_cluster(estate, judge)


def run_command(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A way through Azure Resource Manager into the private cluster, and for its output out again."""

    def judge(cluster: ClusterFeatures) -> Iterator[Judgement]:
        if _access(cluster).disable_run_command is True:
            yield passes(estate.cluster, "RunCommandOff", "disableRunCommand is true", cluster)
        else:
            path = path_of(POD, "run command", "azure resource manager")
            words = "disableRunCommand is not true: files come in and output goes out through Azure"
            yield fails(estate.cluster, "RunCommandOn", words, cluster, paths=(path,))

    yield from of_cluster(estate, judge)


def _access(cluster: ClusterFeatures) -> ApiServerAccess:
    return cluster.api_server_access_profile or ApiServerAccess()


def _is_private(cluster: ClusterFeatures) -> bool:
    return _access(cluster).enable_private_cluster is True

"""Access to the API server."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check_each
from hermetic.audit.checks.properties import PropertyIs
from hermetic.audit.estate.azure.aks import ApiServerAccess, ManagedCluster
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import of_cluster
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.model.hops import INTERNET, POD, path_of
from hermetic.audit.policy.declarations import Policy

PRIVATE = PropertyIs(
    "enablePrivateCluster",
    required=True,
    absent_means=False,
    fine=("Private", ""),
    wrong=("PublicApiServer", "enablePrivateCluster is not true: the API server has a public address"),
    paths=(path_of(INTERNET, "api server"),),
)
PUBLIC_ACCESS_OFF = PropertyIs(
    "publicNetworkAccess",
    required="Disabled",
    absent_means="Enabled",
    fine=("Disabled", "publicNetworkAccess is Disabled"),
    wrong=("PublicAccess", ""),
    unclear=("AccessUnknown", ""),
)
RUN_COMMAND_OFF = PropertyIs(
    "disableRunCommand",
    required=True,
    absent_means=False,
    fine=("RunCommandOff", ""),
    wrong=("RunCommandOn", "disableRunCommand is not true: files come in and output goes out through Azure"),
    paths=(path_of(POD, "run command", "azure resource manager"),),
)


@check_each("aks-private-api", of_cluster)
def aks_private_api(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Only enablePrivateCluster makes the API server private; isolation or an API server subnet does not."""
    yield PRIVATE.result(estate.cluster, cluster, _access(cluster).enable_private_cluster)


@check_each("aks-public-fqdn", of_cluster)
def aks_public_fqdn(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """A private cluster has a public name unless enablePrivateClusterPublicFQDN is false."""
    named = _access(cluster).enable_private_cluster_public_fqdn
    if not _is_private(cluster):
        yield does_not_apply(estate.cluster, "PublicApiServer", "the API server is public anyway", cluster)
    elif named is False:
        yield passes(estate.cluster, "NoPublicName", "enablePrivateClusterPublicFQDN is false", cluster)
    else:
        message = f"enablePrivateClusterPublicFQDN is {'true' if named else 'absent, which means true'}"
        yield fails(estate.cluster, "PublicName", message, cluster)


@check_each("aks-authorized-ips", of_cluster)
def aks_authorized_ips(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """A public API server accepts the listed ranges; without a list it accepts every address."""
    ranges = _access(cluster).authorized_ip_ranges or []
    prefixes = {text: prefix_of(text) for text in ranges}
    wide = [text for text, prefix in prefixes.items() if prefix is not None and prefix.prefixlen < 8]
    invalid_ranges = [text for text, prefix in prefixes.items() if prefix is None]
    if _is_private(cluster):
        yield does_not_apply(estate.cluster, "Private", "the API server is private", cluster)
    elif not ranges or wide:
        message = f"{', '.join(wide)} may connect" if wide else "no range is listed: every address may connect"
        path = path_of(INTERNET, "api server")
        yield fails(estate.cluster, "ApiServerForAll", message, cluster, paths=(path,))
    elif invalid_ranges:
        yield unknown(estate.cluster, "RangeUnknown", f"{', '.join(invalid_ranges)} is not an address range", cluster)
    else:
        yield passes(estate.cluster, "ListedRanges", f"only {', '.join(ranges)} may come", cluster)


@check_each("aks-pna", of_cluster)
def aks_pna(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """publicNetworkAccess is Disabled; absent means Enabled."""
    yield PUBLIC_ACCESS_OFF.result(estate.cluster, cluster, cluster.public_network_access)


@check_each("aks-run-command", of_cluster)
def aks_run_command(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Run command leads through Azure Resource Manager into the private cluster, and its output out again."""
    yield RUN_COMMAND_OFF.result(estate.cluster, cluster, _access(cluster).disable_run_command)


def _access(cluster: ManagedCluster) -> ApiServerAccess:
    return cluster.api_server_access_profile or ApiServerAccess()


def _is_private(cluster: ManagedCluster) -> bool:
    return _access(cluster).enable_private_cluster is True

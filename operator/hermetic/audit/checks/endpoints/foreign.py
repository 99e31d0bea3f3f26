"""Private endpoints of other subscriptions to our stores and our API server: they work with public access off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import cluster_of, whole_or_unknown
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.private_link import ApiServerConnection, ConsumerConnection, MonitorScope
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import FileShare, StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Seen
from hermetic.audit.evaluation import CheckResult, does_not_apply, passes, unknown, whatever_is_damaged
from hermetic.audit.findings import Severity, Verdict
from hermetic.audit.hops import POD, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import others_of, results_of, targets_of
from hermetic.audit.registry_storage_scope import each_account, each_registry, each_share

Store = Registry | StorageAccount | FileShare | MonitorScope


@check("pe-stranger")
def pe_stranger(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every store and monitor scope in scope, and the API server: which private endpoints are connected to it."""

    def evaluate(seen: Seen[Registry] | Seen[StorageAccount] | Seen[FileShare]) -> Iterator[CheckResult]:
        yield from _store(estate, policy, seen.value, seen)

    results = [
        *each_registry(estate, policy, evaluate),
        *each_account(estate, policy, evaluate),
        *each_share(estate, policy, evaluate),
        *_scopes(estate, policy),
        *whatever_is_damaged(estate.cluster, _api_server(estate, policy)),
    ]
    found = [one for one in results if not _is_nothing(one)]
    yield from found or results


def _is_nothing(result: CheckResult) -> bool:
    """Whether it is a Not Applicable that rests on complete observations: a kind that is not used."""
    return result.verdict is Verdict.NOT_APPLICABLE and not any(
        observation.problem for observation in result.observations
    )


def _scopes(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    targets = targets_of(estate, policy, MonitorScope.TYPE)
    for target in targets:
        seen = estate.one(MonitorScope, target)
        if seen.value is None:
            yield unknown(target, "NotSeen", "a private endpoint leads to it, and it could not be read", seen)
        else:
            yield from whatever_is_damaged(target, _store(estate, policy, seen.value, seen))
    if targets.items:
        yield from whole_or_unknown(estate.cluster, "monitor scopes in reach", targets)
    else:
        words = "no private endpoint in reach leads to Azure Monitor"
        yield does_not_apply(estate.cluster, "NoMonitorScope", words, targets)


def _api_server(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """One list, where private endpoints can be connected: a way in, and for pods with a token a place to leave data."""
    cluster = cluster_of(estate)
    access = cluster.value.api_server_access_profile if cluster.value is not None else None
    if cluster.problem is None and (access is None or not access.is_behind_private_link):
        yield does_not_apply(estate.cluster, "NoPrivateLink", "no private endpoint can lead to its API server", cluster)
        return
    connections = estate.every(ApiServerConnection, estate.cluster)
    yield from _connected(estate, policy, connections.items, connections)


def _store(estate: Estate, policy: Policy, store: Store | None, seen: Seen[Store]) -> Iterator[CheckResult]:
    connections = store.private_endpoint_connections if store is not None else None
    if connections is None:
        yield unknown(seen.target, "ConnectionsNotSeen", "the answer does not list its private endpoints", seen)
    else:
        yield from _connected(estate, policy, connections, seen)


def _connected(
    estate: Estate,
    policy: Policy,
    connections: Sequence[ConsumerConnection],
    seen: Seen[Store] | Listing[ApiServerConnection],
) -> Iterator[CheckResult]:
    others = others_of(estate, policy, connections)
    path = path_of(POD, name_of(seen.target), hops.private_endpoint("private endpoint of another subscription"))
    yield from results_of(others, seen.target, seen, paths=(path,), of_waiting=Severity.MEDIUM)
    if not others:
        yield passes(seen.target, "OursOnly", "only private endpoints of ours are connected", seen)

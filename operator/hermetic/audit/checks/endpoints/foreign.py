"""Private endpoints of other subscriptions to our stores and our API server: they work with public access off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hermetic.audit.checks.endpoints.vaults import vaults_of
from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import cluster_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.key_vaults import Vault
from hermetic.audit.estate.azure.private_link import ApiServerConnection, ConsumerConnection, MonitorScope
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import FileShare, StorageAccount
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup, is_not_found
from hermetic.audit.evaluation.each_resource import each_account, each_registry, each_share, whole_or_unknown
from hermetic.audit.evaluation.foreign_endpoints import results_of
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity, Verdict
from hermetic.audit.model.hops import POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.private_links import others_of, targets_of

Store = Registry | StorageAccount | FileShare | MonitorScope | Vault


@check("pe-stranger")
def pe_stranger(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every store, monitor scope and vault in scope, and the API server: who is connected by a private endpoint."""

    def evaluate(store: Lookup[Registry] | Lookup[StorageAccount] | Lookup[FileShare]) -> Iterator[CheckResult]:
        yield from _store(estate, policy, store.value, store)

    results = [
        *each_registry(estate, policy, evaluate),
        *each_account(estate, policy, evaluate),
        *each_share(estate, policy, evaluate),
        *_scopes(estate, policy),
        *_vaults(estate, policy),
        *whatever_is_damaged(estate.cluster, _api_server(estate, policy)),
    ]
    findings = [result for result in results if not _is_nothing(result)]
    yield from findings or results


def _is_nothing(result: CheckResult) -> bool:
    """Whether it is a Not Applicable that rests on complete observations: a kind that is not used."""
    return result.verdict is Verdict.NOT_APPLICABLE and not any(
        observation.problem for observation in result.observations
    )


def _scopes(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    targets = targets_of(estate, policy, MonitorScope.TYPE)
    for target in targets:
        scope = estate.one(MonitorScope, target)
        if scope.value is None:
            yield unknown(target, "NotSeen", "a private endpoint leads to it, and it could not be read", scope)
        else:
            yield from whatever_is_damaged(target, _store(estate, policy, scope.value, scope))
    if targets.items:
        yield from whole_or_unknown(estate.cluster, "monitor scopes in reach", targets)
    else:
        message = "no private endpoint in reach leads to Azure Monitor"
        yield does_not_apply(estate.cluster, "NoMonitorScope", message, targets)


def _vaults(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    for vault in vaults_of(estate, policy):
        if is_not_found(vault):
            continue  # deleted: nobody is connected to it
        if vault.value is None:
            yield unknown(vault.target, "NotSeen", "it is in reach, and it could not be read", vault)
        else:
            yield from whatever_is_damaged(vault.target, _store(estate, policy, vault.value, vault))


def _api_server(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """One list, where private endpoints can be connected: a way in, and for pods with a token a place to leave data."""
    cluster = cluster_of(estate)
    access = cluster.value.api_server_access_profile if cluster.value is not None else None
    if cluster.problem is None and (access is None or not access.is_behind_private_link):
        yield does_not_apply(estate.cluster, "NoPrivateLink", "no private endpoint can lead to its API server", cluster)
        return
    connections = estate.every(ApiServerConnection, estate.cluster)
    yield from _connected(estate, policy, connections.items, connections)


def _store(estate: Estate, policy: Policy, store: Store | None, observation: Lookup[Store]) -> Iterator[CheckResult]:
    connections = store.private_endpoint_connections if store is not None else None
    if connections is None:
        yield unknown(
            observation.target, "ConnectionsNotSeen", "the answer does not list its private endpoints", observation
        )
    else:
        yield from _connected(estate, policy, connections, observation)


def _connected(
    estate: Estate,
    policy: Policy,
    connections: Sequence[ConsumerConnection],
    observation: Lookup[Store] | Listing[ApiServerConnection],
) -> Iterator[CheckResult]:
    other_connections = others_of(estate, policy, connections)
    path = path_of(POD, name_of(observation.target), hops.private_endpoint("private endpoint of another subscription"))
    yield from results_of(other_connections, observation.target, observation, paths=(path,), of_waiting=Severity.MEDIUM)
    if not other_connections:
        yield passes(observation.target, "OursOnly", "only private endpoints of ours are connected", observation)

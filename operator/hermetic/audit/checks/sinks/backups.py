"""Backups of what is in scope: copies that people restore elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import node_group_of
from hermetic.audit.cluster.resource_lookup import in_home_subscriptions
from hermetic.audit.estate.arm_ids import is_below, name_of, same_id
from hermetic.audit.estate.azure.backups import BackupInstance, BackupVault, ProtectedItem, RecoveryVault
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model.hops import POD, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.resources_in_scope import resources_in_scope


@check("backup-copies")
def backup_copies(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Every backup of the cluster, of its node group and of resources in scope, in vaults of our subscriptions."""
    resources = resources_in_scope(estate, policy)
    scopes = (*resources, estate.cluster, node_group_of(estate) or estate.cluster)
    vaults = in_home_subscriptions(estate, policy, BackupVault), in_home_subscriptions(estate, policy, RecoveryVault)
    instances = [estate.every(BackupInstance, vault.id) for vault in vaults[0]]
    items = [estate.every(ProtectedItem, vault.id) for vault in vaults[1]]
    is_copied = False
    copies: tuple[BackupInstance | ProtectedItem, ...] = (
        *(copy for listing in instances for copy in listing),
        *(copy for listing in items for copy in listing),
    )
    for copy in copies:
        results = list(whatever_is_damaged(copy.id or estate.cluster, _copy(copy, scopes)))
        is_copied = is_copied or bool(results)
        yield from results
    observations: tuple[Observation, ...] = (*vaults, *instances, *items, resources)
    yield from whole_or_unknown(estate.cluster, "vaults of backups", *observations)
    if not is_copied:
        message = "no vault of our subscriptions copies what is in scope"
        yield passes(estate.cluster, "NoBackup", message, *observations)


def _copy(copy: BackupInstance | ProtectedItem, scopes: tuple[str, ...]) -> Iterator[CheckResult]:
    source = copy.source
    if not source:
        yield unknown(copy.id, "SourceNotNamed", "the backup does not show what it copies", copy)
    elif any(same_id(source, scope) or is_below(source, scope) for scope in scopes):
        message = f"data of {source} is copied into a vault: everyone who may restore it chooses where"
        path = path_of(POD, name_of(source), f"backup {name_of(copy.id)}", "another subscription")
        yield fails(copy.id, "Copied", message, copy, paths=(path,))

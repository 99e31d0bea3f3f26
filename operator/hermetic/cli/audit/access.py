"""`hermetic audit --check-access`: which reads of an audit Azure would refuse, before the audit."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.cluster.members import cluster_of, node_group_of, pools_of
from hermetic.audit.estate.access import Access, needed
from hermetic.audit.estate.arm_ids import group_of
from hermetic.audit.estate.estate import Estate
from hermetic.cli.audit.progress import ProgressLine
from hermetic.cli.exit_codes import DONE, UNKNOWN
from hermetic.cli.terminal import echo_fitted, write_json
from hermetic.collect.azure.allowed_requests import READING_ACTIONS
from hermetic.collect.azure.answering import cluster_id
from hermetic.collect.azure.clouds import PUBLIC
from hermetic.collect.azure.session import AzureSettings, azure_opened
from hermetic.controller.clock import SystemClock

assert CHECKS  # noqa: S101 - loading them registers the kinds that they ask for

FIX = (
    "fix: assign the built-in role Reader there, and the custom role of docs/audit-role.json for the actions; "
    "docs/audit.md describes how"
)
LOCK = "a deny assignment forbids (node resource group lockdown; no role assignment helps)"


async def check_access(typed: str, *, arm_endpoint: str | None, retry_budget: float, as_json: bool) -> int:
    """Asks for the caller's permissions and prints what is missing; exit code 0 when nothing is, else 3."""
    settings = AzureSettings(cluster_id(typed), arm_endpoint=arm_endpoint or PUBLIC, retry_budget=retry_budget)
    with ProgressLine() as progress:
        async with azure_opened(settings, environment=os.environ, clock=SystemClock(), progress=progress) as azure:
            bare = Estate(settings.cluster, ("azure",), {})
            cluster_of(bare)
            estate = bare.with_answers(await azure.answers(tuple(bare.wanted.values())))
            accesses = await azure.access(groups_of(estate))
    actions = needed(READING_ACTIONS)
    if as_json:
        write_json(as_document(settings.cluster, accesses, actions))
    else:
        for line in lines(accesses, actions):
            echo_fitted(line)
    return DONE if all(_is_enough(access, actions) for access in accesses) else UNKNOWN


def groups_of(estate: Estate) -> tuple[str, ...]:
    """The resource groups that the cluster names: its own, its nodes', and those of its networks."""
    subnets = [
        subnet_id for pool in pools_of(estate) for subnet_id in (pool.vnet_subnet_id, pool.pod_subnet_id) if subnet_id
    ]
    named = [group_of(estate.cluster), node_group_of(estate), *map(group_of, subnets)]
    return tuple({group_id.lower(): group_id for group_id in named if group_id}.values())


def lines(accesses: Sequence[Access], actions: Sequence[str]) -> Iterator[str]:
    """The result as text, by scope."""
    for access in accesses:
        yield access.scope
        if access.problem:
            yield f"  not known: {access.problem}"
            continue
        missing, locked = access.missing(actions), access.locked(actions)
        if missing:
            yield f"  {len(missing)} of {len(actions)} reads are not allowed; checks that need them will be Unknown:"
            yield from (f"    {action}" for action in missing)
        if locked:
            yield f"  {LOCK}:"
            yield from (f"    {action}" for action in locked)
        if not missing and not locked:
            yield f"  all {len(actions)} reads that checks may need are allowed"
    if any(access.problem or access.missing(actions) for access in accesses):
        yield FIX


def as_document(cluster: str, accesses: Sequence[Access], actions: Sequence[str]) -> dict[str, object]:
    """The result as JSON."""
    scopes = [
        {
            "scope": access.scope,
            "missing": [] if access.problem else list(access.missing(actions)),
            "locked": [] if access.problem else list(access.locked(actions)),
            "problem": access.problem,
        }
        for access in accesses
    ]
    return {"schema": "hermetic.dev/access/v1", "cluster": cluster, "needed": len(actions), "scopes": scopes}


def _is_enough(access: Access, actions: Sequence[str]) -> bool:
    return not access.problem and not access.missing(actions) and not access.locked(actions)

"""Reads the caller's permissions from Azure before an audit: `hermetic audit --check-access`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hermetic.audit.estate.access import Access, Grant
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.replies import Ask
from hermetic.collect.concurrency import side_by_side

PERMISSIONS = "Microsoft.Authorization/permissions"
DENY_ASSIGNMENTS = "Microsoft.Authorization/denyAssignments"
VERSION = "2022-04-01"
MOST_PAGES = 50


async def access_at(client: ArmClient, scopes: Iterable[str]) -> tuple[Access, ...]:
    """The caller's permissions on each of these resource groups, in their order."""
    return tuple(await side_by_side(_access(client, scope) for scope in scopes))


async def _access(client: ArmClient, scope: str) -> Access:
    granted, problem = await _grants(client, f"{scope}/providers/{PERMISSIONS}?api-version={VERSION}", PERMISSIONS)
    target = f"{scope}/providers/{DENY_ASSIGNMENTS}?api-version={VERSION}&$filter=atScope()"
    denied, unseen = await _grants(client, target, DENY_ASSIGNMENTS)
    return Access(scope, granted, denied, problem or unseen)


async def _grants(client: ArmClient, target: str, kind: str) -> tuple[tuple[Grant, ...], str]:
    """Every grant of a list and "", or why the list is incomplete."""
    grants: list[Grant] = []
    ask: Ask | None = Ask("GET", target, f"{kind}/read")
    for _ in range(MOST_PAGES):
        if ask is None:
            return tuple(grants), ""
        reply = await client.ask(ask)
        if reply.problem is not None:
            return (), reply.problem.detail
        page = _of_page(reply.value)
        if page is None:
            return (), f"{kind}: the answer is not a list of permissions"
        grants += page
        link = reply.value.get("nextLink")
        ask = ask.to(client.wire.local(link)) if isinstance(link, str) and link and client.wire.local(link) else None
        if link and ask is None:
            return (), f"{kind}: a page leads to another host"
    return (), f"{kind}: the list has no end"


def _of_page(value: Any) -> list[Grant] | None:
    """The grants of one page; None where any of them cannot be read."""
    rows = value.get("value") if isinstance(value, Mapping) else None
    if not isinstance(rows, list):
        return None
    grants = [_grant(permission) for row in rows for permission in _permissions(row)]
    readable_grants = [grant for grant in grants if grant is not None]
    return readable_grants if len(readable_grants) == len(grants) else None


def _permissions(row: Any) -> list[Any]:
    """The permissions in a row: the row itself, or of a deny assignment the list in its properties."""
    properties = row.get("properties") if isinstance(row, Mapping) else None
    inner = properties.get("permissions", ()) if isinstance(properties, Mapping) else [row]
    return list(inner) if isinstance(inner, list) else [None]


def _grant(permission: Any) -> Grant | None:
    if not isinstance(permission, Mapping):
        return None
    actions, left_out = permission.get("actions", []), permission.get("notActions", [])
    if not all(isinstance(part, list) and all(isinstance(text, str) for text in part) for part in (actions, left_out)):
        return None
    return Grant(tuple(actions), tuple(left_out))

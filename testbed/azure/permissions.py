"""What a caller may do at a scope, as ARM's authorization provider lists it.

Source: REST API "Permissions - List For Resource Group" and "Deny Assignments - List For Resource Group" (api-version
2022-04-01): the first lists what the caller's roles allow, deny assignments left out; the second lists those.
"""

from __future__ import annotations

from typing import Any

from testbed.azure.estate import Denied, Estate

Body = dict[str, Any]

PERMISSIONS = "microsoft.authorization/permissions"
DENY_ASSIGNMENTS = "microsoft.authorization/denyassignments"
VERSIONS = ("2015-07-01", "2018-01-01-preview", "2018-07-01", "2022-04-01")


def permissions(estate: Estate, scope: str) -> list[Body]:
    """One role that allows every read and every action but what the estate denies there or above."""
    missing = [one.action for one in _at(estate, scope) if not one.by_lock]
    return [{"actions": ["*/read", "*/action"], "notActions": missing, "dataActions": [], "notDataActions": []}]


def deny_assignments(estate: Estate, scope: str) -> list[Body]:
    """Those of a locked node resource group."""
    locks = [one for one in _at(estate, scope) if one.by_lock]
    return [
        {
            "id": f"{lock.scope}/providers/Microsoft.Authorization/denyAssignments/{number}",
            "name": str(number),
            "type": "Microsoft.Authorization/denyAssignments",
            "properties": {
                "denyAssignmentName": "Deny assignment for AKS node resource group",
                "permissions": [{"actions": [lock.action], "notActions": [], "dataActions": [], "notDataActions": []}],
                "scope": lock.scope,
                "isSystemProtected": True,
            },
        }
        for number, lock in enumerate(locks)
    ]


def _at(estate: Estate, scope: str) -> list[Denied]:
    folded = f"{scope.lower().rstrip('/')}/"
    return [one for one in estate.denied if folded.startswith(f"{one.scope.lower().rstrip('/')}/")]

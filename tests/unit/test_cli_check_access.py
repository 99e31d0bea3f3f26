"""`hermetic audit --check-access`: what Azure would refuse is reported before the audit, and nothing is audited."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermetic.audit.estate.access import Access, Grant, needed
from hermetic.collect.azure.allowed_requests import READING_ACTIONS
from testbed.azure.faults import Edit, Fault, Remove, Status
from testbed.azure.server import ArmStandIn
from tests.audits_by_command import a_stand_in, audit

PERMISSIONS, LOCKS = "/Microsoft.Authorization/permissions", "/Microsoft.Authorization/denyAssignments"
SUBNETS = "Microsoft.Network/virtualNetworks/subnets/read"


def checked(arm: ArmStandIn, *arguments: str) -> tuple[int, dict[str, Any]]:
    ran = audit(arm, "--check-access", "-o", "json", *arguments)
    return ran.code, json.loads(ran.out)


def by_scope(document: dict[str, Any], scope: str) -> dict[str, Any]:
    (access,) = [candidate for candidate in document["scopes"] if candidate["scope"].lower() == scope.lower()]
    return dict(access)


def test_a_caller_that_may_read_everything_is_0() -> None:
    with a_stand_in() as arm:
        code, access = checked(arm)
        assert not arm.forbidden_requests
        operations = [request.path.rpartition("/")[2].lower() for request in arm.requests]
    assert code == 0
    assert [(scope["missing"], scope["locked"], scope["problem"]) for scope in access["scopes"]] == [([], [], "")] * 3
    assert set(operations) <= {"aks-inference", "permissions", "denyassignments"}


def test_what_is_missing_is_named_where_it_is_missing_and_is_what_the_audit_then_lacks() -> None:
    with a_stand_in() as arm:
        arm.estate.deny(arm.estate.site.vnet.partition("/providers/")[0], SUBNETS)
        code, access = checked(arm)
        ran = audit(arm, "--check-access")
        after = audit(arm, "-o", "json")
    network = arm.estate.site.vnet.partition("/providers/")[0]
    assert code == ran.code == 3
    assert by_scope(access, network)["missing"] == [SUBNETS]
    assert by_scope(access, arm.estate.site.node_group)["missing"] == []
    assert f"    {SUBNETS}" in ran.out.splitlines()
    assert "docs/audit-role.json" in ran.out
    assert any(SUBNETS in finding["message"] for finding in json.loads(after.out)["findings"])


def test_a_lock_is_told_apart_from_a_missing_role() -> None:
    with a_stand_in(layout="managed") as arm:
        arm.estate.lock(arm.estate.site.node_group)
        code, access = checked(arm)
        output = audit(arm, "--check-access").out
    node_group_access = by_scope(access, arm.estate.site.node_group)
    assert code == 3
    assert node_group_access["missing"] == []
    assert len(node_group_access["locked"]) == len(READING_ACTIONS)
    assert "no role assignment helps" in output
    assert "assign the built-in role" not in output


@pytest.mark.parametrize("path", [PERMISSIONS, LOCKS])
@pytest.mark.parametrize(
    "fault",
    [Status(403, code="AuthorizationFailed"), Remove("value"), Edit("value", "all"), Edit("value", [{"actions": "*"}])],
)
def test_permissions_that_cannot_be_read_are_not_known_and_never_enough(path: str, fault: Any) -> None:
    with a_stand_in(faults=[Fault(fault, path=path)]) as arm:
        code, access = checked(arm)
    assert code == 3
    assert all(scope["problem"] for scope in access["scopes"])


@pytest.mark.parametrize(
    "arguments",
    [("--sign", "key", "--attestation", "a"), ("--out", "report.html"), ("--kube",), ("--save-snapshot", "s")],
)
def test_nothing_else_goes_with_it(arguments: tuple[str, ...]) -> None:
    with a_stand_in() as arm:
        ran = audit(arm, "--check-access", *arguments)
    assert ran.code == 2
    assert "--check-access" in ran.err


@pytest.mark.parametrize(
    ("grants", "allowed"),
    [
        ([Grant(("*",))], True),
        ([Grant(("*/read",))], True),
        ([Grant(("Microsoft.Network/*",))], True),
        ([Grant(("microsoft.network/VIRTUALNETWORKS/subnets/READ",))], True),
        ([Grant(("Microsoft.Network/virtualNetworks/*/write",))], False),
        ([Grant(("Microsoft.Network/virtualNetworks/read",))], False),
        ([Grant(("*",), ("Microsoft.Network/*",))], False),
        ([Grant(("*",), ("Microsoft.Network/*",)), Grant(("*/read",))], True),
        ([], False),
    ],
)
def test_an_action_is_allowed_when_one_role_allows_it_and_does_not_except_it(
    grants: list[Grant], allowed: bool
) -> None:
    access = Access("/subscriptions/s", tuple(grants))
    assert (access.missing([SUBNETS]) == ()) is allowed
    assert access.locked([SUBNETS]) == ()


def test_every_type_that_a_check_reads_is_among_what_is_needed() -> None:
    actions = needed(READING_ACTIONS)
    assert SUBNETS in actions
    assert "Microsoft.Network/networkWatchers/nextHop/action" in actions
    assert list(actions) == sorted(set(actions), key=str.lower)
    assert all(action.endswith(("/read", "/action")) for action in actions)

"""Answers that are cut, garbled, endless, empty or refused: never a Pass that rests on them, never a traceback.

Every fault of the stand-in applies to several kinds of requests, and every kind of request has several faults, for good
and in passing. (All pairs take minutes: EVERY = 1 tries them.)
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from hermetic.audit.model.findings import Evidence, Verdict
from hermetic.errors import InputError, Unreachable
from testbed.azure.baseline import sealed_estate
from testbed.azure.faults import (
    DuplicateRows,
    Edit,
    EndlessPages,
    EndsFailed,
    Fault,
    ForeignNextLink,
    NeverEnds,
    NotJson,
    Remove,
    Reset,
    Status,
    Truncate,
)
from testbed.azure.server import ArmStandIn
from tests.azure_collecting import CollectedAudit, audited
from tests.sampled_groups import AZURE_AUDITS

pytestmark = AZURE_AUDITS

SITE = sealed_estate().site
PASSING = {Verdict.PASS.value, Verdict.NOT_APPLICABLE.value}


def _exact(identifier: str) -> str:
    return f"{identifier}\\?"


ANY_NETWORK = "/virtualNetworks/[^/?]+"
TARGETS = {
    "cluster": _exact(SITE.cluster),
    "network": _exact(SITE.vnet),
    "node subnet": _exact(SITE.gpu_subnet),
    "peerings": f"{ANY_NETWORK}/virtualNetworkPeerings\\?",
    "scale sets": "/virtualMachineScaleSets\\?",
    "interfaces of a set": f"{_exact(SITE.gpu_scale_set.rpartition('/')[2] + '/networkInterfaces')}",
    "security group": _exact(SITE.node_rules),
    "route table": _exact(SITE.route_table),
    "load balancers": "/loadBalancers\\?",
    "public addresses": "/publicIPAddresses\\?",
    "NAT gateways": "/natGateways\\?",
    "private endpoints": "/privateEndpoints\\?",
    "registry": _exact(SITE.registry),
    "effective routes": "/effectiveRouteTable\\?",
    "admin rules": "SecurityAdminRules\\?",
    "Resource Graph": "ResourceGraph",
    "everything": "",
}
REFUSING = {
    "400": Status(400, code="NoRegisteredProviderFound"),
    "403": Status(403, code="AuthorizationFailed"),
    "404": Status(404, code="ResourceNotFound"),
    "409": Status(409),
    "500": Status(500),
    "503": Status(503),
    "reset": Reset(),
    "truncated JSON": Truncate(),
    "not JSON": NotJson(),
    "redirect": Status(302),
}
SPOILING = {
    "endless nextLink": EndlessPages(),
    "foreign nextLink": ForeignNextLink(),
    "no list": Remove("value"),
    "list is null": Edit("value", None),
    "list is an object": Edit("value", {"a": 1}),
    "list is empty": Edit("value", []),
    "rows are numbers": Edit("value.*", 7),
    "rows without properties": Remove("value.*.properties"),
    "rows with properties of a wrong type": Edit("value.*.properties", "sealed"),
    "rows without id": Remove("value.*.id"),
    "no properties": Remove("properties"),
    "properties are null": Edit("properties", None),
    "properties of a wrong type": Edit("properties", ["sealed"]),
    "duplicates": DuplicateRows(),
}


EVERY = 11
"""Of all pairs of target and fault, each so-and-so-many-th is tried."""


def _pairs(faults: Iterable[str]) -> list[tuple[str, str]]:
    return [
        (target, fault)
        for row, target in enumerate(TARGETS)
        for column, fault in enumerate(faults)
        if (row + 3 * column) % EVERY == 0
    ]


@pytest.fixture(scope="module")
def clean() -> Iterator[CollectedAudit]:
    with ArmStandIn(sealed_estate()) as arm:
        yield asyncio.run(audited(arm))


@pytest.fixture(scope="module")
def arm() -> Iterator[ArmStandIn]:
    with ArmStandIn(sealed_estate()) as arm:
        yield arm


def test_the_estate_passes_when_nothing_is_wrong(clean: CollectedAudit) -> None:
    assert clean.overall is Verdict.PASS


def test_every_target_is_asked_in_an_audit(clean: CollectedAudit) -> None:
    for name, path in TARGETS.items():
        assert any(re.search(path, request, re.IGNORECASE) for request in clean.progress.requests), name


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("target", "fault"), _pairs(REFUSING))
async def test_what_is_refused_for_good_supports_no_pass(
    arm: ArmStandIn, clean: CollectedAudit, target: str, fault: str
) -> None:
    report = await _with(arm, Fault(REFUSING[fault], path=TARGETS[target]))
    if report is None:
        assert target in {"cluster", "everything"}
        return
    _passes_nothing_new(report, clean)
    assert not [
        evidence
        for finding in report.findings
        if finding.verdict.value in PASSING
        for evidence in finding.evidence
        if _is_bad(evidence)
    ]
    if target == "everything":
        assert report.overall is not Verdict.PASS


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("target", "fault"), _pairs(SPOILING))
async def test_what_is_spoilt_makes_nothing_pass_that_did_not(
    arm: ArmStandIn, clean: CollectedAudit, target: str, fault: str
) -> None:
    report = await _with(arm, Fault(SPOILING[fault], path=TARGETS[target]))
    assert report is not None
    _passes_nothing_new(report, clean)


@pytest.mark.parametrize("action", [NeverEnds(), EndsFailed()])
async def test_actions_that_do_not_end_well_support_no_pass(
    arm: ArmStandIn, clean: CollectedAudit, action: Any
) -> None:
    report = await _with(arm, Fault(action))
    assert report is not None
    _passes_nothing_new(report, clean)
    assert Verdict.PASS not in report.verdicts("effective-routes")


@pytest.mark.parametrize("fault", ["500", "503", "reset", "truncated JSON", "not JSON"])
async def test_what_passes_by_itself_changes_no_verdict(arm: ArmStandIn, clean: CollectedAudit, fault: str) -> None:
    for skip in (0, 5, 50):
        report = await _with(arm, Fault(REFUSING[fault], skip=skip, times=3))
        assert report is not None
        assert report.claims() ^ clean.claims() == set()


EMPTIED = {
    "pools": ("cluster", Edit("properties.agentPoolProfiles", [])),
    "interfaces of a scale set": ("interfaces of a set", Edit("value", [])),
    "fields of the cluster": ("cluster", Edit("properties", {})),
    "fields of a subnet": ("node subnet", Edit("properties", {})),
    "fields of everything": ("everything", Edit("properties", {})),
}


@pytest.mark.parametrize("what", EMPTIED)
async def test_an_empty_list_where_there_must_be_something_does_not_pass(arm: ArmStandIn, what: str) -> None:
    target, action = EMPTIED[what]
    report = await _with(arm, Fault(action, path=TARGETS[target]))
    assert report is not None
    assert report.overall is not Verdict.PASS


async def _with(arm: ArmStandIn, fault: Fault) -> CollectedAudit | None:
    """An audit with the fault; None when it ended because the cluster is said not to be there, or was not found."""
    arm.inject(fault)
    try:
        return await audited(arm, retry_budget=20)
    except (InputError, Unreachable):
        return None
    finally:
        arm.lift()


def _passes_nothing_new(audit: CollectedAudit, clean: CollectedAudit) -> None:
    new = {claim for claim in audit.claims() if claim[2] in PASSING} - clean.claims()
    assert new == set()


def _is_bad(evidence: Evidence) -> bool:
    """A date that the policy states is no answer of Azure's, and has no status."""
    return evidence.status not in {200, 202} and not evidence.request.startswith("policy ")

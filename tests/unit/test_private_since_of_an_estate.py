"""A whole estate of which Azure shows no default outbound of nodes: what the dates decide, over the stand-in."""

from __future__ import annotations

from typing import Any

from hermetic.audit.findings import Finding, Verdict
from testbed.azure.baseline import sealed_estate
from testbed.azure.baseline.cluster import CREATED
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import instance_nics, node_subnets
from tests.azure_audits import audited

BEFORE, AFTER = "2026-09-01T10:20:30Z", "2026-09-01T10:20:31Z"


def silent(since: str | None = None) -> Estate:
    """Nothing shows the property; `since` is stated about each node subnet."""
    estate = sealed_estate()
    estate.scale_set_outbound_shown_by = frozenset()
    estate.policy = {key: value for key, value in estate.policy.items() if key != "subnetsPrivateSince"}
    if since is not None:
        held: list[dict[str, Any]] = [
            {"subnet": one, "since": since, "statedBy": "network-team"} for one in node_subnets(estate)
        ]
        estate.policy = {**estate.policy, "subnetsPrivateSince": held}
    return estate


def of_nodes(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    nodes = (one for one in findings if one.check == "nic-default-outbound" and "/virtualMachines/" in one.resource)
    return {(one.verdict.value, one.reason) for one in nodes}


def not_passed(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    return {(one.check, one.verdict.value) for one in findings if one.verdict not in fine}


async def test_a_stated_moment_before_every_machine_makes_the_estate_clean() -> None:
    assert CREATED.startswith("2026-09-01T10:20:30.1")
    findings = await audited(silent(BEFORE), "graph")
    assert not_passed(findings) == set()
    assert of_nodes(findings) == {("Pass", "CreatedInPrivateSubnet")}


async def test_a_moment_after_the_machines_or_none_leaves_them_unknown() -> None:
    assert of_nodes(await audited(silent(AFTER), "graph")) == {("Unknown", "MachineOlder")}
    assert of_nodes(await audited(silent(), "list")) == {("Unknown", "PrivateSinceUnknown")}


async def test_one_older_instance_is_unknown_beside_the_others() -> None:
    estate = silent(BEFORE)
    nic = instance_nics(estate)[0]
    estate.properties(nic.partition("/networkInterfaces/")[0])["timeCreated"] = "2026-09-01T10:20:29.9999999+00:00"
    findings = {
        one.resource.lower(): one for one in await audited(estate, "graph") if one.check == "nic-default-outbound"
    }
    assert [one for one, found in findings.items() if found.verdict is Verdict.UNKNOWN] == [nic.lower()]
    assert "--name gpu" in findings[nic.lower()].remedy


async def test_instances_that_may_not_be_read_are_unknown_with_the_permission() -> None:
    estate = silent(BEFORE)
    estate.deny(estate.site.node_group, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read")
    found = next(
        one
        for one in await audited(estate, "graph")
        if one.check == "nic-default-outbound" and one.verdict is Verdict.UNKNOWN
    )
    assert found.reason == "Forbidden"
    assert "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read".lower() in found.message.lower()

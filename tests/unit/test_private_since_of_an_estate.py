"""A whole estate of which Azure shows no default outbound of nodes: what the dates decide, over the stand-in."""

from __future__ import annotations

from typing import Any

from hermetic.audit.model.findings import Finding, Verdict
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
        statements: list[dict[str, Any]] = [
            {"subnet": subnet, "since": since, "statedBy": "network-team"} for subnet in node_subnets(estate)
        ]
        estate.policy = {**estate.policy, "subnetsPrivateSince": statements}
    return estate


def of_nodes(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    nodes = (
        finding
        for finding in findings
        if finding.check == "nic-default-outbound" and "/virtualMachines/" in finding.resource
    )
    return {(node_finding.verdict.value, node_finding.reason) for node_finding in nodes}


def not_passed(findings: tuple[Finding, ...]) -> set[tuple[str, str]]:
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    return {(finding.check, finding.verdict.value) for finding in findings if finding.verdict not in fine}


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
        finding.resource.lower(): finding
        for finding in await audited(estate, "graph")
        if finding.check == "nic-default-outbound"
    }
    assert [resource for resource, finding in findings.items() if finding.verdict is Verdict.UNKNOWN] == [nic.lower()]
    assert "--name gpu" in findings[nic.lower()].remedy


async def test_instances_that_may_not_be_read_are_unknown_with_the_permission() -> None:
    estate = silent(BEFORE)
    estate.deny(estate.site.node_group, "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read")
    nic_finding = next(
        candidate
        for candidate in await audited(estate, "graph")
        if candidate.check == "nic-default-outbound" and candidate.verdict is Verdict.UNKNOWN
    )
    assert nic_finding.reason == "Forbidden"
    assert "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read".lower() in nic_finding.message.lower()

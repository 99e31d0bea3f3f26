"""Every check against the test bed's estates: sealed ones are clean at every severity, and each plant is found.

In memory; the same over HTTP, with thousands of topologies, is the business of the end-to-end tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.estate.arm_ids import type_of
from hermetic.audit.model.findings import Finding, Verdict
from hermetic.audit.remedies.placeholders import CHOSEN, STEMS
from hermetic.audit.remedies.steps import steps_of
from testbed.azure.baseline import LAYOUTS, estate_of
from testbed.azure.plants import PLANTS
from testbed.kubernetes_plants import PLANTS as KUBERNETES_PLANTS
from tests.remedy_commands import KNOWN, placeholders_in
from tests.replanted import Base
from tests.stand_in_answers import judged


def not_passed(findings: tuple[Finding, ...]) -> list[str]:
    """What is wrong, one line each."""
    fine = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    return [
        f"{finding.verdict} {finding.severity} {finding.check} {finding.resource}"
        for finding in findings
        if finding.verdict not in fine
    ]


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_a_sealed_estate_is_clean_at_every_severity(layout: str) -> None:
    findings = judged(estate_of(layout))
    assert not_passed(findings) == []
    assert all(finding.evidence for finding in findings if finding.verdict is Verdict.PASS)


BARE = {layout: estate_of(layout) for layout in sorted(LAYOUTS)}


def first_layout_for(name: str, profile: str) -> str | None:
    fitting = (layout for layout, bare in BARE.items() if bare.profile == profile and PLANTS[name].fits(bare))
    return next(fitting, None)


PLANTED = [
    (name, layout)
    for name in sorted(PLANTS)
    for layout in (first_layout_for(name, "sealed"), first_layout_for(name, "filtered"))
    if layout is not None
]


# Every tenth is judged by every check anew as well: running only those whose answers differ finds the same.
ANEW = frozenset(PLANTED[::10])


WITHOUT_PLANT = {
    "aks-unread-features": "its result is Unknown or Pass, and what a plant opens is a Fail",
    "delivery-kinds": "its result is Unknown or Pass: nothing is known of a type that has no row",
    "nsg-platform-imds": "information: it never fails",
    "peering-subnet-scope": "information about a peering for which peering-any fails",
}


def test_every_check_of_azure_or_of_the_cluster_alone_has_a_plant() -> None:
    planted = {plant.check for plant in (*PLANTS.values(), *KUBERNETES_PLANTS.values())}
    alone = {check.page.id for check in CHECKS if check.needs in ({"azure"}, {"kube"})}
    missing = sorted(alone - planted - WITHOUT_PLANT.keys())
    assert not missing, "each needs a plant in testbed/azure/plants or testbed/kubernetes_plants"
    assert planted <= alone, "a plant names a check that is not there"
    assert WITHOUT_PLANT.keys() <= alone - planted, "these have a plant, or are not there"


def test_every_plant_fits_somewhere() -> None:
    assert {name for name, _ in PLANTED} == set(PLANTS)


@pytest.mark.sampled(150)
@pytest.mark.parametrize(("name", "layout"), PLANTED)
def test_what_is_planted_is_found(name: str, layout: str, record_property: Callable[[str, object], None]) -> None:
    stood_in = estate_of(layout)
    expected = PLANTS[name].into(stood_in)
    findings = base_of(layout).findings(stood_in)
    assert (name, layout) not in ANEW or in_lower_case(findings) == in_lower_case(judged(stood_in))
    fails = [finding for finding in findings if finding.verdict is Verdict.FAIL]
    for misconfiguration in expected:
        met = [fail for fail in fails if misconfiguration.is_met_by(fail.check, fail.resource, fail.severity.value)]
        assert met, (misconfiguration, [(fail.check, fail.resource, fail.severity.value) for fail in fails])
        assert all(finding.message and finding.remedy for finding in met)
    record_property("findings of plants", len(fails))
    record_property(f"plants found in the profile {stood_in.profile}", 1)
    record_property("remedies of plants without a placeholder", sum(not left_open(fail.remedy) for fail in fails))
    not_filled = {(fail.check, name) for fail in fails for name in left_open(fail.remedy) if is_known(name, fail)}
    assert {(check, name) for check, name in not_filled if name not in CHOSEN} == LEFT_TO_THE_MESSAGE & not_filled


def in_lower_case(findings: tuple[Finding, ...]) -> list[Finding]:
    """Azure spells ids in several ways; whose spelling a shared request has depends on the check that came first."""

    def of(finding: Finding) -> Finding:
        return replace(
            finding,
            evidence=tuple(replace(evidence, request=evidence.request.lower()) for evidence in finding.evidence),
        )

    return [of(finding) for finding in findings]


@cache
def base_of(layout: str) -> Base:
    """The layout without plants, judged check by check."""
    return Base(BARE[layout])


def left_open(remedy: str) -> list[str]:
    """Placeholders that a finding leaves to a person."""
    commands = [command for step in steps_of(remedy) for command in step.commands]
    return [name for command in commands for name in placeholders_in(command) if name in KNOWN]


def is_known(name: str, finding: Finding) -> bool:
    """Whether the finding's own resource is of the type that the placeholder is about, or the check could tell it."""
    kind = next((kind for kind, stem in STEMS.items() if name in {f"{stem}_ID", f"{stem}_NAME"}), "")
    return not kind or type_of(finding.resource).lower().startswith(kind.lower())


# The message names the connections in words only.
LEFT_TO_THE_MESSAGE = {("pe-stranger", "LINK_ID")}

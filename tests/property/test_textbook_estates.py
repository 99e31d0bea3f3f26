"""Textbook estates pass with what a platform team writes, and whatever is planted in one of them is found.

Of the plants of each estate CI tries a part that the commit draws; `make test-every-case` tries all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate as AuditEstate
from hermetic.audit.evaluation.check_findings import findings_of
from hermetic.audit.model.findings import Finding, Severity, Verdict
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.result.report import Report
from hermetic.audit.result.run import evaluate as every_check
from testbed.azure.estate import Estate
from testbed.azure.plants import PLANTS
from testbed.kubernetes_plants import PLANTS as KUBERNETES_PLANTS
from testbed.textbook import TEXTBOOK, TextbookEstate, azure
from testbed.textbook.estates import EFFECTIVE_RULES
from tests.audit_estates import check_of
from tests.fakes.clocks import START
from tests.kubernetes_estates import CLUSTER, answers
from tests.replanted import Base
from tests.sampling import Sample
from tests.textbook_audits import audited

MOST_DECISIONS = 5
SHARES = 3
# Of the plants of a share, and of those in a cluster. Other tests find each of them in an estate that is no textbook's.
PLANTS_IN_CI, KUBERNETES_PLANTS_IN_CI = 24, 50
# Of so many plants, one is judged by every check anew as well: running only those whose answers differ finds the same.
ANEW = 20
# Plants that lockdown hides from every read: what was Pass, or not there, is Unknown with them.
_BEHIND_THE_LOCK = frozenset(
    {
        # a gateway tells its learned routes by an action alone, and the network's interfaces theirs as well
        "gateway_that_learned_a_default_route",
        # a policy in a subscription that is not looked into may be linked: that none is, no list shows
        "no_dns_policy",
        "platform_dns_without_a_policy",
    }
)
DOUBTFUL: Mapping[str, frozenset[str]] = {"managed-network-block": _BEHIND_THE_LOCK}
Recorded = Callable[[str, object], None]
WRONG = {Verdict.FAIL, Verdict.UNKNOWN}


def decisions(estate: TextbookEstate) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """For each entry that a person had to write, policy and exceptions without it."""
    policy, exceptions = estate.policy_file, estate.exceptions_file
    reduced = []
    for key, value in policy.items():
        for number in range(len(value) if isinstance(value, list) else 1):
            other_values = [*value[:number], *value[number + 1 :]] if isinstance(value, list) else None
            other_entries = {other: entry for other, entry in policy.items() if other != key}
            reduced.append(({**other_entries, **({key: other_values} if other_values else {})}, exceptions))
    for number in range(len(exceptions["exceptions"])):
        other_values = [exception for other, exception in enumerate(exceptions["exceptions"]) if other != number]
        reduced.append((policy, {"exceptions": other_values}))
    return reduced


def wrong(report: Report) -> list[str]:
    """What decides the verdict, one line each."""
    matching_findings = [
        finding for finding in report.findings if finding.verdict in WRONG and finding.severity.decides
    ]
    return [
        f"{finding.verdict.value} {finding.check} {finding.resource}: {finding.message}"
        for finding in matching_findings
    ]


@pytest.mark.parametrize("name", TEXTBOOK)
def test_a_textbook_estate_passes(name: str, record_property: Recorded) -> None:
    report = as_written(name)
    record_property("textbook estates", 1)
    assert wrong(report) == []
    assert report.verdict is Verdict.PASS
    record_property("textbook estates passed", 1)


@pytest.mark.parametrize("name", TEXTBOOK)
def test_what_a_team_decides_is_little_and_nothing_critical(name: str, record_property: Recorded) -> None:
    estate = TEXTBOOK[name]
    count = len(decisions(estate))
    record_property(f"decisions by hand: {name}", count)
    assert count <= MOST_DECISIONS
    excepted = [finding for finding in as_written(name).findings if finding.verdict is Verdict.EXCEPTED]
    assert {finding.check for finding in excepted if finding.severity is Severity.CRITICAL} == set()


@pytest.mark.parametrize("change", [lambda spec: spec["providerID"] + "9", lambda _spec: None], ids=["other", "none"])
def test_a_node_whose_machine_no_list_of_azure_shows_is_a_doubt(change: Callable[[Any], str | None]) -> None:
    name, estate = next(iter(TEXTBOOK.items()))
    joined = copy.deepcopy(next(manifest for manifest in estate.manifests if manifest["kind"] == "Node"))
    joined["metadata"]["name"] = "joined"
    joined["spec"]["providerID"] = change(joined["spec"])
    report = audited(estate, manifests=[*estate.manifests, joined])
    assert "Unknown k8s-node-machine v1/Node joined" in [line.split(":")[0] for line in wrong(report)], name


EVERY_DECISION = [(name, number) for name, estate in TEXTBOOK.items() for number in range(len(decisions(estate)))]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "number"), EVERY_DECISION)
def test_each_decision_is_needed(name: str, number: int) -> None:
    estate = TEXTBOOK[name]
    policy, exceptions = decisions(estate)[number]
    try:
        Policy.model_validate({**policy, "profile": estate.azure.profile})
    except ValueError:
        return  # refused without it
    assert audited(estate, policy=policy, exceptions=exceptions).verdict is not Verdict.PASS


def test_nodes_that_are_machines_of_their_own_need_one_acceptance_more_in_the_network_of_aks() -> None:
    """What a group allows, and what a machine enforces, are two facts: to accept the one says nothing of the other."""
    of_sets = TEXTBOOK["managed-network-none"]
    alone = replace(of_sets, changes=(*of_sets.changes, azure.with_machines_of_their_own))
    (open_way,) = wrong(audited(alone))
    assert open_way.startswith("Fail nsg-effective ")
    accepted = replace(alone, exceptions=(*alone.exceptions, EFFECTIVE_RULES))
    assert audited(accepted).verdict is Verdict.PASS
    assert len(decisions(accepted)) <= MOST_DECISIONS


@pytest.mark.timeout(600)
@pytest.mark.sampled(2)
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("name", TEXTBOOK)
def test_what_is_planted_in_azure_is_found(name: str, share: int, sample: Sample, record_property: Recorded) -> None:
    estate = TEXTBOOK[name]
    bare, base = estate.azure, base_of(name)
    before = accepted(base.findings(bare), estate)
    open_before = [finding for finding in before if was_open(finding)]
    doubts = [key_of(finding) for finding in before if is_doubt(finding)]
    fitting = [plant for _, plant in sorted(PLANTS.items()) if plant.fits(bare)]
    missed, planted = [], 0
    plants = fitting[share::SHARES]
    tried = sample.of("plants in Azure on textbook estates", plants, len(plants), in_ci=PLANTS_IN_CI)
    for number, plant in enumerate(tried):
        stood_in = bare.copy()
        # what is open there already, and accepted, cannot be opened
        expected = [
            path for path in plant.into(stood_in) if not any(path.is_met_by(*key_of(other)) for other in open_before)
        ]
        if not can_be(stood_in):
            continue
        planted += len(expected)
        findings = base.findings(stood_in)
        if number % ANEW == 0:
            assert findings == base.findings_anew(stood_in), plant.name
        after = accepted(findings, estate)
        keys = [key_of(finding) for finding in after if finding.verdict is Verdict.FAIL]
        if plant.name in DOUBTFUL.get(name, ()):
            unknown = [key_of(finding) for finding in after if finding.verdict is Verdict.UNKNOWN]
            keys = [key for key in unknown if key not in doubts]
        missed += [f"{plant.name}: {path}" for path in expected if not any(path.is_met_by(*fail) for fail in keys)]
    record_property("plants on textbook estates", planted)
    record_property("plants found on textbook estates", planted - len(missed))
    assert planted > 0
    assert missed == []


@pytest.mark.parametrize(
    ("name", "plant"), [(name, plant) for name, plants in DOUBTFUL.items() for plant in sorted(plants)]
)
def test_what_lockdown_hides_is_a_doubt_that_no_exception_covers(name: str, plant: str) -> None:
    estate = TEXTBOOK[name]
    stood_in = estate.azure.copy()
    expected = PLANTS[plant].into(stood_in)
    report = audited(estate, arm=stood_in)
    doubts = [finding for finding in report.findings if finding.verdict is Verdict.UNKNOWN]
    assert [path for path in expected if not any(path.is_met_by(*key_of(doubt)) for doubt in doubts)] == []
    # what is medium decides no verdict, sealed or not; what is high or critical does
    decides = {path.severity for path in expected} & {"high", "critical"}
    assert (report.verdict is Verdict.PASS) is not bool(decides)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TEXTBOOK)
def test_what_is_planted_in_the_cluster_is_found(name: str, sample: Sample, record_property: Recorded) -> None:
    estate = TEXTBOOK[name]
    policy, bare = policy_of(estate, estate.azure), estate.manifests
    bare_answers = answers(bare)
    before = AuditEstate(CLUSTER, ("kube",), bare_answers)
    every_check(before, policy)  # so that what stays is read once
    missed, planted = [], 0
    plants = list(KUBERNETES_PLANTS.values())
    tried = sample.of("plants in clusters of textbook estates", plants, len(plants), in_ci=KUBERNETES_PLANTS_IN_CI)
    for plant in tried:
        manifests = copy.deepcopy(bare)
        expected = plant.into(manifests)
        planted += 1
        changed = {
            question: answer for question, answer in answers(manifests).items() if answer != bare_answers[question]
        }
        assert changed, plant.name
        results = accepted(findings_of(check_of(plant.check), before.with_answers(changed), policy), estate)
        expected_key = (expected.check, expected.resource, expected.severity, expected.verdict)
        if not any((*key_of(finding), finding.verdict.value) == expected_key for finding in results):
            missed.append(f"{plant.name}: {expected_key}")
    record_property("plants on textbook estates", planted)
    record_property("plants found on textbook estates", planted - len(missed))
    assert missed == []


def is_doubt(finding: Finding) -> bool:
    """Whether it is Unknown, accepted or not."""
    return finding.verdict is Verdict.UNKNOWN or (
        finding.exception is not None and finding.exception.accepted is Verdict.UNKNOWN
    )


def was_open(finding: Finding) -> bool:
    """Whether the team accepted a Fail. An Unknown that it accepted opens nothing, and hides nothing."""
    return finding.exception is not None and finding.exception.accepted is Verdict.FAIL


@cache
def as_written(name: str) -> Report:
    """The report with what the team wrote."""
    return audited(TEXTBOOK[name])


@cache
def base_of(name: str) -> Base:
    """The Azure half, judged check by check."""
    return Base(TEXTBOOK[name].azure)


def can_be(stood_in: Estate) -> bool:
    """Whether the region offers every type of what is there now."""
    return not any(resource["type"].lower() in stood_in.not_offered for resource in stood_in.resources.values())


def policy_of(estate: TextbookEstate, stood_in: Estate) -> Policy:
    return Policy.model_validate({**estate.policy_file, "profile": stood_in.profile})


def accepted(findings: Iterable[Finding], estate: TextbookEstate) -> tuple[Finding, ...]:
    """Findings with the team's exceptions applied: what is accepted must not hide what is planted."""
    exceptions = Exceptions.model_validate(estate.exceptions_file)
    return exceptions.applied(findings, START.date())[0]


def key_of(finding: Finding) -> tuple[str, str, str]:
    return finding.check, finding.resource, finding.severity.value

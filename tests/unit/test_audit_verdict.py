"""One verdict from three kinds of evidence, and the status that shows it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.egressaudit import MOST_REFUSALS, EgressAuditSpec, EgressAuditStatus
from hermetic.api.times import timestamp
from hermetic.audit.attestation.choosing import ChosenAttestation
from hermetic.audit.attestation.custom_resource import as_object
from hermetic.audit.attestation.refusals import Refusal, refused
from hermetic.audit.attestation.renewal import renewal_commands
from hermetic.audit.attestation.verification import Expected
from hermetic.audit.checks.registry import CHECKS
from hermetic.audit.model.findings import Evidence, Finding, Severity, Verdict
from hermetic.audit.verdict.inputs import ProbeRound, VerdictInputs
from hermetic.audit.verdict.overall import standing_of
from hermetic.audit.verdict.status import next_change, status_of, status_unfounded, status_unreadable
from hermetic.controller.condition_events import announcements
from tests.attestations import (
    CLUSTER,
    NOW,
    OBSERVED,
    OTHER_CLUSTER,
    SUBNET,
    a_finding,
    a_report,
    an_ed25519_key,
    an_excepted_finding,
    choose,
    provenance,
    signed,
    trust,
)

KEY = an_ed25519_key()
SPEC = EgressAuditSpec.model_validate(
    {"cluster": CLUSTER, "probe": {"image": "contoso.azurecr.io/hermetic@sha256:" + "a" * 64}}
)
FINE = Finding(
    "k8s-public-lb",
    "cluster",
    Verdict.PASS,
    Severity.CRITICAL,
    "NoPublicService",
    "no Service is public",
    evidence=(Evidence("LIST /api/v1/services", 200, "ab"),),
)
OPEN = replace(FINE, verdict=Verdict.FAIL, resource="v1/Service inference/llama", message="has a public address")


def chosen(report: dict[str, Any] | None = None, **options: Any) -> ChosenAttestation:
    return choose([as_object(signed(KEY, report, **options))], trust(KEY), Expected(CLUSTER), NOW)


def inputs(**changes: Any) -> VerdictInputs:
    complete = VerdictInputs(chosen(), (FINE,), NOW - timedelta(seconds=5), ProbeRound(NOW - timedelta(minutes=10), 4))
    return replace(complete, **changes)


def verdict(verdict_inputs: VerdictInputs, now: Any = NOW, spec: EgressAuditSpec = SPEC) -> Verdict:
    return standing_of(spec, verdict_inputs, now).verdict


def status_with(
    verdict_inputs: VerdictInputs, now: Any = NOW, before: dict[str, Any] | None = None, spec: EgressAuditSpec = SPEC
) -> Any:
    status = status_of(spec, 3, verdict_inputs, standing_of(spec, verdict_inputs, now), before or {}, now)
    EgressAuditStatus.model_validate(status)
    return status


def condition(status: dict[str, Any], kind: str) -> tuple[str, str]:
    matching = next(condition for condition in status["conditions"] if condition["type"] == kind)
    return matching["status"], matching["reason"]


def test_three_fresh_looks_that_find_nothing_pass() -> None:
    assert verdict(inputs()) is Verdict.PASS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"choice": ChosenAttestation(None, "", {}, ())}, "AttestationMissing"),
        (
            {"choice": ChosenAttestation(None, "", {"old": refused(Refusal.EXPIRED, "yesterday")}, ())},
            "AttestationRefused",
        ),
        ({"kubernetes_at": None}, "ClusterNotSeen"),
        ({"probe": None}, "ProbePending"),
        ({"probe": ProbeRound(NOW - timedelta(hours=2), 4)}, "ProbeStale"),
        ({"probe": ProbeRound(NOW + timedelta(hours=6), 4)}, "ProbeStale"),
        ({"probe": ProbeRound(NOW, 3, silent=("gpu in nodes",))}, "ProbeIncomplete"),
    ],
)
def test_a_look_that_is_missing_or_old_makes_it_unknown_and_says_so(change: dict[str, Any], reason: str) -> None:
    status = status_with(inputs(**change))
    assert status["verdict"] == "Unknown"
    assert condition(status, "Ready") == ("False", reason)


def test_without_a_probe_in_the_spec_nothing_can_pass() -> None:
    spec = SPEC.model_copy(update={"probe": None})
    assert condition(status_with(inputs(), spec=spec), "Ready") == ("False", "ProbeNotConfigured")


@pytest.mark.parametrize(
    "missing", [{}, {"probe": None}, {"choice": ChosenAttestation(None, "", {}, ())}, {"kubernetes_at": None}]
)
def test_an_egress_path_that_was_seen_fails_whatever_is_missing(missing: dict[str, Any]) -> None:
    status = status_with(inputs(cluster_findings=(FINE, OPEN), **missing))
    assert (status["verdict"], condition(status, "IsolationVerified")) == ("Fail", ("False", "IsolationBroken"))
    assert "has a public address" in status["message"]


def test_what_the_attestation_found_counts_and_its_path_is_the_message() -> None:
    critical = a_finding("Fail", paths=["node subnet -> nat gateway -> internet"], message="NAT gateway attached")
    status = status_with(inputs(choice=chosen(a_report(critical, verdict="Fail"))))
    assert status["verdict"] == "Fail"
    assert status["message"].startswith("node subnet -> nat gateway -> internet: NAT gateway attached")


def test_an_unknown_of_the_attestation_is_unknown() -> None:
    choice = chosen(a_report(a_finding("Unknown", message="403"), verdict="Unknown"))
    status = status_with(inputs(choice=choice))
    assert (status["verdict"], condition(status, "Ready")[1]) == ("Unknown", "IsolationUnknown")


def test_an_exception_of_the_spec_accepts_until_its_last_day_is_over() -> None:
    accepted = {
        "check": "k8s-public-lb",
        "resource": "v1/service inference/*",
        "reason": "test of the edge",
        "owner": "platform",
        "expires": f"{NOW:%Y-%m-%d}",
    }
    spec = EgressAuditSpec.model_validate({**SPEC.model_dump(by_alias=True, mode="json"), "exceptions": [accepted]})
    verdict_inputs = inputs(cluster_findings=(OPEN,))
    assert verdict(verdict_inputs, spec=spec) is Verdict.PASS
    assert next_change(spec, verdict_inputs, NOW) is not None
    assert verdict(verdict_inputs, NOW + timedelta(hours=12), spec) is Verdict.FAIL


@pytest.mark.parametrize(
    ("share", "truth"),
    [
        (0.5, ("True", "EvidenceYoung")),
        (0.76, ("True", "EvidenceAging")),
        (0.91, ("True", "EvidenceExpiring")),
        (1.0, ("False", "IsolationEvidenceStale")),
    ],
)
def test_evidence_is_announced_to_run_out_before_it_does(share: float, truth: tuple[str, str]) -> None:
    now = OBSERVED + timedelta(days=1) * share
    probed = ProbeRound(now, 4)
    status = status_with(inputs(probe=probed), now)
    assert condition(status, "EvidenceFresh") == truth
    fresh = next(condition for condition in status["conditions"] if condition["type"] == "EvidenceFresh")
    has_commands = all(command in fresh["message"] for command in renewal_commands(CLUSTER))
    assert has_commands is (truth[1] in {"EvidenceAging", "EvidenceExpiring"})
    assert status["verdict"] == ("Unknown" if truth[0] == "False" else "Pass")


def test_it_looks_again_at_each_moment_at_which_there_is_something_new_to_say() -> None:
    now, statuses = OBSERVED, []
    verdict_inputs = inputs(probe=ProbeRound(OBSERVED + timedelta(days=2), 4))
    while (at := next_change(SPEC, verdict_inputs, now)) is not None and at <= OBSERVED + timedelta(days=1):
        statuses.append(at)
        now = at
    assert {OBSERVED + timedelta(days=share) for share in (0.75, 0.9, 1.0)} <= set(statuses)


def test_at_rest_the_status_stays_the_same_for_an_hour() -> None:
    first = status_with(inputs())
    later = status_with(inputs(kubernetes_at=NOW + timedelta(minutes=50)), NOW + timedelta(minutes=50), before=first)
    assert later == first
    much_later = status_with(
        inputs(kubernetes_at=NOW + timedelta(minutes=70), probe=ProbeRound(NOW - timedelta(minutes=10), 4)),
        NOW + timedelta(minutes=70),
        before=first,
    )
    assert much_later["evidence"]["kubernetes"] != first["evidence"]["kubernetes"]


def test_what_was_accepted_once_is_remembered_when_it_is_gone() -> None:
    first = status_with(inputs())
    assert (
        status_with(inputs(choice=ChosenAttestation(None, "", {}, ())), before=first)["newestAccepted"]
        == first["newestAccepted"]
    )


def test_findings_that_were_left_out_of_the_attestation_are_counted() -> None:
    many = [a_finding(resource=f"{SUBNET}-{number}", message="x" * 300) for number in range(700)]
    status = status_with(inputs(choice=chosen(a_report(*many))))
    assert status["counts"]["pass"] == 700 + 1


def test_of_what_expired_the_newest_is_told_in_words_that_no_clock_changes() -> None:
    objects = [as_object(signed(KEY, a_report(observed=OBSERVED - timedelta(hours=age)))) for age in (0, 5)]
    choices = [choose(objects, trust(KEY), Expected(CLUSTER), NOW + timedelta(days=age)) for age in (2, 3)]
    assert {choice.accepted for choice in choices} == {None}
    statuses = [status_with(inputs(choice=choice)) for choice in choices]
    assert statuses[0]["message"] == statuses[1]["message"] == "the evidence expired at 2026-11-22T10:00:00Z"
    assert condition(statuses[0], "AttestationAccepted") == ("False", "IsolationEvidenceStale")
    assert condition(statuses[0], "EvidenceFresh") == ("False", "IsolationEvidenceStale")
    assert "azure" not in statuses[0]["evidence"]


def test_a_newer_one_that_is_refused_is_told_beside_the_one_that_expired() -> None:
    stranger = an_ed25519_key(9, "stranger")
    objects = [as_object(signed(KEY)), as_object(signed(stranger, a_report(observed=OBSERVED + timedelta(hours=1))))]
    choice = choose(objects, trust(KEY), Expected(CLUSTER), NOW + timedelta(days=2))
    message = status_with(inputs(choice=choice))["message"]
    assert message.startswith("the evidence expired at 2026-11-22T10:00:00Z; egress-20261121t110000z-")
    assert "is refused: UnknownKey:" in message
    refused = status_with(inputs(choice=choice))["refused"]
    assert (refused["name"] in message, refused["reason"]) == (True, "UnknownKey")
    EgressAuditStatus.model_validate(status_with(inputs(choice=choice)))
    assert "refused" not in status_with(inputs())


@pytest.mark.parametrize("verdict", ["Fail", "Unknown"])
def test_what_was_attested_of_the_cluster_s_own_objects_counts_only_until_they_are_seen_here(verdict: str) -> None:
    stale = a_finding(verdict, "k8s-public-lb", resource="v1/Service inference/gone", message="it was public")
    choice = chosen(a_report(stale, a_finding(), verdict=verdict, sources=["azure", "kube"], notAsked={}))
    assert status_with(inputs(choice=choice))["verdict"] == "Pass"
    assert status_with(inputs(choice=choice, kubernetes_at=None))["verdict"] == verdict


def test_a_node_whose_machine_no_list_of_azure_shows_stays_unknown_where_azure_is_not_read() -> None:
    message = "its machine is in no list of Azure's"
    joined = a_finding("Unknown", "k8s-node-machine", resource="v1/Node joined", message=message)
    choice = chosen(a_report(joined, a_finding(), verdict="Unknown", sources=["azure", "kube"], notAsked={}))
    assert status_with(inputs(choice=choice))["verdict"] == "Unknown"


def test_a_packet_that_found_an_egress_path_for_a_jump_box_counts_until_the_attestation_is_replaced() -> None:
    reachable = a_finding("Fail", "probe-internet", resource="agentPools/gpu/subnets/nodes", message="it was open")
    choice = chosen(a_report(reachable, a_finding(), verdict="Fail", sources=["azure", "probe"], notAsked={}))
    assert status_with(inputs(choice=choice))["verdict"] == "Fail"


def test_what_keeps_the_probe_from_running_is_said() -> None:
    status = status_with(inputs(probe=None, probe_error="jobs.batch is forbidden"))
    assert status["message"] == "no round of the probe has ended yet: jobs.batch is forbidden"


def test_every_message_fits_into_the_status() -> None:
    silent = tuple(f"pool {number} " + "x" * 900 for number in range(40))
    status = status_with(inputs(probe=ProbeRound(NOW, 40, silent)))
    long_findings = [
        condition
        for condition in status["conditions"]
        if condition["reason"] == "ProbeIncomplete" and condition["type"] != "Stalled"
    ]
    assert {len(row["message"]) for row in long_findings} == {2048}


def test_every_source_that_a_verdict_needs_has_checks_of_its_own() -> None:
    assert {frozenset({"azure"}), frozenset({"kube"}), frozenset({"probe"})} <= {check.needs for check in CHECKS}


# ------------------------------------------------------------------ the findings that the status lists


def many(count: int, verdict: Verdict = Verdict.FAIL, severity: Severity = Severity.HIGH) -> tuple[Finding, ...]:
    return tuple(replace(OPEN, verdict=verdict, severity=severity, resource=f"v1/Service a/s{n}") for n in range(count))


def test_a_pass_lists_no_finding() -> None:
    assert "findings" not in status_with(inputs())


def test_what_fails_or_is_unknown_is_listed_with_its_remedy_the_worst_first() -> None:
    remedy = "Make the Service private.\nkubectl patch service llama \\\n  --namespace inference"
    unknown = replace(OPEN, verdict=Verdict.UNKNOWN, severity=Severity.CRITICAL, check="coredns-custom", message="403")
    warning = replace(OPEN, severity=Severity.LOW, check="k8s-nodeport")
    status = status_with(inputs(cluster_findings=(FINE, warning, unknown, replace(OPEN, remedy=remedy))))
    assert [(finding["check"], finding["verdict"]) for finding in status["findings"]] == [
        ("k8s-public-lb", "Fail"),
        ("coredns-custom", "Unknown"),
        ("k8s-nodeport", "Fail"),
    ]
    assert status["findings"][0] == {
        "check": "k8s-public-lb",
        "severity": "critical",
        "verdict": "Fail",
        "reason": "NoPublicService",
        "resource": "v1/Service inference/llama",
        "message": "has a public address",
        "remedy": "Make the Service private. Run `kubectl patch service llama --namespace inference`.",
    }
    assert (status["counts"]["blocking"], status["counts"]["warnings"]) == (2, 1)


@pytest.mark.parametrize(("count", "more"), [(1, None), (20, None), (21, 1), (400, 380)])
def test_no_more_than_twenty_are_listed_and_the_others_are_counted(count: int, more: int | None) -> None:
    status = status_with(inputs(cluster_findings=many(count)))
    assert len(status["findings"]) == min(count, 20)
    assert status.get("moreFindings") == more


def test_texts_of_any_length_and_with_any_character_fit_the_schema() -> None:
    hostile_text = "x\n\x1b[31m\ud800\u202e" * 2000
    hostile = replace(
        OPEN, check="c" * 99, reason=hostile_text, resource=hostile_text, message=hostile_text, remedy=hostile_text
    )
    (row,) = status_with(inputs(cluster_findings=(hostile,)))["findings"]
    assert all("\n" not in text and "\x1b" not in text for text in row.values())
    str(row).encode()


def test_the_order_in_which_findings_come_changes_no_status() -> None:
    mixed = (*many(15), *many(9, Verdict.UNKNOWN), *many(5, Verdict.FAIL, Severity.LOW))
    assert status_with(inputs(cluster_findings=mixed)) == status_with(inputs(cluster_findings=mixed[::-1]))
    before = status_with(inputs(cluster_findings=mixed))
    assert status_with(inputs(cluster_findings=mixed), NOW + timedelta(seconds=30), before) == before


def test_what_only_an_attestation_knows_is_listed_too() -> None:
    failing = a_finding("Fail", message="NAT gateway attached", remedy="az network vnet subnet update --ids X")
    status = status_with(inputs(choice=chosen(a_report(failing, verdict="Fail"))))
    (row,) = status["findings"]
    assert row["remedy"] == "Run `az network vnet subnet update --ids X`."


# ------------------------------------------------------------------ exceptions that end, and what follows from others


def excepting(expires: str, check: str = "k8s-public-lb") -> EgressAuditSpec:
    accepted = {"check": check, "resource": "*", "reason": "test of the edge", "owner": "platform", "expires": expires}
    return EgressAuditSpec.model_validate({**SPEC.model_dump(by_alias=True, mode="json"), "exceptions": [accepted]})


@pytest.mark.parametrize(
    ("days", "truth"),
    [
        (15, ("True", "ExceptionsCount")),
        (14, ("True", "ExceptionExpiring")),
        (0, ("True", "ExceptionExpiring")),
        (-1, ("False", "ExceptionExpired")),
    ],
)
def test_an_exception_is_announced_before_it_ends_and_named_once_it_has(days: int, truth: tuple[str, str]) -> None:
    day = f"{NOW + timedelta(days=days):%Y-%m-%d}"
    spec, verdict_inputs = excepting(day), inputs(cluster_findings=(OPEN,))
    status = status_with(verdict_inputs, spec=spec)
    assert condition(status, "ExceptionsCurrent") == truth
    assert status["verdict"] == ("Fail" if days < 0 else "Pass")
    message = next(
        condition["message"] for condition in status["conditions"] if condition["type"] == "ExceptionsCurrent"
    )
    standing = standing_of(spec, verdict_inputs, NOW)
    assert bool(standing.notes) is (days <= 14)
    if days <= 14:
        assert (
            f"the exception of platform for k8s-public-lb on * {'expired' if days < 0 else 'ends'} on {day}" in message
        )
    events = [announcement.reason for announcement in announcements({}, status)]
    assert ("ExceptionExpired" in events) is (days < 0)
    assert ("ExceptionExpiring" in events) is (0 <= days <= 14)


def test_an_exception_that_came_with_the_attestation_is_told_as_well() -> None:
    report = a_report(an_excepted_finding(f"{NOW:%Y-%m-%d}"), verdict="Pass")
    verdict_inputs = inputs(choice=chosen(report))
    assert condition(status_with(verdict_inputs), "ExceptionsCurrent") == ("True", "ExceptionExpiring")
    later = NOW + timedelta(hours=14)
    assert condition(status_with(verdict_inputs, later), "ExceptionsCurrent") == ("False", "ExceptionExpired")
    assert status_with(verdict_inputs, later)["verdict"] == "Fail"


def test_an_exception_that_had_ended_before_the_audit_is_told_by_the_attestation() -> None:
    ended = {"check": "peering-any", "resource": "*/to-hub", "owner": "network team", "expiry": "2026-01-31"}
    status = status_with(inputs(choice=chosen(a_report(endedExceptions=[ended]))))
    assert (condition(status, "ExceptionsCurrent"), status["verdict"]) == (("False", "ExceptionExpired"), "Pass")
    message = next(
        condition["message"] for condition in status["conditions"] if condition["type"] == "ExceptionsCurrent"
    )
    assert message == ("the exception of network team for peering-any on */to-hub expired on 2026-01-31 and is ignored")


def test_without_exceptions_nothing_is_said_about_them() -> None:
    assert "ExceptionsCurrent" not in {condition["type"] for condition in status_with(inputs())["conditions"]}


PARTS = {
    "checks": ["nic-default-outbound", "subnet-nat-gateway"],
    "resources": [],
    "failReason": "NoneWithWayOut",
    "unknownReason": "NoneUnproved",
    "worst": "Fail",
}


def derived_finding(verdict_: str, severity: str = "high") -> dict[str, Any]:
    return a_finding(
        verdict_, check="aks-outbound-type", severity=severity, reason="NoneUnproved", message="nic", derivedFrom=PARTS
    )


def test_what_is_accepted_here_is_accepted_of_what_follows_from_it() -> None:
    nic = a_finding("Unknown", check="nic-default-outbound", severity="high", message="Azure does not show it")
    choice = chosen(a_report(derived_finding("Unknown"), nic, verdict="Unknown"))
    assert verdict(inputs(choice=choice)) is Verdict.UNKNOWN
    standing = standing_of(excepting("2099-12-31", "nic-default-outbound"), inputs(choice=choice), NOW)
    assert standing.verdict is Verdict.PASS
    about = next(finding for finding in standing.findings if finding.check == "aks-outbound-type")
    assert (about.verdict, about.exception and about.exception.expiry) == (Verdict.EXCEPTED, "2099-12-31")


def test_the_message_of_the_status_names_the_cause_and_not_what_follows_from_it() -> None:
    cause = a_finding(
        "Fail", check="subnet-nat-gateway", severity="critical", message="a NAT gateway is attached", paths=["a -> b"]
    )
    worse = derived_finding("Fail", "critical")
    status = status_with(inputs(choice=chosen(a_report(worse, cause, verdict="Fail"))))
    assert status["message"].startswith("a -> b: a NAT gateway is attached (subnet-nat-gateway")


def test_refused_statements_are_named_in_the_status_while_another_counts() -> None:
    """Those of a trusted key first, each once also where several objects hold it, and the number of the rest."""
    about = provenance(cluster=OTHER_CLUSTER)
    report = a_report(cluster=OTHER_CLUSTER, observed=OBSERVED - timedelta(hours=1))
    authentic, stranger = as_object(signed(KEY, report, about=about)), an_ed25519_key(9, "stranger")
    copy = {**authentic, "metadata": {"name": "egress-copy"}}
    later = [a_report(observed=OBSERVED + timedelta(minutes=number)) for number in range(1, MOST_REFUSALS + 4)]
    forged = [as_object(signed(stranger, report)) for report in later]
    choice = choose([as_object(signed(KEY)), authentic, copy, *forged], trust(KEY), Expected(CLUSTER), NOW)
    status = status_with(inputs(choice=choice))
    assert status["verdict"] == "Pass"
    assert status["refusals"][0] == {"name": "egress-copy", "reason": "OtherCluster"}
    assert {refusal["reason"] for refusal in status["refusals"][1:]} == {"UnknownKey"}
    assert (len(status["refusals"]), status["moreRefusals"]) == (MOST_REFUSALS, len(forged) + 1 - MOST_REFUSALS)


def test_first_imports_are_remembered_in_the_status_also_where_nothing_could_be_evaluated() -> None:
    digest = chosen().accepted.digest
    first = status_with(inputs(choice=replace(chosen(), imports={digest: NOW})))
    assert first["imports"] == [{"digest": digest, "at": timestamp(NOW)}]
    assert status_unfounded(3, first, "broken", NOW)["imports"] == first["imports"]
    assert status_unreadable(3, first, "broken", NOW)["imports"] == first["imports"]

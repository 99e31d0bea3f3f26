"""The gate that the product exists for: everything but complete, fresh evidence that says Pass keeps it closed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import combinations

import pytest

from hermetic.api.conditions import ConditionType
from hermetic.api.configuration import Configuration
from hermetic.api.reasons import Reason
from hermetic.api.times import CLOCK_SKEW
from hermetic.plan.gate_results import HOLDS, Blocks
from hermetic.plan.isolation import CONFIRMED_FOR, allowed_age, closes_at, enforcement, gate, isolation_is_proven
from tests.scenarios import a_share_model
from tests.snapshots import EVERY_SOURCE, NOW, a_snapshot, evidence, spec_of

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


def judged(gate_evidence, *, now=NOW, policy=None, **isolation):
    snapshot = a_snapshot(evidence=gate_evidence, **({"policy": policy} if policy else {}))
    return isolation_is_proven(spec_of(a_share_model(isolation=isolation)), snapshot, now)


def test_complete_fresh_evidence_that_says_pass_opens_the_gate():
    assert judged(evidence("Pass")) == HOLDS


@pytest.mark.parametrize(
    ("gate_evidence", "reason", "truth"),
    [
        (None, Reason.ISOLATION_EVIDENCE_MISSING, "Unknown"),
        (evidence(None), Reason.ISOLATION_EVIDENCE_PENDING, "Unknown"),
        (evidence("Unknown"), Reason.ISOLATION_UNKNOWN, "Unknown"),
        (evidence("Fail"), Reason.ISOLATION_BROKEN, "False"),
        (evidence("Pass", age=2 * DAY), Reason.ISOLATION_EVIDENCE_STALE, "Unknown"),
        (evidence("Pass", observed_at=None), Reason.ISOLATION_EVIDENCE_MISSING, "Unknown"),
        (evidence("Pass", age=-timedelta(hours=1)), Reason.ISOLATION_UNKNOWN, "Unknown"),
    ],
    ids=["nothing", "not judged", "unknown", "fail", "old", "undated", "from the future"],
)
def test_anything_else_closes_it_and_says_why(gate_evidence, reason, truth):
    verdict = judged(gate_evidence)
    assert isinstance(verdict, Blocks)
    assert (verdict.reason, verdict.truth) == (reason, truth)
    assert verdict.condition is ConditionType.ISOLATION_VERIFIED
    assert verdict.message


SUBSETS = [frozenset(some) for size in range(3) for some in combinations(sorted(EVERY_SOURCE), size)]


@pytest.mark.parametrize("sources", SUBSETS, ids=lambda some: "+".join(sorted(some)) or "none")
def test_a_pass_without_every_look_is_no_pass_and_names_what_is_missing(sources):
    verdict = judged(evidence("Pass", sources=sources))
    assert isinstance(verdict, Blocks)
    assert verdict.reason is Reason.ISOLATION_EVIDENCE_MISSING
    assert all(missing in verdict.message for missing in EVERY_SOURCE - sources)


@pytest.mark.parametrize("sources", SUBSETS, ids=lambda some: "+".join(sorted(some)) or "none")
def test_a_fail_counts_from_every_source_and_at_every_age(sources):
    verdict = judged(evidence("Fail", sources=sources, age=30 * DAY, message="node subnet -> NAT gateway -> internet"))
    assert isinstance(verdict, Blocks)
    assert verdict.reason is Reason.ISOLATION_BROKEN
    assert verdict.message == "node subnet -> NAT gateway -> internet"


@pytest.mark.parametrize(("age", "open_"), [(DAY - SECOND, True), (DAY, False), (DAY + SECOND, False)])
def test_evidence_counts_to_the_second(age, open_):
    assert (judged(evidence(age=age, expires_at=None)) == HOLDS) == open_


@pytest.mark.parametrize(("left", "open_"), [(SECOND, True), (timedelta(), False), (-SECOND, False)])
def test_evidence_that_expires_closes_the_gate_at_that_second(left, open_):
    assert (judged(evidence(expires_at=NOW + left)) == HOLDS) == open_


@pytest.mark.parametrize(
    ("cluster", "deployment", "allowed"),
    [(86400, 86400, 86400), (86400, 3600, 3600), (3600, 86400, 3600), (3600, 604800, 3600), (604800, 604800, 604800)],
)
def test_a_deployment_may_ask_for_fresher_evidence_than_the_cluster_never_for_older(cluster, deployment, allowed):
    policy = Configuration.model_validate({"maxEvidenceAgeSeconds": cluster})
    spec = spec_of(a_share_model(isolation={"maxEvidenceAgeSeconds": deployment}))
    assert allowed_age(spec, a_snapshot(policy=policy)) == timedelta(seconds=allowed)


def test_a_clock_that_is_a_little_ahead_is_forgiven():
    assert judged(evidence(age=-timedelta(minutes=4))) == HOLDS


def test_message_of_stale_evidence_names_a_moment_so_that_it_does_not_change_every_second():
    isolation_evidence = evidence(age=2 * DAY, expires_at=None)
    first, later = judged(isolation_evidence), judged(isolation_evidence, now=NOW + timedelta(minutes=17))
    assert first == later
    assert isinstance(first, Blocks)
    assert "2026-11-22T12:00:00Z" in first.message
    assert "24 h" in first.message


@pytest.mark.parametrize(
    ("confirmed", "open_"),
    [
        (NOW, True),
        (NOW - CONFIRMED_FOR + SECOND, True),
        (NOW - CONFIRMED_FOR, False),
        (None, False),
        (NOW + CLOCK_SKEW, True),
        (NOW + CLOCK_SKEW + SECOND, False),
        (NOW + timedelta(hours=6), False),
    ],
)
def test_a_pass_counts_only_while_this_process_comes_to_it_again(confirmed, open_):
    verdict = judged(evidence(confirmed_at=confirmed))
    assert (verdict == HOLDS) == open_
    if isinstance(verdict, Blocks):
        assert (verdict.reason, verdict.truth) == (Reason.ISOLATION_EVIDENCE_PENDING, "Unknown")


def test_evidence_closes_at_the_earlier_of_its_age_and_its_end():
    spec = spec_of(a_share_model())
    observed = NOW - timedelta(hours=1)
    by_age = a_snapshot(evidence=evidence(expires_at=NOW + 10 * DAY))
    by_end = a_snapshot(evidence=evidence(expires_at=NOW + SECOND))
    assert closes_at(spec, by_age) == observed + DAY
    assert closes_at(spec, by_end) == NOW + SECOND
    assert closes_at(spec, a_snapshot(evidence=None)) is None


def test_gate_is_closed_from_the_moment_that_was_announced():
    spec = spec_of(a_share_model())
    for isolation_evidence in (evidence(expires_at=NOW + 10 * DAY), evidence(expires_at=NOW + SECOND)):
        closing = closes_at(spec, a_snapshot(evidence=isolation_evidence))
        assert closing is not None
        snapshot = a_snapshot(evidence=replace(isolation_evidence, confirmed_at=closing - SECOND))
        assert isolation_is_proven(spec, snapshot, closing - SECOND) == HOLDS
        assert isinstance(isolation_is_proven(spec, snapshot, closing), Blocks)


@pytest.mark.parametrize(
    ("of_the_audit", "reason"),
    [
        ("AttestationMissing", Reason.ISOLATION_EVIDENCE_MISSING),
        ("AttestationRefused", Reason.ISOLATION_EVIDENCE_MISSING),
        ("ProbeNotConfigured", Reason.ISOLATION_EVIDENCE_MISSING),
        ("ProbePending", Reason.ISOLATION_EVIDENCE_PENDING),
        ("ClusterNotSeen", Reason.ISOLATION_EVIDENCE_PENDING),
        ("IsolationEvidenceStale", Reason.ISOLATION_EVIDENCE_STALE),
        ("ProbeStale", Reason.ISOLATION_UNKNOWN),
        ("SpecInvalid", Reason.ISOLATION_UNKNOWN),
        ("", Reason.ISOLATION_UNKNOWN),
        ("OfALaterRelease", Reason.ISOLATION_UNKNOWN),
    ],
)
def test_why_the_audit_does_not_know_is_why_the_gate_is_closed(of_the_audit, reason):
    verdict = judged(evidence("Unknown", reason=of_the_audit, message="said by the audit"))
    assert isinstance(verdict, Blocks)
    assert (verdict.reason, verdict.truth, verdict.message) == (reason, "Unknown", "said by the audit")


def a_floor(minimum, *overrides):
    floor_overrides = [{"minimumEnforcement": minimum, "namespaces": list(names)} for minimum, *names in overrides]
    return Configuration.model_validate({"isolation": {"minimumEnforcement": minimum, "overrides": floor_overrides}})


@pytest.mark.parametrize("requested", ["Enforce", "Report", "Off"])
@pytest.mark.parametrize("minimum", ["Enforce", "Report", "Off"])
def test_the_stricter_of_what_is_asked_and_the_minimum_counts(requested, minimum):
    strictness = {"Off": 0, "Report": 1, "Enforce": 2}
    spec = spec_of(a_share_model(isolation={"enforcement": requested}))
    enforced = enforcement(spec, a_snapshot(policy=a_floor(minimum)))
    assert strictness[enforced] == max(strictness[requested], strictness[minimum])


def test_nothing_less_than_enforce_counts_unless_the_platform_says_so():
    spec = spec_of(a_share_model(isolation={"enforcement": "Off"}))
    assert enforcement(spec, a_snapshot(policy=Configuration())) == "Enforce"


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([("Off", "inference")], "Off"),
        ([("Off", "another")], "Enforce"),
        ([("Report", "*")], "Report"),
        ([("Off", "inference"), ("Report", "*")], "Report"),
        ([("Off", "inf")], "Enforce"),
    ],
)
def test_a_namespace_may_have_another_minimum_and_the_strictest_that_names_it_counts(overrides, expected):
    spec = spec_of(a_share_model(isolation={"enforcement": "Off"}))
    assert enforcement(spec, a_snapshot(policy=a_floor("Enforce", *overrides))) == expected


@pytest.mark.parametrize("requested", ["Report", "Off"])
def test_less_than_the_minimum_is_raised_to_it(requested):
    spec = spec_of(a_share_model(isolation={"enforcement": requested}))
    isolation_evidence = evidence("Fail", message="subnet snet-gpu -> nat gateway -> internet")
    blocked = gate(spec, a_snapshot(evidence=isolation_evidence, policy=a_floor("Enforce")), NOW)
    assert isinstance(blocked, Blocks)
    assert blocked.reason is Reason.ENFORCEMENT_RAISED
    for phrase in (f"`isolation.enforcement` {requested} is raised to Enforce", "namespace 'inference'", "nat gateway"):
        assert phrase in blocked.message
    assert gate(spec, a_snapshot(evidence=evidence("Pass"), policy=a_floor("Enforce")), NOW) == HOLDS

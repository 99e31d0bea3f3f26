"""What a trusted key signed is refused for what it says, or because it does not count here and now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.times import CLOCK_SKEW
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Expected, Newest, authenticate, verify
from hermetic.signing.envelope import Envelope
from hermetic.signing.faults import EnvelopeFault
from tests.attestations import (
    CA,
    CLUSTER,
    NOW,
    OBSERVED,
    OTHER_CLUSTER,
    a_finding,
    a_report,
    an_excepted_finding,
    provenance,
    signed,
)
from tests.refusals import HERE, KEY, TRUSTED, refusal_of, statement_with, word

# What it says


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(_type="https://in-toto.io/Statement/v0.1"),
        lambda document: document.update(predicateType="https://slsa.dev/provenance/v1"),
        lambda document: document.update(predicateType="https://hermetic.dev/attestation/egress-audit/v2"),
        lambda document: document.pop("predicateType"),
        lambda document: document["predicate"]["report"].update(schema="hermetic.dev/audit/v2"),
        lambda document: document["predicate"]["report"].pop("schema"),
    ],
)
def test_wrong_predicate(change: Callable[[dict[str, Any]], Any]) -> None:
    assert word(statement_with(change)) == Refusal.WRONG_PREDICATE


def test_azure_not_asked() -> None:
    envelope = statement_with(lambda document: document["predicate"]["report"].update(sources=["kube", "probe"]))
    assert word(envelope) == Refusal.AZURE_NOT_ASKED


def report_of(document: dict[str, Any]) -> dict[str, Any]:
    report: dict[str, Any] = document["predicate"]["report"]
    return report


@pytest.mark.parametrize(
    "change",
    [
        lambda document: report_of(document)["findings"][0].update(verdict="Fail"),
        lambda document: report_of(document).update(verdict="Fail"),
        lambda document: report_of(document).update(findings=[]),
        lambda document: report_of(document)["summary"].update(Pass=2),
        lambda document: report_of(document)["summary"].pop("Unknown"),
        lambda document: report_of(document)["findings"].append(a_finding()),
        lambda document: report_of(document).update(cluster=OTHER_CLUSTER),
        lambda document: report_of(document).update(note="added after its digest was taken"),
        lambda document: report_of(document).update(startedAt="2026-11-21T10:00:01Z"),
        lambda document: document["subject"][0].update(name=OTHER_CLUSTER),
        lambda document: document["subject"][0]["digest"].update(sha256="00" * 32),
        lambda document: document["predicate"]["scope"].update(clusterArmId=OTHER_CLUSTER),
        lambda document: document["predicate"].update(previous="sha256:" + "00" * 32),
        lambda document: document["predicate"].update(sequence=2),
        lambda document: document["predicate"].update(expiresAt="2026-11-21T10:00:00Z"),
        lambda document: document["predicate"].update(reportDigest="sha256:" + "00" * 32),
        lambda document: document["predicate"]["omitted"].update(Pass={"subnet-default-outbound": 1}),
    ],
)
def test_contradictory_although_signed(change: Callable[[dict[str, Any]], Any]) -> None:
    assert word(statement_with(change)) == Refusal.CONTRADICTORY


def passing(report: dict[str, Any]) -> Callable[[dict[str, Any]], Any]:
    """Puts a report, and a digest that fits it, into a statement."""
    from hermetic.audit.attestation.report_form import report_digest

    return lambda document: document["predicate"].update(report=report, reportDigest=report_digest(report))


@pytest.mark.parametrize(
    ("report", "verdict"),
    [
        (a_report(a_finding("Fail")), "Fail"),
        (a_report(a_finding("Fail", severity="high")), "Fail"),
        (a_report(a_finding("Unknown")), "Unknown"),
        (a_report(a_finding("Unknown", severity="high")), "Unknown"),
        (a_report(a_finding(), a_finding("Fail"), a_finding("Unknown")), "Fail"),
        ({**a_report(), "findings": [], "summary": dict.fromkeys(a_report()["summary"], 0)}, "Unknown"),
    ],
)
def test_a_pass_that_its_findings_deny_is_refused_although_all_else_fits(report: dict[str, Any], verdict: str) -> None:
    refusal = refusal_of(statement_with(passing(report)))
    assert refusal.refusal == Refusal.CONTRADICTORY
    assert f"its verdict is Pass, and its findings come to {verdict}" in refusal.message
    assert authenticate(statement_with(passing({**report, "verdict": verdict})), TRUSTED)


def test_an_exception_belongs_to_an_excepted_finding_and_only_there() -> None:
    without = a_report({**an_excepted_finding("2026-12-31"), "exception": None})
    beside = a_report({**an_excepted_finding("2026-12-31"), "verdict": "Pass"})
    for report in (without, beside):
        assert word(statement_with(passing(report))) == Refusal.CONTRADICTORY
    bad_day = a_report(an_excepted_finding("2026-02-30"))
    assert word(statement_with(passing(bad_day))) == EnvelopeFault.MALFORMED


def test_expiry_too_far() -> None:
    envelope = statement_with(lambda document: document["predicate"].update(expiresAt="2026-11-28T10:00:01Z"))
    assert word(envelope) == Refusal.EXPIRY_TOO_FAR
    week = statement_with(lambda document: document["predicate"].update(expiresAt="2026-11-28T10:00:00Z"))
    assert verify(week, TRUSTED, HERE, NOW)


# Whether it counts here and now


def test_other_cluster() -> None:
    assert word(signed(KEY), Expected(OTHER_CLUSTER)) == Refusal.OTHER_CLUSTER
    assert word(signed(KEY), Expected(CLUSTER, "sha256:" + "00" * 32)) == Refusal.OTHER_CLUSTER
    other_uid = "3f1c2d4e-0000-4000-8000-00000000dead"
    assert word(signed(KEY), Expected(CLUSTER, CA, other_uid)) == Refusal.OTHER_CLUSTER


@pytest.mark.parametrize("missing", [{"ca": None}, {"uid": None}])
def test_scope_incomplete(missing: dict[str, None]) -> None:
    envelope = signed(KEY, about=provenance(**missing))
    assert word(envelope) == Refusal.SCOPE_INCOMPLETE
    assert verify(envelope, TRUSTED, Expected(CLUSTER), NOW)


def test_other_profile() -> None:
    filtered = signed(KEY, a_report(profile="filtered"))
    assert word(filtered) == Refusal.OTHER_PROFILE
    assert verify(filtered, TRUSTED, Expected(profile="filtered"), NOW)
    assert verify(signed(KEY), TRUSTED, Expected(profile="filtered"), NOW), "sealed is the stricter one"


def of_policy(digest: str | None) -> Envelope:
    about = provenance()
    return signed(KEY, about=replace(about, inputs=about.inputs.model_copy(update={"policy": digest})))


@pytest.mark.parametrize("digest", ["sha256:" + "0b" * 32, None], ids=["another policy file", "no policy file"])
def test_other_policy(digest: str | None) -> None:
    pinned = "sha256:" + "0a" * 32
    refusal = refusal_of(of_policy(digest), Expected(policy_digests=(pinned,)))
    assert refusal.refusal == Refusal.OTHER_POLICY
    assert (digest or "without a policy file") in refusal.message
    assert pinned in refusal.message
    assert verify(of_policy(digest), TRUSTED, Expected(), NOW), "no digest is listed"
    assert verify(of_policy(pinned), TRUSTED, Expected(policy_digests=("sha256:" + "0c" * 32, pinned)), NOW)


def test_from_the_future() -> None:
    to_be = OBSERVED - NOW
    assert word(signed(KEY), at=to_be - CLOCK_SKEW - timedelta(seconds=1)) == Refusal.FROM_THE_FUTURE
    assert verify(signed(KEY), TRUSTED, HERE, OBSERVED - CLOCK_SKEW)


def test_expired() -> None:
    end = OBSERVED + timedelta(days=1) - NOW
    assert word(signed(KEY), Expected(), at=end) == Refusal.EXPIRED
    assert verify(signed(KEY), TRUSTED, Expected(), NOW + end - timedelta(seconds=1))


def test_expired_by_the_age_that_is_allowed_here() -> None:
    two_hours = Expected(max_age_seconds=7200)
    assert word(signed(KEY), two_hours) == Refusal.EXPIRED
    assert verify(signed(KEY), TRUSTED, two_hours, NOW - timedelta(seconds=1))


def test_replayed() -> None:
    old, new = signed(KEY), signed(KEY, a_report(observed=OBSERVED + timedelta(hours=1)))
    accepted = verify(new, TRUSTED, HERE, NOW)
    newest = Newest(accepted.digest, accepted.observed_at)
    assert word(old, Expected(newest=newest)) == Refusal.REPLAYED
    assert verify(new, TRUSTED, Expected(newest=newest), NOW), "the newest itself stays"
    same_second = signed(KEY, a_report(a_finding("Fail"), observed=OBSERVED + timedelta(hours=1), verdict="Fail"))
    assert word(same_second, Expected(newest=newest)) == Refusal.REPLAYED

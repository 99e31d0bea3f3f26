"""Since when subnets are private, inside the signed report: read strictly, and held against the one before."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from hermetic.api.times import timestamp
from hermetic.audit.attestation.chain import verify_chain
from hermetic.audit.attestation.chain_findings import ChainFinding
from hermetic.audit.attestation.refusals import Refusal
from hermetic.audit.attestation.verification import Attestation, authenticate
from hermetic.cli.audit.signing import attested_private
from hermetic.errors import AttestationRefused, ReportUnusable
from hermetic.signing.envelope import Envelope
from hermetic.signing.faults import EnvelopeFault
from tests.attestations import OBSERVED, SUBNET, a_finding, a_report, an_ed25519_key, resigned, signed, trust

KEY = an_ed25519_key()
TRUSTED = trust(KEY)
HOUR = timedelta(hours=1)
FIRST = OBSERVED - 12 * HOUR
ENDED = timedelta(minutes=2)


def entry(since: datetime, basis: str = "audit", **more: Any) -> dict[str, Any]:
    return {"subnet": SUBNET, "since": timestamp(since), "basis": basis, **more}


def attested(observed: datetime, *entries: dict[str, Any], previous: Attestation | None = None) -> Envelope:
    report = a_report(a_finding(), observed=observed, privateSubnets=list(entries))
    return signed(KEY, report, now=observed + timedelta(minutes=5), previous=previous)


def read(envelope: Envelope) -> Attestation:
    return authenticate(envelope, TRUSTED)


def chain_findings(*envelopes: Envelope) -> list[ChainFinding]:
    report = verify_chain([(f"{position}", envelope) for position, envelope in enumerate(envelopes)], TRUSTED)
    return [issue.finding for issue in report.issues]


def two(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> list[ChainFinding]:
    """A chain of two whose second one was signed by a rogue: the first does not have to bear it out."""
    before = attested(FIRST, *first)
    honest = attested(OBSERVED, previous=read(before))

    def change(statement: dict[str, Any]) -> None:
        from hermetic.audit.attestation.report_form import report_digest

        report = statement["predicate"]["report"]
        report["privateSubnets"] = second
        statement["predicate"]["reportDigest"] = report_digest(report)

    return chain_findings(before, resigned(KEY, honest, change))


SEEN = FIRST + ENDED


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([entry(SEEN)], [entry(SEEN, "attestation")]),
        ([entry(SEEN)], [entry(SEEN - 500 * HOUR, "activityLog")]),
        ([entry(SEEN)], [entry(SEEN + HOUR, "activityLog")]),
        ([entry(SEEN)], [entry(OBSERVED + ENDED)]),
        ([], [entry(OBSERVED + ENDED)]),
        ([entry(SEEN)], []),
        ([entry(SEEN)], [entry(SEEN, "attestation", statedSince=timestamp(FIRST - HOUR), statedBy="network-team")]),
    ],
)
def test_what_the_one_before_bears_out_is_intact(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> None:
    assert two(first, second) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], [entry(SEEN, "attestation")]),
        ([], [entry(SEEN, "activityLog")]),
        ([entry(SEEN)], [entry(SEEN - HOUR, "attestation")]),
        ([entry(SEEN)], [entry(SEEN - HOUR, "audit")]),
        ([{**entry(SEEN), "subnet": f"{SUBNET}2"}], [entry(SEEN, "attestation")]),
    ],
)
def test_a_moment_that_was_never_shown_breaks_the_chain(
    first: list[dict[str, Any]], second: list[dict[str, Any]]
) -> None:
    assert two(first, second) == [ChainFinding.PRIVATE_SINCE_UNFOUNDED]


@pytest.mark.parametrize(
    ("entries", "refusal"),
    [
        ([entry(OBSERVED + HOUR)], Refusal.CONTRADICTORY),
        ([entry(OBSERVED), {**entry(OBSERVED), "subnet": SUBNET.upper()}], Refusal.CONTRADICTORY),
        ([entry(FIRST, "attestation")], Refusal.CONTRADICTORY),
        ([entry(OBSERVED, "policy")], EnvelopeFault.MALFORMED),
        ([{**entry(OBSERVED), "since": "2026-02-30T00:00:00Z"}], EnvelopeFault.MALFORMED),
        ([{**entry(OBSERVED), "since": "2026-11-20T00:00:00"}], EnvelopeFault.MALFORMED),
        ([{**entry(OBSERVED), "since": 5}], EnvelopeFault.MALFORMED),
        ([{**entry(OBSERVED), "subnet": "*"}], EnvelopeFault.MALFORMED),
        ([{**entry(OBSERVED), "subnet": SUBNET.rpartition("/")[0] + "/*"}], EnvelopeFault.MALFORMED),
        ([7], EnvelopeFault.MALFORMED),
    ],
)
def test_what_contradicts_itself_is_neither_signed_nor_taken(entries: list[Any], refusal: Refusal) -> None:
    with pytest.raises(ReportUnusable):
        attested(OBSERVED, *entries)
    honest = attested(OBSERVED)

    def change(statement: dict[str, Any]) -> None:
        from hermetic.audit.attestation.report_form import report_digest

        report = statement["predicate"]["report"]
        report["privateSubnets"] = entries
        statement["predicate"]["reportDigest"] = report_digest(report)

    with pytest.raises(AttestationRefused) as refused:
        read(resigned(KEY, honest, change))
    assert refused.value.refusal == refusal


def test_an_attestation_of_a_release_that_knew_nothing_of_it_is_taken_and_hands_on_nothing() -> None:
    older = signed(KEY, a_report(a_finding()))
    assert read(older).read_report.private_subnets == []
    assert attested_private(read(older)) == ()


def test_what_is_handed_on_is_the_moment_and_when_it_was_last_seen() -> None:
    before = read(attested(FIRST, entry(SEEN)))
    [private_subnet] = attested_private(before)
    assert (private_subnet.subnet, private_subnet.since, private_subnet.seen_from, private_subnet.seen_at) == (
        SUBNET,
        SEEN,
        FIRST,
        SEEN,
    )
    assert private_subnet.digest == before.digest

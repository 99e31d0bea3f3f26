"""Each finding about a chain, shown by a chain that has exactly that fault; and chains that have none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hermetic.audit.attestation.chain import ChainReport, verify_chain
from hermetic.audit.attestation.chain_findings import ChainFinding
from hermetic.audit.attestation.verification import authenticate
from hermetic.signing.envelope import Envelope
from hermetic.signing.keys import TrustedKeys, read_public_key, trusted
from tests.attestations import (
    NOW,
    OBSERVED,
    OTHER_CLUSTER,
    UID,
    a_chain,
    a_finding,
    a_p256_key,
    a_report,
    an_ed25519_key,
    provenance,
    public_pem_of,
    resigned,
    signed,
    trust,
)

KEY = an_ed25519_key()
TRUSTED = trust(KEY)
CHAIN = a_chain(6, KEY)


def judged(
    envelopes: list[Envelope], keys: TrustedKeys = TRUSTED, *, head: str | None = None, ordered: bool = True
) -> ChainReport:
    return verify_chain(
        [(f"{position}", envelope) for position, envelope in enumerate(envelopes)], keys, head=head, ordered=ordered
    )


def found(report: ChainReport) -> list[tuple[ChainFinding, str]]:
    return [(issue.finding, issue.name) for issue in report.issues]


def after(envelope: Envelope, observed, key=KEY, about=None, **report) -> Envelope:
    """One more, signed as the next after the envelope."""
    last = authenticate(envelope, TRUSTED)
    following = a_report(a_finding(message="next"), observed=observed, **report)
    return signed(key, following, now=observed + timedelta(minutes=1), previous=last, about=about)


def test_a_chain_without_fault_is_intact() -> None:
    for length in (1, 2, 6):
        report = judged(a_chain(length, KEY))
        assert (report.intact, found(report), len(report.links)) == (True, [], length)
        assert report.head == report.links[-1].attestation.digest


def test_no_attestation_is_no_chain() -> None:
    assert not judged([]).intact
    assert judged([]).head is None


def test_the_order_of_files_does_not_matter_and_that_of_a_list_does() -> None:
    swapped = [*CHAIN[:2], CHAIN[3], CHAIN[2], *CHAIN[4:]]
    assert judged(swapped, ordered=False).intact
    assert [link.name for link in judged(swapped, ordered=False).links] == ["0", "1", "3", "2", "4", "5"]
    assert found(judged(swapped)) == [(ChainFinding.REORDERED, "3")]


def test_refused() -> None:
    edited = Envelope(CHAIN[2].payload.replace(b"Pass", b"Fail"), CHAIN[2].keyid, CHAIN[2].signature)
    report = judged([*CHAIN[:2], edited, *CHAIN[3:]])
    assert found(report) == [(ChainFinding.REFUSED, "2"), (ChainFinding.GAP, "3")]
    assert report.issues[0].message.startswith("Edited: ")


def test_an_unknown_and_an_expired_key_are_refused_by_name() -> None:
    assert {findings.message.split(":")[0] for findings in judged(CHAIN, trust(a_p256_key())).issues} == {"UnknownKey"}
    until = OBSERVED - timedelta(hours=30)
    retired = trusted([read_public_key("old", public_pem_of(KEY.key), not_after=until)])
    findings = judged(CHAIN, retired).issues
    assert [(finding.name, finding.message.split(":")[0]) for finding in findings] == [
        (f"{position}", "KeyExpired") for position in (3, 4, 5)
    ]


def test_duplicate() -> None:
    assert found(judged([*CHAIN[:3], CHAIN[2], *CHAIN[3:]])) == [(ChainFinding.DUPLICATE, "3")]


def test_start_missing() -> None:
    assert found(judged(CHAIN[1:])) == [(ChainFinding.START_MISSING, "0")]
    assert "numbers 1 to 3 are missing" in judged(CHAIN[3:]).issues[0].message


def test_gap() -> None:
    gap_issues = judged([*CHAIN[:2], *CHAIN[3:]]).issues
    two = judged([*CHAIN[:2], *CHAIN[4:]]).issues
    assert [(issue.finding, issue.message) for issue in (*gap_issues, *two) if issue.finding.breaks] == [
        (ChainFinding.GAP, "number 3 is missing between 1 and it"),
        (ChainFinding.GAP, "numbers 3 to 4 are missing between 1 and it"),
    ]


def test_fork_of_two_with_one_number() -> None:
    second_end = after(CHAIN[4], OBSERVED + timedelta(minutes=1))
    assert found(judged([*CHAIN, second_end])) == [(ChainFinding.FORK, "6")]


def test_fork_of_one_that_follows_another_than_the_one_before_it() -> None:
    other = a_chain(6, KEY, every=timedelta(hours=11))
    report = judged([*CHAIN[:3], *other[3:]])
    assert found(report) == [(ChainFinding.FORK, "3")]
    assert CHAIN[2].digest in report.issues[0].message
    assert other[2].digest in report.issues[0].message


def test_foreign() -> None:
    observed = OBSERVED + timedelta(minutes=1)
    elsewhere = resigned(
        KEY,
        signed(KEY, a_report(cluster=OTHER_CLUSTER, observed=observed), about=provenance(OTHER_CLUSTER)),
        lambda document: document["predicate"].update(sequence=7, previous=CHAIN[-1].digest),
    )
    rebuilt = resigned(
        KEY,
        signed(KEY, a_report(observed=observed), about=provenance(uid=UID.replace("beef", "dead"))),
        lambda document: document["predicate"].update(sequence=7, previous=CHAIN[-1].digest),
    )
    for foreign in (elsewhere, rebuilt):
        assert found(judged([*CHAIN, foreign])) == [(ChainFinding.FOREIGN, "6")]


def test_clock_regression() -> None:
    back = resigned(
        KEY,
        signed(KEY, a_report(observed=OBSERVED - timedelta(hours=1))),
        lambda document: document["predicate"].update(sequence=7, previous=CHAIN[-1].digest),
    )
    assert found(judged([*CHAIN, back])) == [(ChainFinding.CLOCK_REGRESSION, "6")]


def test_head_missing() -> None:
    assert judged(CHAIN, head=CHAIN[-1].digest).intact
    shorter = judged(CHAIN[:-1], head=CHAIN[-1].digest)
    assert found(shorter) == [(ChainFinding.HEAD_MISSING, "4")]
    assert CHAIN[-1].digest in shorter.issues[0].message
    assert [findings.finding for findings in judged([], head=CHAIN[-1].digest).issues] == [ChainFinding.HEAD_MISSING]


def test_a_changed_key_is_a_note() -> None:
    new = a_p256_key()
    longer = [*CHAIN, after(CHAIN[-1], OBSERVED + timedelta(minutes=1), key=new)]
    report = judged(longer, trust(KEY, new))
    assert (report.intact, found(report)) == (True, [(ChainFinding.KEY_CHANGED, "6")])
    assert report.issues[0].message == "from 'platform-2026' to 'platform-p256'"


def test_a_changed_ca_is_a_note() -> None:
    renewed = provenance(ca="sha256:" + "cb" * 32)
    report = judged([*CHAIN, after(CHAIN[-1], OBSERVED + timedelta(minutes=1), about=renewed)])
    assert (report.intact, found(report)) == (True, [(ChainFinding.CA_CHANGED, "6")])


def test_a_time_that_nothing_covers_is_a_note() -> None:
    report = judged(a_chain(3, KEY, every=timedelta(hours=25)))
    assert (report.intact, found(report)) == (True, [(ChainFinding.UNCOVERED, "1"), (ChainFinding.UNCOVERED, "2")])
    assert report.issues[0].message == "from 2026-11-20T08:00:00Z to 2026-11-20T09:00:00Z"


def test_all_but_the_newest_have_expired_and_the_chain_holds() -> None:
    long_ago = a_chain(3, KEY, every=timedelta(hours=20))
    assert NOW - judged(long_ago).links[0].attestation.expires_at > timedelta(hours=10)
    assert judged(long_ago).intact


@pytest.mark.parametrize("finding", list(ChainFinding), ids=lambda finding: finding.value)
def test_every_finding_is_one_word_with_meaning_and_remedy(finding: ChainFinding) -> None:
    assert finding.value.isalpha()
    assert finding.meaning.endswith(".")
    assert finding.remedy.endswith(".")

"""What is reported when one check has two results for one resource."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.check_findings import Check, findings_of
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model.findings import CheckPage, Evidence, Finding, Severity, Verdict, overall
from hermetic.audit.policy.declarations import Policy
from tests.drawn_paths import hops

PAGE = CheckPage("subnet-check", "title", Severity.CRITICAL, "why", (), "remedy", "source", "outbound")
SEEN = Lookup("/subnet", "seen", (Evidence("GET /subnet", 200, "0" * 64),))

WARNS = fails("/subnet", "Idle", "an idle route", SEEN, severity=Severity.MEDIUM, paths=(hops("subnet -> idle"),))
BREAKS = fails("/subnet", "Open", "an open route", SEEN, paths=(hops("subnet -> internet"),))
HIDES = unknown("/subnet", "HopUnknown", "an unknown route", SEEN)
DOUBTS = unknown("/subnet", "Odd", "an odd route", SEEN, severity=Severity.LOW)
MINOR = fails("/subnet", "Small", "a small hole", SEEN, severity=Severity.LOW)
PUZZLES = unknown("/subnet", "Strange", "a strange route", SEEN, severity=Severity.MEDIUM)
IS_FINE = passes("/subnet", "Closed", "a closed route", SEEN)


def together(*judgements: CheckResult, ordered: bool = True) -> Finding:
    """The one finding, the same in any order of the results; of equals, the first counts."""

    def judge(order: tuple[CheckResult, ...]) -> Iterator[Finding]:
        check = Check(PAGE, frozenset({"azure"}), lambda _estate, _policy: order)
        yield from findings_of(check, Estate("/cluster", ("azure",), {}), Policy())

    combined = [
        finding for order in (permutations(judgements) if ordered else (judgements,)) for finding in judge(order)
    ]
    assert {(finding.verdict, finding.severity, finding.reason) for finding in combined} == {
        (combined[0].verdict, combined[0].severity, combined[0].reason)
    }
    return combined[0]


@pytest.mark.parametrize(
    ("judgements", "reason"),
    [
        ((WARNS, HIDES), "HopUnknown"),
        ((WARNS, HIDES, IS_FINE), "HopUnknown"),
        ((BREAKS, HIDES), "Open"),
        ((BREAKS, WARNS), "Open"),
        ((WARNS, DOUBTS), "Idle"),
        ((MINOR, PUZZLES), "Strange"),
        ((MINOR, PUZZLES, IS_FINE), "Strange"),
        ((MINOR, PUZZLES, BREAKS), "Open"),
        ((MINOR, PUZZLES, WARNS), "Idle"),
        ((HIDES, DOUBTS), "HopUnknown"),
        ((WARNS, IS_FINE), "Idle"),
        ((DOUBTS, IS_FINE), "Odd"),
    ],
)
def test_what_decides_the_verdict_speaks_before_what_warns(judgements: tuple[CheckResult, ...], reason: str) -> None:
    assert together(*judgements).reason == reason


def test_a_warning_behind_a_doubt_keeps_its_words_and_paths() -> None:
    finding = together(WARNS, HIDES)
    assert (finding.verdict, finding.severity) == (Verdict.UNKNOWN, Severity.CRITICAL)
    assert finding.message == "an unknown route; Fail, medium: an idle route"
    assert finding.path_texts == ("subnet -> idle",)


def test_what_is_fine_adds_no_words_to_what_is_wrong() -> None:
    assert together(HIDES, IS_FINE).message == "an unknown route"


WRONG = (Verdict.FAIL, Verdict.UNKNOWN)
EVERY = [(verdict, severity) for verdict in (*WRONG, Verdict.PASS, Verdict.NOT_APPLICABLE) for severity in Severity]
PAIRS = [(judgement, other) for position, judgement in enumerate(EVERY) for other in EVERY[position:]]


def spoken(verdict: Verdict, severity: Severity, word: str) -> CheckResult:
    """What a check says, with a message, a path, a remedy and evidence that are its own."""
    look = Lookup("/subnet", "seen", (Evidence(f"GET /{word}", 200, "0" * 64),))
    remedy = f"Mend {word}." if verdict in WRONG else ""
    paths = (hops(f"subnet -> {word}"),)
    return CheckResult(verdict, "/subnet", word, f"{word} was seen", (look,), paths, severity, remedy)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_of_every_pair_the_more_serious_speaks_and_neither_is_hidden(
    one: tuple[Verdict, Severity], other: tuple[Verdict, Severity]
) -> None:
    judgements = (spoken(*one, "first"), spoken(*other, "second"))
    wrong = [pair for pair in (one, other) if pair[0] in WRONG]
    finding = together(*judgements) if one != other else together(judgements[0], judgements[1], ordered=False)
    if wrong:
        deciding = [pair for pair in wrong if pair[1].decides]
        worst = min(
            deciding or wrong,
            key=lambda pair: (pair[0].rank, pair[1].rank) if deciding else (pair[1].rank, pair[0].rank),
        )
        assert (finding.verdict, finding.severity) == worst
        for judgement, (verdict, severity) in zip(judgements, (one, other), strict=True):
            assert verdict not in WRONG or judgement.message in finding.message
            assert verdict not in WRONG or judgement.remedy in finding.remedy
            if verdict in WRONG and (verdict, severity) != worst:
                assert f"{verdict.value}, {severity.value}: {judgement.message}" in finding.message
    else:
        assert finding.verdict is min(one[0], other[0], key=lambda verdict: verdict.rank)
    assert {path for judgement in judgements for path in judgement.paths} == set(finding.paths)
    assert len(finding.evidence) == 2
    alone = [Finding("subnet-check", "/subnet", *pair, "Reason", "message") for pair in (one, other)]
    assert overall([finding]) == overall(alone)

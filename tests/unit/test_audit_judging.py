"""What becomes of it when one check speaks twice of one resource."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.look import Seen
from hermetic.audit.findings import CheckPage, Evidence, Finding, Severity, Verdict
from hermetic.audit.judging import Check, Judgement, cannot_say, fails, findings_of, passes
from hermetic.audit.policy import Policy

PAGE = CheckPage("subnet-check", "title", Severity.CRITICAL, "why", (), "remedy", "source", "outbound")
LOOK = Seen("/subnet", "seen", (Evidence("GET /subnet", 200, "0" * 64),))

WARNS = fails("/subnet", "Idle", "an idle route", LOOK, severity=Severity.MEDIUM, paths=("subnet -> idle",))
BREAKS = fails("/subnet", "Open", "an open route", LOOK, paths=("subnet -> internet",))
HIDES = cannot_say("/subnet", "HopUnknown", "an unknown route", LOOK)
DOUBTS = cannot_say("/subnet", "Odd", "an odd route", LOOK, severity=Severity.LOW)
IS_FINE = passes("/subnet", "Closed", "a closed route", LOOK)


def together(*said: Judgement) -> Finding:
    """The one finding, the same in whatever order the check speaks."""

    def judge(order: tuple[Judgement, ...]) -> Iterator[Finding]:
        check = Check(PAGE, frozenset({"azure"}), lambda _estate, _policy: order)
        yield from findings_of(check, Estate("/cluster", ("azure",), {}), Policy())

    found = [finding for order in permutations(said) for finding in judge(order)]
    assert {(one.verdict, one.severity, one.reason) for one in found} == {
        (found[0].verdict, found[0].severity, found[0].reason)
    }
    return found[0]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ((WARNS, HIDES), "HopUnknown"),
        ((WARNS, HIDES, IS_FINE), "HopUnknown"),
        ((BREAKS, HIDES), "Open"),
        ((BREAKS, WARNS), "Open"),
        ((WARNS, DOUBTS), "Idle"),
        ((HIDES, DOUBTS), "HopUnknown"),
        ((WARNS, IS_FINE), "Idle"),
        ((DOUBTS, IS_FINE), "Odd"),
    ],
)
def test_what_decides_the_verdict_speaks_before_what_warns(said: tuple[Judgement, ...], reason: str) -> None:
    assert together(*said).reason == reason


def test_a_warning_behind_a_doubt_keeps_its_words_and_paths() -> None:
    found = together(WARNS, HIDES)
    assert (found.verdict, found.severity) == (Verdict.UNKNOWN, Severity.CRITICAL)
    assert found.message == "an unknown route; an idle route"
    assert found.paths == ("subnet -> idle",)


def test_what_is_fine_adds_no_words_to_what_is_wrong() -> None:
    assert together(HIDES, IS_FINE).message == "an unknown route"

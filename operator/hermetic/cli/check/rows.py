"""One row of `hermetic check`: what is, why it matters, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class RowVerdict(StrEnum):
    """What a row says; NotChecked is for what cannot be told from here, and changes no exit code."""

    PASS = "Pass"  # noqa: S105 - not a password
    WARNING = "Warning"
    FAIL = "Fail"
    UNKNOWN = "Unknown"
    NOT_CHECKED = "NotChecked"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`check` names the question, `message` the answer; the others are empty where nothing is to do."""

    check: str
    verdict: RowVerdict
    message: str
    why: str = ""
    fix: str = ""
    commands: tuple[str, ...] = ()


def passes(check: str, message: str) -> CheckRow:
    """Nothing to do."""
    return CheckRow(check, RowVerdict.PASS, message)


def unread(check: str, what: str, problem: str) -> CheckRow:
    """What had to be seen was not."""
    return CheckRow(
        check,
        RowVerdict.UNKNOWN,
        f"{what} cannot be read: {problem}",
        "what is not seen is not known to be right",
        "check with an account that may list them; docs/install.md names the rights",
    )


def overall(rows: Iterable[CheckRow]) -> RowVerdict:
    """Fail before Unknown before Pass; a warning alone is a Pass."""
    found = {row.verdict for row in rows}
    return next((one for one in (RowVerdict.FAIL, RowVerdict.UNKNOWN) if one in found), RowVerdict.PASS)

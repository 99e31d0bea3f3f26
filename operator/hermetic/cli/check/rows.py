"""One row of `hermetic check`: what is, why it matters, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

APPLY_RIGHTS = ("hermetic rbac --config config.yaml | kubectl apply --server-side --filename -",)


class RowVerdict(StrEnum):
    """The verdict of a row. NotChecked: cannot be determined from here, and does not change the exit code."""

    PASS = "Pass"  # noqa: S105 - not a password
    WARNING = "Warning"
    FAIL = "Fail"
    UNKNOWN = "Unknown"
    NOT_CHECKED = "NotChecked"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """`check` names the question, `message` the answer; the others are empty where nothing is to be done."""

    check: str
    verdict: RowVerdict
    message: str
    why: str = ""
    fix: str = ""
    commands: tuple[str, ...] = ()


def passes(check: str, message: str) -> CheckRow:
    """A row with nothing to do."""
    return CheckRow(check, RowVerdict.PASS, message)


def unread(check: str, subject: str, problem: str) -> CheckRow:
    """A row for facts that could not be read."""
    return CheckRow(
        check,
        RowVerdict.UNKNOWN,
        f"{subject} cannot be read: {problem}",
        "an object that cannot be read is not known to be right",
        "check with an account that may list them; docs/install.md names the rights",
    )


def overall(rows: Iterable[CheckRow]) -> RowVerdict:
    """Fail before Unknown before Pass; warnings alone are a Pass."""
    verdicts = {row.verdict for row in rows}
    return next((verdict for verdict in (RowVerdict.FAIL, RowVerdict.UNKNOWN) if verdict in verdicts), RowVerdict.PASS)

"""Times in the form of Kubernetes, UTC and whole seconds (2026-03-01T09:30:00Z), and durations for people."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

CLOCK_SKEW = timedelta(seconds=120)
"""How far the clock of another machine, or this one before it was set, may be ahead."""
_UNITS = ((2 * 86400, 86400, "d"), (3600, 3600, "h"), (60, 60, "min"), (0, 1, "s"))
"""From how many seconds on a unit is used, its seconds, its name."""
_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def timestamp(moment: datetime) -> str:
    """A time with a zone, truncated to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def must_be_utc(*moments: datetime) -> None:
    """Raises ValueError for a time without a zone or of another zone."""
    for moment in moments:
        if moment.utcoffset() != timedelta(0):
            raise ValueError(f"{moment} is not a time in UTC")


def moment_in(text: object) -> datetime | None:
    """The time in a text; None for any other value."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def zoned(text: object) -> datetime | None:
    """The time of an RFC 3339 date-time, in UTC; None for anything else, including a time without a zone."""
    if not isinstance(text, str) or _RFC3339.fullmatch(text) is None:
        return None
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def spell_duration(duration: timedelta, *, units: int = 2) -> str:
    """The largest units of it: "45 s", "2 min 10 s", "1 h 5 min", "3 d 2 h"; days from two on, "0 s" below zero."""
    seconds = max(0, int(duration.total_seconds()))
    largest = next((at for at, (least, _, _) in enumerate(_UNITS) if seconds >= least), len(_UNITS) - 1)
    parts: list[str] = []
    for _, size, unit in _UNITS[largest : largest + units]:
        count, seconds = divmod(seconds, size)
        if count or not parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts)

"""Times in the form of Kubernetes: UTC, whole seconds, 2026-03-01T09:30:00Z."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

CLOCK_SKEW = timedelta(seconds=120)
"""How far the clock of another machine, or this one before it was set, may be ahead."""
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

"""Moments as people and Kubernetes write them: UTC, whole seconds, 2026-03-01T09:30:00Z."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """A moment that knows its zone, cut to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_in(text: object) -> datetime | None:
    """The moment that somebody wrote; None where it is none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None

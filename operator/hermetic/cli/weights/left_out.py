"""What staging and listing say about files that are no part of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from hermetic.api.text import one_line

if TYPE_CHECKING:
    from hermetic.weights.selection import Selection

_MOST_NAMED = 20


def notes_on_selection(selection: Selection) -> Iterator[str]:
    """What was left out, by reason, and patterns that left out nothing."""
    by_reason: dict[str, list[str]] = {}
    for path, reason in selection.recorded():
        by_reason.setdefault(reason, []).append(one_line(path))
    for reason, paths in by_reason.items():
        more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
        yield f"left out ({reason}): {', '.join(paths[:_MOST_NAMED])}{more}"
    for pattern in selection.excludes:
        if pattern not in selection.matched:
            yield f"--exclude {pattern}: no file or folder of the source matches"


def as_json(selection: Selection) -> list[dict[str, str]]:
    """What was left out, as the field `leftOut` of JSON output."""
    return [{"path": path, "reason": reason} for path, reason in selection.recorded()]

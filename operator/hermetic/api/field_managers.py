"""Who wrote an object last, as metadata.managedFields has it.

A field manager is a name that a client gives itself: it says where to look first, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.text import one_line

OURS = ("hermetic", "Apply")
LONGEST_NAME = 128
LONGEST_MOMENT = 32
# Garbage collectors, finalizers and clients that label objects write these; they make nothing public.
_ASIDE = frozenset({"f:labels", "f:finalizers", "f:ownerReferences"})


def newest(managed: Any) -> list[dict[str, str]]:
    """Of metadata.managedFields, the newest entry of others that is not about the status, without fields; bounded.

    An entry with nothing but labels, finalizers or owners counts only where there is no other.
    """
    entries = [one for one in managed if isinstance(one, dict)] if isinstance(managed, list) else []
    of_others = (one for one in entries if (one.get("manager"), one.get("operation")) != OURS)
    written = [one for one in of_others if one.get("manager") and not one.get("subresource")]
    if not written:
        return []
    last = max(written, key=lambda one: (_has_content(one), str(one.get("time") or ""), str(one["manager"])))
    longest = {"manager": LONGEST_NAME, "operation": LONGEST_MOMENT, "time": LONGEST_MOMENT}
    return [{name: str(last[name])[:length] for name, length in longest.items() if last.get(name)}]


def last_writer(managed: Any) -> str:
    """Who wrote an object last, in one bounded line: "'kubectl' (Update, 2026-11-22T10:00:00Z)"; "" if not known."""
    for last in newest(managed):
        how = ", ".join(last[name] for name in ("operation", "time") if name in last)
        return one_line(f"'{last['manager']}'" + (f" ({how})" if how else ""))
    return ""


def written_by(writer: str) -> str:
    """The words that end a message: "; written by field manager 'kubectl' (Update, ...)"; "" for no writer."""
    return f"; written by field manager {writer}" if writer else ""


def _has_content(entry: Mapping[str, Any]) -> bool:
    """Whether it holds more than `_ASIDE`; one whose fields were not kept does."""
    fields = entry.get("fieldsV1")
    if not isinstance(fields, Mapping) or not fields:
        return True
    metadata = fields.get("f:metadata")
    inner = metadata.keys() if isinstance(metadata, Mapping) else ()
    return bool(fields.keys() - {"f:metadata"}) or any(name not in _ASIDE for name in inner)

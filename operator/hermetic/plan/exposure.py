"""Whether something leads to a model's pods from outside that is not its own Service as it was rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.field_managers import written_by
from hermetic.api.text import one_line
from hermetic.plan.exposing_objects import opens
from hermetic.plan.snapshot import ClusterSnapshot, WayIn

SHOWN = 3


def exposure(service: Mapping[str, Any] | None, snapshot: ClusterSnapshot) -> str | None:
    """The message about it; None where every way to the pods is private. `service` is the model's own, live one."""
    found = [_clause(way) for way in snapshot.ways_in]
    if service is not None and (why := opens(service, snapshot.policy, given=False)):
        found.insert(0, f"the model's own Service {why}")
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more if found else None


def _clause(way: WayIn) -> str:
    where = one_line(f"{way.kind} '{way.namespace}/{way.name}'")
    return f"{where} leads to pods of this model and {way.why}{written_by(way.writer)}"

"""Column and row of each box of a drawing, so that every arrow points to the right.

A small layered layout: a place is one column behind the farthest place that links to it, egress paths are in the last
column, a link across several columns bends through an empty slot in each, and slots are ordered by the mean of their
neighbours so that few links cross.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hermetic.audit.model.topology import NetworkLink, PlaceKind, Topology

_ENDS = frozenset({PlaceKind.INTERNET, PlaceKind.STORAGE, PlaceKind.ON_PREMISES})
_SWEEPS = 4

Slot = str
"""The id of a place, or the name of a bend."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Slots by column, top to bottom; `bends` names the empty slots that a link goes through, by (source, target)."""

    slots: tuple[tuple[Slot, ...], ...]
    bends: Mapping[tuple[str, str], tuple[Slot, ...]]


def columns_of(topology: Topology) -> Columns:
    """Assign every place to a column; links that close a cycle are drawn backwards and do not affect the columns.

    Precondition: ids are unique, and each link occurs once and connects listed places.
    """
    forward = _without_circles(topology)
    column = _farthest(topology, forward)
    slots: dict[int, list[Slot]] = defaultdict(list)
    for node in topology.nodes:
        slots[column[node.id]].append(node.id)
    bends: dict[tuple[str, str], tuple[Slot, ...]] = {}
    steps: list[tuple[Slot, Slot]] = []
    for link in forward:
        between = range(column[link.source] + 1, column[link.target])
        passed = {at: f"\0{link.source}\0{link.target}\0{at}" for at in between}
        for at, bend in passed.items():
            slots[at].append(bend)
        bends[link.source, link.target] = tuple(passed.values())
        chain = [link.source, *passed.values(), link.target]
        steps += pairwise(chain)
    return Columns(_ordered([slots[at] for at in sorted(slots)], steps), bends)


def _without_circles(topology: Topology) -> list[NetworkLink]:
    """The links without those that would close a cycle: the rest can all point forward."""
    reached = {node.id: {node.id} for node in topology.nodes}
    forward = []
    for link in topology.edges:
        if link.source in reached[link.target]:
            continue
        forward.append(link)
        for beyond in reached.values():
            if link.source in beyond:
                beyond.update(reached[link.target])
    return forward


def _farthest(topology: Topology, forward: Sequence[NetworkLink]) -> dict[str, int]:
    column = {node.id: 0 for node in topology.nodes}
    for _ in topology.nodes:
        for link in forward:
            column[link.target] = max(column[link.target], column[link.source] + 1)
    # an egress path without a link to it is in the last column too
    last = max(*column.values(), 1) if len(column) > 1 else 0
    leading = {link.source for link in forward}
    ends = {node.id for node in topology.nodes if node.kind in _ENDS and node.id not in leading}
    return {node_id: last if node_id in ends else at for node_id, at in column.items()}


def _ordered(slots: list[list[Slot]], steps: Iterable[tuple[Slot, Slot]]) -> tuple[tuple[Slot, ...], ...]:
    before: dict[Slot, list[Slot]] = defaultdict(list)
    after: dict[Slot, list[Slot]] = defaultdict(list)
    for source, target in steps:
        before[target].append(source)
        after[source].append(target)
    for sweep in range(_SWEEPS):
        neighbours, columns = (before, slots) if sweep % 2 == 0 else (after, slots[::-1])
        for fixed, moving in pairwise(columns):
            offsets = {slot: index / len(fixed) for index, slot in enumerate(fixed)}
            middle = {slot: _mean([offsets[near] for near in neighbours[slot] if near in offsets]) for slot in moving}
            moving.sort(key=middle.__getitem__)
    return tuple(map(tuple, slots))


def _mean(offsets: list[float]) -> float:
    """The mean; 0.5, the middle, of an empty list."""
    return sum(offsets) / len(offsets) if offsets else 0.5

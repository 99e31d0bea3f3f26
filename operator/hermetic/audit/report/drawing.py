"""The topology as shapes with coordinates, for the SVG template to print."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from hermetic.audit.model.topology import NetworkLink, NetworkPlace, Topology
from hermetic.audit.report.graph_layout import Columns, columns_of

MOST_PLACES = 40
BOX_WIDTH, BEND_HEIGHT = 172, 14
COLUMN_GAP, ROW_GAP = 64, 22
MARGIN = 14
LINE_HEIGHT, PADDING = 15, 24
LETTERS, MOST_LINES = 24, 3


@dataclass(frozen=True, slots=True)
class Box:
    """One place; `lines` is its label, shown below its kind."""

    network_place: NetworkPlace
    lines: tuple[str, ...]
    x: int
    y: int
    height: int
    reached: bool
    width: int = BOX_WIDTH


@dataclass(frozen=True, slots=True)
class Arrow:
    """One link as the `d` of an SVG path; its label is at (x, y)."""

    link: NetworkLink
    outline: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Drawing:
    """All shapes, and how many places were left out."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    left_out: int


def drawing_of(topology: Topology) -> Drawing:
    """At most 40 places: those on open links first, the others in the order given."""
    shown = _most_telling(topology)
    columns = columns_of(shown)
    nodes_by_id = {node.id: node for node in shown.nodes}
    lines = {node.id: _lines(node.label) for node in shown.nodes}
    heights = {slot: len(lines[slot]) * LINE_HEIGHT + PADDING if slot in lines else BEND_HEIGHT
               for column in columns.slots for slot in column}  # fmt: skip
    tallest = max((_height(column, heights) for column in columns.slots), default=0)
    at = _positions(columns, heights, tallest)
    reached = {end for link in shown.edges if link.open for end in (link.source, link.target)}
    return Drawing(
        width=2 * MARGIN + len(columns.slots) * (BOX_WIDTH + COLUMN_GAP) - COLUMN_GAP,
        height=2 * MARGIN + tallest,
        boxes=tuple(Box(nodes_by_id[id_], lines[id_], *at[id_], heights[id_], id_ in reached) for id_ in nodes_by_id),
        arrows=tuple(_arrow(link, columns, at, heights) for link in _closed_first(shown)),
        left_out=len({node.id for node in topology.nodes}) - len(shown.nodes),
    )


def _most_telling(topology: Topology) -> Topology:
    """Places without duplicates, up to the maximum, and one link for each pair of places: the open one of several."""
    ends = {end for link in topology.edges if link.open for end in (link.source, link.target)}
    nodes_by_id = {node.id: node for node in reversed(topology.nodes)}
    shown_ids = sorted(dict.fromkeys(node.id for node in topology.nodes), key=lambda id_: id_ not in ends)[:MOST_PLACES]
    links = {(link.source, link.target): link for link in _closed_first(topology)}
    return Topology(
        tuple(node for id_, node in reversed(nodes_by_id.items()) if id_ in shown_ids),
        tuple(link for pair, link in links.items() if set(pair) <= set(shown_ids) and link.source != link.target),
    )


def _closed_first(topology: Topology) -> list[NetworkLink]:
    """Links in drawing order: later ones are on top, so that an open link is never hidden by another."""
    return sorted(topology.edges, key=lambda link: link.open)


def _lines(label: str) -> tuple[str, ...]:
    rows = textwrap.wrap(label, LETTERS) or ["-"]
    if len(rows) > MOST_LINES:
        rows = [*rows[: MOST_LINES - 1], rows[MOST_LINES - 1][: LETTERS - 1] + "…"]
    return tuple(rows)


def _height(column: tuple[str, ...], heights: Mapping[str, int]) -> int:
    return sum(heights[slot] for slot in column) + ROW_GAP * (len(column) - 1)


def _positions(columns: Columns, heights: Mapping[str, int], tallest: int) -> dict[str, tuple[int, int]]:
    """The upper left corner of every slot; each column is centred vertically."""
    at: dict[str, tuple[int, int]] = {}
    for position, column in enumerate(columns.slots):
        y = MARGIN + (tallest - _height(column, heights)) // 2
        for slot in column:
            at[slot] = (MARGIN + position * (BOX_WIDTH + COLUMN_GAP), y)
            y += heights[slot] + ROW_GAP
    return at


def _arrow(link: NetworkLink, columns: Columns, at: Mapping[str, tuple[int, int]], heights: Mapping[str, int]) -> Arrow:
    """From the right edge of one box to the left edge of the next, straight through the bends between."""

    def middle(slot: str) -> int:
        return at[slot][1] + heights[slot] // 2

    x, y = at[link.source][0] + BOX_WIDTH, middle(link.source)
    path_data = f"M{x} {y}"
    for slot in (*columns.bends.get((link.source, link.target), ()), link.target):
        left, centre = at[slot][0], middle(slot)
        bow = max((left - x) // 2, COLUMN_GAP // 2)
        path_data += f" C{x + bow} {y} {left - bow} {centre} {left} {centre}"
        x, y = left, centre
        if slot != link.target:
            x += BOX_WIDTH
            path_data += f" H{x}"
    start = at[link.source][0] + BOX_WIDTH
    return Arrow(
        link,
        path_data,
        start + COLUMN_GAP // 2,
        (middle(link.source) + y) // 2 - 4 if x - start == COLUMN_GAP else y - 5,
    )

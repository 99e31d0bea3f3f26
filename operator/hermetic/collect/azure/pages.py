"""Reads paged lists to their end; a list whose end was not seen has a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hermetic.audit.estate.projection import fields_kept, projected_row
from hermetic.audit.estate.questions import Answer, Body, PackedBody, Problem, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.replies import ArmReply, Ask

MOST_PAGES = 5_000
MOST_BARREN_PAGES = 20
"""After this many pages in a row without a new row, the list is considered endless."""


@dataclass(slots=True)
class PagedList:
    """A list as far as it was read. `more` is the request for the next page, None when there is none.

    `refusal` is ARM's code where it refused a page. `reduce` projects a row, and `projection` names the projection.
    """

    bodies: list[Body] = field(default_factory=list)
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None
    more: Ask | None = None
    refusal: str = ""
    reduce: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    projection: str = ""
    _bodies_by_id: dict[str, tuple[Body, ...]] = field(default_factory=dict)
    _followed: set[str] = field(default_factory=set)
    _barren: int = 0

    @property
    def answer(self) -> Answer:
        """The list as an answer of the estate."""
        return Answer(tuple(self.bodies), self.evidence, self.problem, self.projection)

    def take(self, reply: ArmReply, rows: list[Any]) -> None:
        """Add the rows of one page, projected; an identical row is not added twice."""
        evidence, before = reply.evidence, len(self.bodies)
        self.evidence += evidence
        for row in rows:
            if not isinstance(row, Mapping) or not isinstance(row.get("id"), str) or not row["id"]:
                why = "a row that is not an object, or has no id"
                self.problem = self.problem or reply.but(UnreadReason.UNREADABLE, why).problem
            else:
                self._take(row["id"].lower(), self.reduce(row), evidence)
        self._barren = 0 if len(self.bodies) > before else self._barren + 1

    def goes_on_at(self, target: str) -> bool:
        """Whether to request the next page; False for a link that was followed before, or after too many pages."""
        is_new = target not in self._followed
        self._followed.add(target)
        return is_new and self._barren < MOST_BARREN_PAGES and len(self._followed) < MOST_PAGES

    def _take(self, name: str, row: Mapping[str, Any], evidence: tuple[Evidence, ...]) -> None:
        previous_bodies = self._bodies_by_id.get(name, ())
        if not any(row == previous.value for previous in previous_bodies):
            body = PackedBody(row, evidence)
            self._bodies_by_id[name] = (*previous_bodies, body)
            self.bodies.append(body)


async def all_pages(client: ArmClient, ask: Ask, kind: str = "") -> PagedList:
    """The list to its end. Rows before a page that failed are kept, together with the problem.

    With a resource type, only the fields of a row that its models read are kept.
    """
    listed = PagedList(more=ask)
    if kind:
        listed.reduce, listed.projection = partial(projected_row, kind), fields_kept(kind)
    listed.goes_on_at(ask.target)
    while listed.more is not None:
        await _next_page(client, listed)
    return listed


async def _next_page(client: ArmClient, listed: PagedList) -> None:
    """Read the next page; afterwards `more` is the request for the one after it, or None."""
    ask, listed.more = listed.more, None
    if ask is None:
        return
    reply = await client.ask(ask)
    rows = reply.value.get("value") if isinstance(reply.value, Mapping) else None
    if reply.problem is None and not isinstance(rows, list):
        reply = reply.but(UnreadReason.UNREADABLE, "the answer has no list `value`")
    if reply.problem is not None or not isinstance(rows, list):
        listed.evidence += reply.evidence
        listed.problem, listed.refusal = listed.problem or reply.problem, reply.code
        return
    listed.take(reply, rows)
    client.progress.saw(len(rows))
    link = _field(reply.value, "nextLink")
    if link is not None and link != "":
        _follow(client, listed, reply, link)


def _follow(client: ArmClient, listed: PagedList, reply: ArmReply, link: Any) -> None:
    target = client.wire.local(link) if isinstance(link, str) else ""
    if not target:
        why = "the link to the next page names another host, or none"
    elif not listed.goes_on_at(target):
        why = "the pages lead back to themselves, or have no end"
    else:
        listed.more = reply.ask.to(target)
        return
    listed.problem = listed.problem or reply.but(UnreadReason.TRUNCATED, why).problem


def _field(value: Mapping[str, Any], name: str) -> Any:
    """A field of the envelope, case-insensitive: a nextLink in another case would otherwise end the list early."""
    values: Iterator[Any] = (field for key, field in value.items() if key.lower() == name.lower())
    return next(values, None)

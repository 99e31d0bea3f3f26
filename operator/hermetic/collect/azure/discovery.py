"""Lists of a whole subscription with the help of Resource Graph: it discovers, ARM decides.

ARM's first page of every list is asked for in any case. It proves that the caller may read such resources there, which
Resource Graph never says: it leaves out what may not be read. Mostly it is the whole list, and then ARM alone has
spoken. Where more pages would follow, the rows of Resource Graph stand in for them, if it knows everything that the
first page has. Those rows that mention what is the cluster's own are read from ARM before they count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hermetic.audit.estate.arm_ids import group_of, subscription_of
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, Trouble
from hermetic.audit.findings import Evidence
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.direct import GROUP_LISTS_ONLY, Direct
from hermetic.collect.azure.own import Own
from hermetic.collect.azure.pages import Listed
from hermetic.collect.azure.paths import is_subscription
from hermetic.collect.azure.resource_graph import Rows, resources
from hermetic.collect.side_by_side import both, side_by_side

NOT_IN_GRAPH = frozenset(
    {
        "microsoft.network/servicegateways",
        "microsoft.network/virtualnetworkappliances",
        "microsoft.fileshares/fileshares",
    }
)
"""Whether Resource Graph has these is unconfirmed, so it is not asked."""
FEW = 3
"""From so many rows of one type in one resource group on, the group is listed instead of asking for each."""


def is_discoverable(question: Question) -> bool:
    """Whether this is a list that Resource Graph can help with."""
    kind = question.kind.lower()
    is_list = question.verb == "list" and is_subscription(question.target)
    return is_list and kind.count("/") == 1 and kind not in NOT_IN_GRAPH | GROUP_LISTS_ONLY


@dataclass(slots=True)
class _Found:
    """One list: what ARM has said, and rows that only Resource Graph has, by id in lower case."""

    listed: Listed
    rows: dict[str, Body] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    decided: list[Body] = field(default_factory=list)
    problem: Problem | None = None

    @property
    def answer(self) -> Answer:
        bodies = (*self.listed.bodies, *self.decided, *self.rows.values())
        return Answer(bodies, (*self.listed.evidence, *self.evidence), self.listed.problem or self.problem)


class Discovery:
    """Answers lists of subscriptions, and corrects itself when more turns out to be the cluster's own."""

    def __init__(self, client: ArmClient, direct: Direct, own: Own) -> None:
        self._client, self._direct, self._own = client, direct, own
        self._found: dict[Question, _Found] = {}
        self._is_without_graph = False

    async def answers(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        """One answer for each."""
        if not questions:
            return {}
        pages = side_by_side(self._direct.first_page(question) for question in questions)
        firsts, rows = await both(pages, self._rows(questions))
        by_list = _by_list(rows)
        found = await side_by_side(
            self._settled(question, first, rows, by_list.get(_list_of(question), []))
            for question, first in zip(questions, firsts, strict=True)
        )
        self._found.update(zip(questions, found, strict=True))
        return {question: self._found[question].answer for question in questions}

    async def corrections(self) -> dict[Question, Answer]:
        """Earlier answers that change, because rows in them mention what is only now known to be the cluster's own."""
        again = {question: ids for question, found in self._found.items() if (ids := self._ours(found.rows))}
        await side_by_side(self._decide(question, self._found[question], ids) for question, ids in again.items())
        return {question: self._found[question].answer for question in again}

    async def _rows(self, questions: Sequence[Question]) -> Rows:
        if self._is_without_graph:
            return Rows(problem=Problem(Trouble.UNAVAILABLE, "Resource Graph did not answer before"))
        kinds = {question.kind for question in questions}
        rows = await resources(self._client, kinds, {subscription_of(question.target) for question in questions})
        if rows.problem is not None:
            self._is_without_graph = True
            self._client.progress.says(f"lists are read from ARM alone: {rows.problem.detail}")
        return rows

    async def _settled(self, question: Question, listed: Listed, rows: Rows, of_list: list[Body]) -> _Found:
        found = _Found(listed)
        if rows.problem is not None:
            await self._direct.remaining_pages(listed)
            return found
        seen = {_id(body) for body in listed.bodies}
        beside = {_id(body): body for body in of_list if _id(body) not in seen}
        if listed.more is None:
            await self._compared(question, found, beside)
            return found
        if not seen <= {_id(body) for body in of_list}:
            self._client.progress.says(f"{question.kind}: Resource Graph lags behind, so ARM's own list is read")
            await self._direct.remaining_pages(listed)
            return found
        listed.more = None
        found.rows = beside
        found.evidence = tuple(dict.fromkeys(one for body in of_list for one in body.evidence)) or rows.evidence
        await self._decide(question, found, self._ours(beside))
        return found

    async def _compared(self, question: Question, found: _Found, beside: dict[str, Body]) -> None:
        """ARM's list has ended. What Resource Graph has beside a whole one is asked for; beside a refused one, ours."""
        found.rows = beside
        await self._decide(question, found, self._ours(beside) if found.listed.problem else list(beside))

    def _ours(self, rows: Mapping[str, Body]) -> list[str]:
        return [one for one, body in rows.items() if self._own.mentioned_in(body.value)]

    async def _decide(self, question: Question, found: _Found, ids: Sequence[str]) -> None:
        """Ask ARM for these rows: what it says replaces them, and what it does not have is gone."""
        said = await self._listed_in_groups(question, found.rows, ids)
        alone = [one for one in ids if one not in said]
        answers = await side_by_side(self._direct.answer(_get(question, found.rows[one])) for one in alone)
        said |= dict(zip(alone, answers, strict=True))
        for one, answer in said.items():
            row = found.rows.pop(one)
            found.evidence = tuple(dict.fromkeys((*found.evidence, *answer.evidence)))
            is_gone = answer.problem is not None and answer.problem.trouble is Trouble.NOT_FOUND
            found.decided.extend(answer.bodies or (() if is_gone else (row,)))
            if not is_gone:
                found.problem = found.problem or answer.problem

    async def _listed_in_groups(
        self, question: Question, rows: Mapping[str, Body], ids: Sequence[str]
    ) -> dict[str, Answer]:
        """What ARM's lists of resource groups say of these rows, where a group holds more than a few of them."""
        groups: dict[str, list[str]] = {}
        for one in ids:
            groups.setdefault(group_of(one), []).append(one)
        crowded = [group for group, members in groups.items() if group and len(members) > FEW]
        listed = [replace(question, target=group_of(_written(rows[groups[group][0]]))) for group in crowded]
        wanted = set(ids)
        return {
            _id(body): Answer((body,), body.evidence)
            for answer in await side_by_side(self._direct.answer(one) for one in listed)
            for body in answer.bodies
            if _id(body) in wanted
        }


def _by_list(rows: Rows) -> dict[tuple[str, str], list[Body]]:
    """Rows by subscription and type."""
    found: dict[tuple[str, str], list[Body]] = {}
    for body in rows.bodies:
        found.setdefault((subscription_of(body.value["id"]), body.value["type"].lower()), []).append(body)
    return found


def _list_of(question: Question) -> tuple[str, str]:
    return subscription_of(question.target), question.kind.lower()


def _get(question: Question, row: Body) -> Question:
    return Question(question.source, "get", question.kind, _written(row), question.api_version)


def _written(row: Body) -> str:
    return str(row.value["id"])


def _id(body: Body) -> str:
    name = body.value.get("id")
    return name.lower() if isinstance(name, str) else ""

"""Lists of a whole subscription from ARM, completed with Resource Graph: Graph finds rows, ARM confirms them.

Every list is read from ARM to its end: the index of Resource Graph lags and leaves out what may not be read, so it
replaces no page of ARM. It is queried for rows that ARM's list lacks: each is read from ARM before it counts, and is
dropped when ARM does not have it. With an incomplete list only rows that name an id of the cluster are read: the
result is Unknown in any case, and the others would not change it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hermetic.audit.estate.arm_ids import group_of, subscription_of
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.model.findings import Evidence
from hermetic.collect.azure.arm_reader import GROUP_LISTS_ONLY, ArmReader
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.cluster_ids import ClusterIds
from hermetic.collect.azure.paths import is_subscription
from hermetic.collect.azure.resource_graph import GraphRow, Rows, resources
from hermetic.collect.concurrency import both, side_by_side

NOT_IN_GRAPH = frozenset(
    {
        "microsoft.network/servicegateways",
        "microsoft.network/virtualnetworkappliances",
        "microsoft.fileshares/fileshares",
    }
)
"""Types that are not confirmed to be in Resource Graph; it is not queried for them."""
FEW = 3
"""With more rows of one type in one resource group than this, the group is listed instead of reading each row."""


def is_discoverable(question: Question) -> bool:
    """Whether this is a list that Resource Graph can complete."""
    kind = question.kind.lower()
    is_list = question.verb == "list" and is_subscription(question.target)
    return is_list and kind.count("/") == 1 and kind not in NOT_IN_GRAPH | GROUP_LISTS_ONLY


@dataclass(slots=True)
class _Found:
    """One list: ARM's list, ARM's answers for further rows, and the rows by id that were not read from ARM."""

    listed: Answer
    rows: dict[str, Body] = field(default_factory=dict)
    decided: list[Body] = field(default_factory=list)
    evidence: tuple[Evidence, ...] = ()
    problem: Problem | None = None

    @property
    def answer(self) -> Answer:
        bodies = (*self.listed.bodies, *self.decided, *self.rows.values())
        evidence, problem = (*self.listed.evidence, *self.evidence), self.listed.problem or self.problem
        return Answer(bodies, evidence, problem, self.listed.projection)


@dataclass(slots=True)
class UnlistedRows:
    """By the key of a list, the rows of Resource Graph by id that ARM's list lacks: few, while a list has thousands.

    Audits of several clusters share them. `is_without_graph`: Resource Graph did not answer a query completely.
    """

    by_list: dict[tuple[str, ...], dict[str, Body]] = field(default_factory=dict)
    is_without_graph: bool = False


class Discovery:
    """Answers lists of subscriptions, and corrects them when more ids of the cluster become known."""

    def __init__(self, client: ArmClient, direct: ArmReader, own: ClusterIds, unlisted: UnlistedRows) -> None:
        self._client, self._direct, self._own, self._unlisted = client, direct, own, unlisted
        self._found: dict[Question, _Found] = {}

    async def answers(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        if not questions:
            return {}
        lists = side_by_side(self._direct.answer(question) for question in questions)
        new = [question for question in questions if question.key not in self._unlisted.by_list]
        listed, rows = await both(lists, self._rows(new))
        answers = dict(zip(questions, listed, strict=True))
        if not self._unlisted.is_without_graph:
            by_list = _by_list(rows)
            for question in new:
                unlisted = _unlisted(answers[question], by_list.get(_list_of(question), []))
                self._unlisted.by_list[question.key] = unlisted
        results = await side_by_side(self._compared(question, answer) for question, answer in answers.items())
        self._found.update(zip(questions, results, strict=True))
        return {question: self._found[question].answer for question in questions}

    async def corrections(self) -> dict[Question, Answer]:
        """Earlier answers that change because their rows contain an id that is only now known to be the cluster's."""
        again = {question: ids for question, result in self._found.items() if (ids := self._ours(result.rows))}
        await side_by_side(self._decide(question, self._found[question], ids) for question, ids in again.items())
        return {question: self._found[question].answer for question in again}

    async def _rows(self, questions: Sequence[Question]) -> Rows:
        """All rows of these types in Resource Graph; none where the result is incomplete."""
        if self._unlisted.is_without_graph or not questions:
            return Rows()
        kinds = {question.kind for question in questions}
        rows = await resources(self._client, kinds, {subscription_of(question.target) for question in questions})
        if rows.problem is None:
            return rows
        self._unlisted.is_without_graph = True
        self._client.progress.note(f"lists are read from ARM alone: {rows.problem.detail}")
        return Rows()

    async def _compared(self, question: Question, listed: Answer) -> _Found:
        """Read from ARM the rows that its list lacks."""
        result = _Found(listed, dict(self._unlisted.by_list.get(question.key, {})))
        await self._decide(question, result, self._ours(result.rows) if listed.problem else list(result.rows))
        return result

    def _ours(self, rows: Mapping[str, Body]) -> list[str]:
        return [row_id for row_id, body in rows.items() if self._own.mentioned_in(body.value)]

    async def _decide(self, question: Question, result: _Found, ids: Sequence[str]) -> None:
        """Read these rows from ARM: its answers replace them, and rows that it does not have are dropped."""
        listed = await self._listed_in_groups(question, result.rows, ids)
        alone = [row_id for row_id in ids if row_id not in listed]
        answers = await side_by_side(self._direct.answer(_get(question, result.rows[row_id])) for row_id in alone)
        listed |= dict(zip(alone, answers, strict=True))
        for row_id, answer in listed.items():
            row = result.rows.pop(row_id)
            result.evidence = tuple(dict.fromkeys((*result.evidence, *answer.evidence)))
            is_gone = answer.problem is not None and answer.problem.reason is UnreadReason.NOT_FOUND
            result.decided.extend(answer.bodies or (() if is_gone else (row,)))
            if not is_gone:
                result.problem = result.problem or answer.problem

    async def _listed_in_groups(
        self, question: Question, rows: Mapping[str, Body], ids: Sequence[str]
    ) -> dict[str, Answer]:
        """These rows from ARM's lists of resource groups, for groups that have more than FEW of them."""
        groups: dict[str, list[str]] = {}
        for row_id in ids:
            groups.setdefault(group_of(row_id), []).append(row_id)
        large_groups = [group for group, members in groups.items() if group and len(members) > FEW]
        listed = [replace(question, target=group_of(_written(rows[groups[group][0]]))) for group in large_groups]
        requested_ids = set(ids)
        return {
            _id(body): Answer((body,), body.evidence)
            for answer in await side_by_side(self._direct.answer(group_question) for group_question in listed)
            for body in answer.bodies
            if _id(body) in requested_ids
        }


def _by_list(rows: Rows) -> dict[tuple[str, str], list[GraphRow]]:
    """Rows by subscription and type."""
    rows_by_list: dict[tuple[str, str], list[GraphRow]] = {}
    for row in rows.items:
        rows_by_list.setdefault((subscription_of(row.id), row.kind), []).append(row)
    return rows_by_list


def _unlisted(listed: Answer, rows: list[GraphRow]) -> dict[str, Body]:
    """The rows by id in lower case that ARM's list lacks."""
    shown = {_id(body) for body in listed.bodies} if rows else set()
    return {name: row.body for row in rows if (name := row.id.lower()) not in shown}


def _list_of(question: Question) -> tuple[str, str]:
    return subscription_of(question.target), question.kind.lower()


def _get(question: Question, row: Body) -> Question:
    return Question(question.source, "get", question.kind, _written(row), question.api_version)


def _written(row: Body) -> str:
    return str(row.value["id"])


def _id(body: Body) -> str:
    name = body.value.get("id")
    return name.lower() if isinstance(name, str) else ""

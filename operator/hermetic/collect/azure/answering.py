"""Answers the questions of an audit about Azure, each by the cheapest request that is conclusive."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from hermetic.audit.estate.access import Access, Grant
from hermetic.audit.estate.arm_ids import same_id, subscription_of, type_of
from hermetic.audit.estate.azure.graph import TABLES
from hermetic.audit.estate.questions import Answer, Problem, Question, UnreadReason
from hermetic.collect.azure.arm_reader import ArmReader
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.cluster_ids import ClusterIds
from hermetic.collect.azure.discovery import Discovery, UnlistedRows, is_discoverable
from hermetic.collect.azure.replies import Ask
from hermetic.collect.azure.resource_graph import rows_below
from hermetic.collect.concurrency import both, side_by_side
from hermetic.errors import InputError

_PERMISSIONS = "Microsoft.Authorization/permissions"
_DENY_ASSIGNMENTS = "Microsoft.Authorization/denyAssignments"
_VERSION = "2022-04-01"
_MOST_PAGES = 50

How = Literal["graph", "list"]

CLUSTER = "Microsoft.ContainerService/managedClusters"
SCOPES_A_QUERY = 50
_BELOW = re.compile(r"/virtualmachines/|/providers/microsoft\.network/effective")
"""Separates the id of a child row from that of its scale set or network."""


class SharedReads:
    """The answers that audits of several clusters share: each list of a subscription is read once in a run."""

    def __init__(self, client: ArmClient) -> None:
        self.direct = ArmReader(client)
        self.unlisted = UnlistedRows()

    def forget_failures(self) -> None:
        """Let the next audit ask again what was not answered, within a retry budget of its own."""
        for key in self.direct.forget_failures():
            self.unlisted.by_list.pop(key, None)  # compared with the incomplete list
        self.unlisted.is_without_graph = False


class AzureAnswerer:
    """Answerer for all questions about Azure for one cluster. `how` is the value of --discovery."""

    def __init__(self, client: ArmClient, cluster: str, how: How = "graph", shared: SharedReads | None = None) -> None:
        shared = shared or SharedReads(client)
        self._client, self._cluster, self._how = client, cluster, how
        self._direct = shared.direct
        self._own = ClusterIds(cluster)
        self._discovery = Discovery(client, self._direct, self._own, shared.unlisted)

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """An answer for each question, and corrections of earlier ones.

        Raises InputError when the cluster does not exist, Unreachable when ARM is unreachable or refuses the token.
        """
        answers = await self._about_the_cluster(questions)
        remaining = [question for question in questions if question not in answers]
        self._own.learn_from(remaining)
        answers |= await self._discovery.corrections()
        lists = [question for question in remaining if self._how == "graph" and is_discoverable(question)]
        rows = [question for question in remaining if question.kind.lower() in TABLES]
        other_questions = [question for question in remaining if question not in {*lists, *rows}]
        of_graph, of_arm = await both(
            both(self._discovery.answers(lists), self._only_in_graph(rows)),
            side_by_side(self._direct.answer(question) for question in other_questions),
        )
        return {**answers, **of_graph[0], **of_graph[1], **dict(zip(other_questions, of_arm, strict=True))}

    async def access(self, scopes: Sequence[str]) -> tuple[Access, ...]:
        """The caller's permissions on each of these resource groups."""
        return await _access_at(self._client, scopes)

    async def _about_the_cluster(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        """Answer the question for the cluster itself first: if it fails, the audit ends."""
        question = next(
            (question for question in questions if question.verb == "get" and same_id(question.target, self._cluster)),
            None,
        )
        if question is None:
            return {}
        answer = await self._direct.answer(question)
        if answer.problem is not None and answer.problem.reason is UnreadReason.NOT_FOUND:
            raise InputError(
                f"the cluster {self._cluster} does not exist: {answer.problem.detail}",
                fix="Check --azure: 'az aks show --resource-group GROUP --name NAME --query id' prints an id.",
            )
        self._client.caller.is_known = True
        self._own.learn_nodes(answer)
        return {question: answer}

    async def _only_in_graph(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        if self._how == "list":
            problem = Problem(UnreadReason.NOT_ASKED, "Resource Graph is not asked under --discovery list")
            return dict.fromkeys(questions, Answer(problem=problem))
        kinds = {kind: [question for question in questions if question.kind.lower() == kind] for kind in TABLES}
        results = await side_by_side(
            self._rows_below(kind_questions[start : start + SCOPES_A_QUERY])
            for kind_questions in kinds.values()
            for start in range(0, len(kind_questions), SCOPES_A_QUERY)
        )
        return {question: answer for answers in results for question, answer in answers.items()}

    async def _rows_below(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        """One query for many scale sets or networks; each gets its child rows."""
        kind, subscriptions = questions[0].kind, {subscription_of(question.target) for question in questions}
        rows = await rows_below(self._client, kind, [question.target for question in questions], subscriptions)
        below: dict[str, list[int]] = {}
        for number, row in enumerate(rows.items):
            below.setdefault(_BELOW.split(row.id.lower())[0], []).append(number)
        return {
            question: Answer(
                tuple(rows.items[number].body for number in below.get(question.target.lower().rstrip("/"), ())),
                rows.evidence,
                rows.problem,
            )
            for question in questions
        }


def cluster_id(text: str) -> str:
    """The ARM id of a cluster as typed, without a trailing slash. Raises InputError for anything else."""
    arm_id = text.strip().rstrip("/")
    segments = arm_id.split("/")
    if len(segments) != 9 or "" in segments[1:] or type_of(arm_id).lower() != CLUSTER.lower():
        raise InputError(
            f"{text!r} is not the ARM id of a cluster",
            fix=f"Give /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/{CLUSTER}/NAME; "
            "'az aks show --resource-group GROUP --name NAME --query id --output tsv' prints it.",
        )
    return arm_id


async def _access_at(client: ArmClient, scopes: Iterable[str]) -> tuple[Access, ...]:
    """The caller's permissions on each of these resource groups, in their order."""
    return tuple(await side_by_side(_access(client, scope) for scope in scopes))


async def _access(client: ArmClient, scope: str) -> Access:
    granted, problem = await _grants(client, f"{scope}/providers/{_PERMISSIONS}?api-version={_VERSION}", _PERMISSIONS)
    target = f"{scope}/providers/{_DENY_ASSIGNMENTS}?api-version={_VERSION}&$filter=atScope()"
    denied, unseen = await _grants(client, target, _DENY_ASSIGNMENTS)
    return Access(scope, granted, denied, problem or unseen)


async def _grants(client: ArmClient, target: str, kind: str) -> tuple[tuple[Grant, ...], str]:
    """Every grant of a list and "", or why the list is incomplete."""
    grants: list[Grant] = []
    ask: Ask | None = Ask("GET", target, f"{kind}/read")
    for _ in range(_MOST_PAGES):
        if ask is None:
            return tuple(grants), ""
        reply = await client.ask(ask)
        if reply.problem is not None:
            return (), reply.problem.detail
        page = _of_page(reply.value)
        if page is None:
            return (), f"{kind}: the answer is not a list of permissions"
        grants += page
        link = reply.value.get("nextLink")
        ask = ask.to(client.wire.local(link)) if isinstance(link, str) and link and client.wire.local(link) else None
        if link and ask is None:
            return (), f"{kind}: a page leads to another host"
    return (), f"{kind}: the list has no end"


def _of_page(value: Any) -> list[Grant] | None:
    """The grants of one page; None where any of them cannot be read."""
    rows = value.get("value") if isinstance(value, Mapping) else None
    if not isinstance(rows, list):
        return None
    grants = [_grant(permission) for row in rows for permission in _permissions(row)]
    readable_grants = [grant for grant in grants if grant is not None]
    return readable_grants if len(readable_grants) == len(grants) else None


def _permissions(row: Any) -> list[Any]:
    """The permissions in a row: the row itself, or of a deny assignment the list in its properties."""
    properties = row.get("properties") if isinstance(row, Mapping) else None
    inner = properties.get("permissions", ()) if isinstance(properties, Mapping) else [row]
    return list(inner) if isinstance(inner, list) else [None]


def _grant(permission: Any) -> Grant | None:
    if not isinstance(permission, Mapping):
        return None
    actions, left_out = permission.get("actions", []), permission.get("notActions", [])
    if not all(isinstance(part, list) and all(isinstance(text, str) for text in part) for part in (actions, left_out)):
        return None
    return Grant(tuple(actions), tuple(left_out))

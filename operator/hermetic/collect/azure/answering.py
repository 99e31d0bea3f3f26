"""Answers the questions of an audit about Azure, each by the cheapest request that is conclusive."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from hermetic.audit.access import Access
from hermetic.audit.estate.arm_ids import same_id, subscription_of, type_of
from hermetic.audit.estate.azure.graph import TABLES
from hermetic.audit.estate.questions import Answer, Problem, Question, UnreadReason
from hermetic.collect.azure.access import access_at
from hermetic.collect.azure.arm_reader import ArmReader
from hermetic.collect.azure.client import ArmClient
from hermetic.collect.azure.cluster_ids import ClusterIds
from hermetic.collect.azure.discovery import Discovery, is_discoverable
from hermetic.collect.azure.resource_graph import rows_below
from hermetic.collect.concurrency import both, side_by_side
from hermetic.errors import InputError

How = Literal["graph", "list"]

CLUSTER = "Microsoft.ContainerService/managedClusters"
SCOPES_A_QUERY = 50
_BELOW = re.compile(r"/virtualmachines/|/providers/microsoft\.network/effective")
"""Separates the id of a child row from that of its scale set or network."""


class AzureAnswerer:
    """Answerer for all questions about Azure for one cluster. `how` is the value of --discovery."""

    def __init__(self, client: ArmClient, cluster: str, how: How = "graph") -> None:
        self._client, self._cluster, self._how = client, cluster, how
        self._direct = ArmReader(client)
        self._own = ClusterIds(cluster)
        self._discovery = Discovery(client, self._direct, self._own)

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        """An answer for each question, and corrections of earlier ones.

        Raises InputError when the cluster does not exist, Unreachable when ARM is unreachable or refuses the token.
        """
        found = await self._about_the_cluster(questions)
        rest = [question for question in questions if question not in found]
        self._own.learn_from(rest)
        found |= await self._discovery.corrections()
        lists = [question for question in rest if self._how == "graph" and is_discoverable(question)]
        rows = [question for question in rest if question.kind.lower() in TABLES]
        others = [question for question in rest if question not in {*lists, *rows}]
        of_graph, of_arm = await both(
            both(self._discovery.answers(lists), self._only_in_graph(rows)),
            side_by_side(self._direct.answer(question) for question in others),
        )
        return {**found, **of_graph[0], **of_graph[1], **dict(zip(others, of_arm, strict=True))}

    async def access(self, scopes: Sequence[str]) -> tuple[Access, ...]:
        """The caller's permissions on each of these resource groups."""
        return await access_at(self._client, scopes)

    async def _about_the_cluster(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        """Answer the question for the cluster itself first: if it fails, the audit ends."""
        question = next((one for one in questions if one.verb == "get" and same_id(one.target, self._cluster)), None)
        if question is None:
            return {}
        answer = await self._direct.answer(question)
        if answer.problem is not None and answer.problem.reason is UnreadReason.NOT_FOUND:
            raise InputError(
                f"there is no cluster {self._cluster}: {answer.problem.detail}",
                fix="Check --azure: 'az aks show --resource-group GROUP --name NAME --query id' prints an id.",
            )
        self._client.caller.is_known = True
        self._own.learn_nodes(answer)
        return {question: answer}

    async def _only_in_graph(self, questions: Sequence[Question]) -> dict[Question, Answer]:
        if self._how == "list":
            problem = Problem(UnreadReason.NOT_ASKED, "Resource Graph is not asked under --discovery list")
            return dict.fromkeys(questions, Answer(problem=problem))
        kinds = {kind: [one for one in questions if one.kind.lower() == kind] for kind in TABLES}
        found = await side_by_side(
            self._rows_below(asked[start : start + SCOPES_A_QUERY])
            for asked in kinds.values()
            for start in range(0, len(asked), SCOPES_A_QUERY)
        )
        return {question: answer for answers in found for question, answer in answers.items()}

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
    found = text.strip().rstrip("/")
    segments = found.split("/")
    if len(segments) != 9 or "" in segments[1:] or type_of(found).lower() != CLUSTER.lower():
        raise InputError(
            f"{text!r} is not the ARM id of a cluster",
            fix=f"Give /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/{CLUSTER}/NAME; "
            "'az aks show --resource-group GROUP --name NAME --query id --output tsv' prints it.",
        )
    return found

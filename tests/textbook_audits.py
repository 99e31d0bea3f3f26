"""A whole audit of a textbook estate: ARM by the product's own client, the API server's objects, exceptions applied."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import httpx

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import BY_TYPE
from hermetic.audit.estate.kubernetes.projection import projected
from hermetic.audit.estate.questions import Answer, Body, Question, fixed_json
from hermetic.audit.model.findings import Evidence, Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.exceptions import Exceptions
from hermetic.audit.result.report import Report
from hermetic.audit.result.run import Evaluation, audit
from hermetic.collect.azure.answering import AzureAnswerer
from hermetic.collect.azure.client import ArmClient, Caller
from hermetic.collect.azure.clouds import cloud_of
from hermetic.collect.azure.credentials import GivenToken
from hermetic.collect.azure.rate_limits import Pacing, RetryBudget
from hermetic.collect.azure.transport import CONNECTIONS, ArmTransport
from hermetic.collect.collecting import collected
from testbed.azure.answering import Desk
from testbed.azure.estate import Estate as AzureEstate
from testbed.textbook import TextbookEstate
from tests.azure_audits import ENDPOINT, TOKEN, Counter
from tests.fakes.clocks import START, SleepingClock
from tests.fakes.progress import Progress
from tests.kubernetes_estates import answers


@dataclass(frozen=True)
class ApiServer:
    """Answers from manifests; a list of what is not there is empty."""

    manifests: Sequence[Mapping[str, Any]]

    async def answers(self, questions: Sequence[Question]) -> Mapping[Question, Answer]:
        own_answers = {question.key: answer for question, answer in answers(self.manifests).items()}
        return {question: own_answers.get(question.key) or self._beside_azure(question) for question in questions}

    def _beside_azure(self, question: Question) -> Answer:
        """What checks of the cluster alone do not ask for."""
        kind = BY_TYPE[question.kind.lower()]
        version, name = kind.TYPE.rpartition("/")[0], kind.KIND
        shown = [
            manifest for manifest in self.manifests if (manifest["apiVersion"], manifest["kind"]) == (version, name)
        ]
        bodies = [projected(kind, manifest) for manifest in shown]
        evidence = (Evidence(f"GET /{kind.TYPE}", 200, sha256(fixed_json(bodies).encode()).hexdigest()),)
        return Answer(tuple(Body(body, evidence) for body in bodies), evidence)


def audited(
    estate: TextbookEstate,
    *,
    arm: AzureEstate | None = None,
    manifests: Sequence[Mapping[str, Any]] | None = None,
    policy: Mapping[str, Any] | None = None,
    exceptions: Mapping[str, Any] | None = None,
) -> Report:
    """The report about it, or about it with another half, policy or exceptions."""
    stood_in = estate.azure if arm is None else arm
    shown = estate.manifests if manifests is None else manifests
    policy_content = estate.policy_file if policy is None else policy
    rules = Policy.model_validate({**policy_content, "profile": stood_in.profile, "auditedAt": START})
    accepted = Exceptions.model_validate(estate.exceptions_file if exceptions is None else exceptions)
    observed_estate, findings = asyncio.run(_judged(stood_in, ApiServer(shown), rules))
    return audit(observed_estate, findings, rules, accepted, started_at=START, finished_at=START, version="0.0.0")


async def _judged(stood_in: AzureEstate, api_server: ApiServer, policy: Policy) -> tuple[Estate, tuple[Finding, ...]]:
    desk = Desk(stood_in, 100, None, 1, 1)
    desk.listen_at(ENDPOINT)
    clock, progress, cloud = SleepingClock(), Progress(), cloud_of(ENDPOINT)
    pacing = Pacing(clock, clock.sleep, connections=CONNECTIONS, reads_per_second=25.0, waits=lambda _: None)
    async with httpx.AsyncClient(transport=Counter(desk), follow_redirects=False) as http:
        caller, patience = Caller(GivenToken(TOKEN)), RetryBudget(120.0, lambda: 0.5)
        client = ArmClient(
            ArmTransport(cloud, http), caller, pacing, patience, clock=clock, sleep=clock.sleep, progress=progress
        )
        azure = AzureAnswerer(client, stood_in.cluster, "graph")
        both = {"azure": azure, "kube": api_server}
        judging = Evaluation(policy)
        _, judged = await collected(
            stood_in.cluster,
            both,
            lambda collected_estate: (collected_estate, judging.findings(collected_estate)),
            progress,
        )
    return judged

"""What tests of the Azure collector share: a clock that sleeping moves, and an audit of a stand-in with it.

    with ArmStandIn(sealed_estate()) as arm:
        seen = await audited(arm)
    assert seen.verdict("subnet-nat-gateway") is Verdict.PASS

The requests really go over loopback; only waiting is simulated, and only the waiting of the collector.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from hermetic.audit.estate.questions import Answer, Question
from hermetic.audit.model.findings import Finding, Verdict, overall
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.run import Evaluation
from hermetic.collect.azure.answering import AzureAnswerer, How
from hermetic.collect.azure.client import ArmClient, Caller
from hermetic.collect.azure.clouds import cloud_of
from hermetic.collect.azure.credentials import GivenToken, Tokens
from hermetic.collect.azure.rate_limits import Pacing, RetryBudget
from hermetic.collect.azure.session import AzureSettings, azure_opened
from hermetic.collect.azure.transport import CONNECTIONS, opened
from hermetic.collect.collecting import collected
from testbed.azure.estate import Estate as ArmEstate
from testbed.azure.server import ArmStandIn
from tests.fakes.clocks import START, SleepingClock
from tests.fakes.progress import Progress

T = TypeVar("T")


@dataclass
class CollectedAudit:
    """One audit of a stand-in."""

    cluster: str
    answers: Mapping[Question, Answer]
    findings: tuple[Finding, ...]
    clock: SleepingClock
    progress: Progress

    @property
    def overall(self) -> Verdict:
        return overall(self.findings)

    def of(self, check: str) -> dict[str, Finding]:
        """The findings of a check by resource in lower case."""
        return {finding.resource.lower(): finding for finding in self.findings if finding.check == check}

    def verdicts(self, check: str) -> set[Verdict]:
        return {finding.verdict for finding in self.of(check).values()}

    def claims(self) -> set[tuple[str, str, str]]:
        """Check, resource and verdict of each finding."""
        return {(finding.check, finding.resource.lower(), finding.verdict.value) for finding in self.findings}


async def audited(
    arm: ArmStandIn,
    *,
    discovery: How = "graph",
    retry_budget: float = 120.0,
    tokens: Tokens | None = None,
    clock: SleepingClock | None = None,
) -> CollectedAudit:
    """Collect and judge what the stand-in serves, by the policy of its estate."""
    estate, clock, progress = arm.estate, clock or SleepingClock(), Progress()
    policy = policy_of(estate)
    async with azure_opened(
        AzureSettings(estate.cluster, arm.url, discovery, retry_budget),
        environment={"HERMETIC_ARM_TOKEN": arm.token},
        clock=clock,
        progress=progress,
        sleep=clock.sleep,
        tokens=tokens,
    ) as azure:
        answers, findings = await collected(estate.cluster, {"azure": azure}, Evaluation(policy).findings, progress)
    return CollectedAudit(estate.cluster, answers, findings, clock, progress)


def policy_of(estate: ArmEstate) -> Policy:
    """The policy that the estate is meant to be audited with."""
    return Policy.model_validate({**estate.policy, "profile": estate.profile, "auditedAt": START})


@dataclass
class Bench:
    """A client of a stand-in, with its clock."""

    client: ArmClient
    answerer: AzureAnswerer
    clock: SleepingClock
    progress: Progress

    async def answer(self, question: Question) -> Answer:
        return (await self.answerer.answers([question]))[question]


@asynccontextmanager
async def client_of(
    arm: ArmStandIn,
    *,
    retry_budget: float = 120.0,
    discovery: How = "graph",
    tokens: Tokens | None = None,
    clock: SleepingClock | None = None,
    chance: Callable[[], float] = lambda: 0.5,
) -> AsyncIterator[Bench]:
    """A client of a stand-in whose waiting takes no time unless its clock says so; backoff is not jittered."""
    clock, progress, cloud = clock or SleepingClock(), Progress(), cloud_of(arm.url)
    pacing = Pacing(clock, clock.sleep, connections=CONNECTIONS, reads_per_second=25.0, waits=lambda _: None)
    async with opened(cloud) as wire:
        client = ArmClient(
            wire,
            Caller(tokens or GivenToken(arm.token)),
            pacing,
            RetryBudget(retry_budget, chance),
            clock=clock,
            sleep=clock.sleep,
            progress=progress,
        )
        yield Bench(client, AzureAnswerer(client, arm.estate.cluster, discovery), clock, progress)


def question(verb: str, kind: str, target: str, version: str = "2025-05-01", **fields: Any) -> Question:
    """A question to Azure."""
    return Question("azure", verb, kind, target, version, **fields)  # type: ignore[arg-type]


def ids(answer: Answer) -> list[str]:
    """Ids of the bodies, in lower case, in their order."""
    return [str(body.value["id"]).lower() for body in answer.bodies]


async def all_of(things: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*things))

"""Builds and closes the Azure client session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from hermetic.collect.azure.answering import AzureAnswerer, How, SharedReads, cluster_id
from hermetic.collect.azure.client import ArmClient, Caller
from hermetic.collect.azure.clouds import PUBLIC, cloud_of
from hermetic.collect.azure.credentials import Tokens, tokens_for
from hermetic.collect.azure.rate_limits import Pacing, RetryBudget, Sleep
from hermetic.collect.azure.transport import CONNECTIONS, opened
from hermetic.ports import AuditProgress, Clock

RETRY_BUDGET_SECONDS = 120.0
SHOWN_FROM_SECONDS = 1.0
"""Shorter waits for the quota are not shown as progress."""


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """Settings of the command line for Azure. `cluster` is the ARM id of the cluster."""

    cluster: str
    arm_endpoint: str = PUBLIC
    discovery: How = "graph"
    retry_budget: float = RETRY_BUDGET_SECONDS


@asynccontextmanager
async def azure_opened(
    settings: AzureSettings,
    *,
    environment: Mapping[str, str],
    clock: Clock,
    progress: AuditProgress,
    sleep: Sleep = asyncio.sleep,
    tokens: Tokens | None = None,
) -> AsyncIterator[AzureAnswerer]:
    """An answerer for one cluster. The token comes from the environment (or azure-identity) unless it is given.

    Raises InputError for an invalid cluster id or endpoint, before anything is sent.
    """
    cluster = cluster_id(settings.cluster)
    opening = client_opened(
        settings, environment=environment, clock=clock, progress=progress, sleep=sleep, tokens=tokens
    )
    async with opening as client:
        yield AzureAnswerer(client, cluster, settings.discovery)


class AzureSession:
    """One session for the audits of several clusters, one after another: they share the answers."""

    def __init__(self, client: ArmClient, discovery: How) -> None:
        self._client, self._discovery = client, discovery
        self._shared = SharedReads(client)

    def answerer(self, cluster: str) -> AzureAnswerer:
        """The answerer for the next cluster, with a whole retry budget."""
        self._client.renew_patience()
        self._shared.forget_failures()
        return AzureAnswerer(self._client, cluster, self._discovery, self._shared)


@asynccontextmanager
async def client_opened(
    settings: AzureSettings,
    *,
    environment: Mapping[str, str],
    clock: Clock,
    progress: AuditProgress,
    sleep: Sleep = asyncio.sleep,
    tokens: Tokens | None = None,
) -> AsyncIterator[ArmClient]:
    """The client of a management endpoint. Raises InputError for an invalid endpoint, before anything is sent."""
    cloud = cloud_of(settings.arm_endpoint)
    tokens = tokens or tokens_for(cloud, environment, lambda: clock.now().timestamp())

    def waits(seconds: float) -> None:
        if seconds >= SHOWN_FROM_SECONDS:
            progress.waits("the quota is used up for the moment", seconds)

    pacing = Pacing(clock, sleep, connections=CONNECTIONS, reads_per_second=cloud.reads_per_second, waits=waits)
    async with opened(cloud) as wire:
        yield ArmClient(
            wire,
            Caller(tokens),
            pacing,
            RetryBudget(settings.retry_budget),
            clock=clock,
            sleep=sleep,
            progress=progress,
        )

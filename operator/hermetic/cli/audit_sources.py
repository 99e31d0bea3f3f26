"""Who is asked in an audit from the command line, and what came back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermetic.audit.auditing import judge
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Source
from hermetic.audit.estate.snapshot import Snapshot, from_json, to_json
from hermetic.audit.policy import Policy
from hermetic.cli.audit_files import content_of, write_file
from hermetic.cli.audit_progress import Progress
from hermetic.collect.collecting import Answerer, collected
from hermetic.controller.clock import SystemClock
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.kube.client import KubernetesApi

UNNAMED = "the cluster of the kubeconfig"


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line says about whom to ask."""

    azure: str | None
    kube: bool
    probe: bool
    probe_image: str | None
    probe_namespace: str
    arm_endpoint: str | None
    discovery: Literal["graph", "list"]
    retry_budget: float
    snapshot: Path | None
    save_snapshot: Path | None
    kubeconfig: str | None
    context: str | None


@dataclass(frozen=True, slots=True)
class Collected:
    """An estate, when it was looked at, and the text of the snapshot that holds all of it."""

    estate: Estate
    started_at: datetime
    finished_at: datetime
    snapshot: str


async def collect(wish: Wish, policy: Policy) -> Collected:
    """Look at everything that the checks want, or load what somebody else saw."""
    seen = _loaded(wish.snapshot, wish) if wish.snapshot is not None else await _looked(wish, policy)
    text = to_json(seen)
    if wish.save_snapshot is not None:
        write_file(wish.save_snapshot, text)
    return Collected(seen.estate(), seen.started_at, seen.finished_at, text)


def _loaded(file: Path, wish: Wish) -> Snapshot:
    seen = from_json(content_of(file))
    if wish.azure is not None and not same_id(wish.azure, seen.cluster):
        raise InputError(f"{file} is about {seen.cluster}, not {wish.azure}", fix="name the cluster of the snapshot")
    for source, asked in (("azure", wish.azure), ("kube", wish.kube), ("probe", wish.probe)):
        if asked and source not in seen.sources:
            raise InputError(f"{file} holds nothing from --{source}", fix="collect again with it")
    return seen


async def _looked(wish: Wish, policy: Policy) -> Snapshot:
    from hermetic import __version__

    clock = SystemClock()
    started_at = clock.now().replace(microsecond=0)
    with Progress() as progress:
        async with _answerers(wish, progress) as answerers:
            cluster = wish.azure or UNNAMED
            answers = await collected(cluster, answerers, lambda estate: judge(estate, policy), progress)
    finished_at = clock.now().replace(microsecond=0)
    return Snapshot(cluster, tuple(answerers), started_at, finished_at, __version__, answers)


@asynccontextmanager
async def _answerers(wish: Wish, progress: Progress) -> AsyncIterator[dict[Source, Answerer]]:
    async with AsyncExitStack() as opened:
        found: dict[Source, Answerer] = {}
        if wish.azure is not None:
            found["azure"] = await opened.enter_async_context(_azure(wish.azure, wish, progress))
        if wish.kube or wish.probe:
            api = await _cluster(opened, wish)
            found |= _cluster_answerers(api, wish)
        yield found


@asynccontextmanager
async def _azure(cluster: str, wish: Wish, progress: Progress) -> AsyncIterator[Answerer]:
    from hermetic.collect.azure.clouds import PUBLIC
    from hermetic.collect.azure.opening import AzureSettings, azure_opened

    settings = AzureSettings(
        cluster, arm_endpoint=wish.arm_endpoint or PUBLIC, discovery=wish.discovery, retry_budget=wish.retry_budget
    )
    async with azure_opened(settings, environment=os.environ, clock=SystemClock(), progress=progress) as answerer:
        yield answerer


async def _cluster(opened: AsyncExitStack, wish: Wish) -> KubernetesApi:
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=wish.kubeconfig, context=wish.context)
    return await opened.enter_async_context(KubernetesApi(connection))


def _cluster_answerers(api: KubernetesApi, wish: Wish) -> dict[Source, Answerer]:
    from hermetic.collect.kube.answering import KubeAnswerer
    from hermetic.collect.probe.answering import ProbeAnswerer
    from hermetic.collect.probe.job import ProbePods
    from hermetic.collect.probe.running import Probing

    found: dict[Source, Answerer] = {}
    if wish.kube:
        found["kube"] = KubeAnswerer(api)
    if wish.probe and wish.probe_image:
        pods = ProbePods(namespace=wish.probe_namespace, image=wish.probe_image)
        found["probe"] = ProbeAnswerer(Probing(api, pods), SystemClock())
    return found

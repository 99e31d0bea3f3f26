"""The sources of an audit from the command line, and what they returned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.azure.vnet import NetworkInterface
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.questions import Source, UnreadReason
from hermetic.audit.estate.snapshot import Snapshot, from_json, to_json
from hermetic.audit.model.findings import Finding
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.result.ownership import ownership_of
from hermetic.audit.result.run import Evaluation, evaluate
from hermetic.cli.audit.files import content_of, write_file
from hermetic.cli.audit.progress import ProgressLine
from hermetic.cli.cluster_identity import DeclaredIdentity, declared_in
from hermetic.collect.collecting import Answerer, collected
from hermetic.controller.clock import SystemClock
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.kube.client import KubernetesApi

UNNAMED = "the cluster of the kubeconfig"


@dataclass(frozen=True, slots=True)
class AuditSources:
    """The sources that the command line names."""

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
    """An estate, its findings before exceptions, the times of collection, and the snapshot of questions and answers."""

    estate: Estate
    findings: tuple[Finding, ...]
    started_at: datetime
    finished_at: datetime
    snapshot: Snapshot


async def collect(sources: AuditSources, policy: Policy) -> Collected:
    """Collects everything that the checks ask for, or loads a saved snapshot."""
    if sources.snapshot is not None:
        snapshot = _loaded(sources.snapshot, sources)
        estate = snapshot.estate()
        _sentinels_must_be_there(estate, policy)
        findings = evaluate(estate, policy.model_copy(update={"audited_at": snapshot.started_at}))
        result = Collected(estate, findings, snapshot.started_at, snapshot.finished_at, snapshot)
    else:
        result = await _collected_now(sources, policy)
    if sources.save_snapshot is not None:
        write_file(sources.save_snapshot, to_json(result.snapshot))
    return result


def _loaded(file: Path, sources: AuditSources) -> Snapshot:
    snapshot = from_json(content_of(file))
    if sources.azure is not None and not same_id(sources.azure.strip(), snapshot.cluster):
        raise InputError(
            f"{file} is about {snapshot.cluster}, not {sources.azure}", fix="name the cluster of the snapshot"
        )
    for source, option in (("azure", sources.azure), ("kube", sources.kube), ("probe", sources.probe)):
        if option and source not in snapshot.sources:
            raise InputError(f"{file} holds nothing from --{source}", fix="collect again with it")
    return snapshot


async def _collected_now(sources: AuditSources, policy: Policy) -> Collected:
    started_at = SystemClock().now().replace(microsecond=0)
    with ProgressLine() as progress:
        async with AsyncExitStack() as opened:
            target = await _asked(opened, sources, progress)
            return await collect_from(target.cluster, target.answerers, policy, progress, started_at)


async def collect_from(
    cluster: str,
    answerers: Mapping[Source, Answerer],
    policy: Policy,
    progress: ProgressLine,
    started_at: datetime,
) -> Collected:
    """What the answerers say about one cluster. No answer may be older than `started_at`, in whole seconds."""
    from hermetic import __version__

    rules = policy.model_copy(update={"audited_at": started_at})
    evaluation = Evaluation(rules)

    def evaluated(estate: Estate) -> tuple[Estate, tuple[Finding, ...]]:
        _sentinels_must_be_there(estate, rules)
        ownership_of(estate)  # asks for the names that the report shows
        return estate, evaluation.findings(estate)

    answers, (estate, findings) = await collected(cluster, answerers, evaluated, progress)
    finished_at = SystemClock().now().replace(microsecond=0)
    snapshot = Snapshot(cluster, tuple(answerers), started_at, finished_at, __version__, answers)
    return Collected(estate, findings, started_at, finished_at, snapshot)


def _sentinels_must_be_there(estate: Estate, policy: Policy) -> None:
    """Refuses a sentinel that does not exist: a typing error in the policy, which would leave routes unread."""
    for nic in policy.sentinel_nics:
        problem = estate.one(NetworkInterface, nic).problem
        if problem is not None and problem.reason is UnreadReason.NOT_FOUND:
            raise InputError(
                f"`sentinelNics` of the policy: {nic} is not there",
                fix="name an interface that exists, or none: then machines in the subnets are chosen",
            )


# ------------------------------------------------------------------ sources


@dataclass(slots=True)
class _Asked:
    """The cluster, and the sources that answer."""

    cluster: str = UNNAMED
    answerers: dict[Source, Answerer] = field(default_factory=dict)


async def _asked(opened: AsyncExitStack, sources: AuditSources, progress: ProgressLine) -> _Asked:
    target = _Asked()
    if sources.azure is not None:
        target.cluster, target.answerers["azure"] = await _azure(opened, sources.azure, sources, progress)
    if sources.kube or sources.probe:
        api = await _api(opened, sources)
        declared = await declared_in(api)
        if sources.azure is not None:
            declared.must_be_about(target.cluster)
        target.cluster = target.cluster if sources.azure is not None else declared.cluster or UNNAMED
        target.answerers |= _of_the_cluster(api, sources, declared, progress)
    return target


async def _azure(
    opened: AsyncExitStack, typed: str, sources: AuditSources, progress: ProgressLine
) -> tuple[str, Answerer]:
    from hermetic.collect.azure.answering import cluster_id
    from hermetic.collect.azure.clouds import PUBLIC
    from hermetic.collect.azure.session import AzureSettings, azure_opened

    cluster = cluster_id(typed)
    settings = AzureSettings(
        cluster,
        arm_endpoint=sources.arm_endpoint or PUBLIC,
        discovery=sources.discovery,
        retry_budget=sources.retry_budget,
    )
    azure = azure_opened(settings, environment=os.environ, clock=SystemClock(), progress=progress)
    return cluster, await opened.enter_async_context(azure)


async def _api(opened: AsyncExitStack, sources: AuditSources) -> KubernetesApi:
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=sources.kubeconfig, context=sources.context)
    return await opened.enter_async_context(KubernetesApi(connection))


def _of_the_cluster(
    api: KubernetesApi, sources: AuditSources, declared: DeclaredIdentity, progress: ProgressLine
) -> Mapping[Source, Answerer]:
    from hermetic.collect.kube.answering import KubeAnswerer

    answerers: dict[Source, Answerer] = {}
    if sources.kube:
        answerers["kube"] = KubeAnswerer(api, progress=progress)
    if sources.probe:
        answerers["probe"] = _probe(api, sources, declared, progress)
    return answerers


def _probe(api: KubernetesApi, sources: AuditSources, declared: DeclaredIdentity, progress: ProgressLine) -> Answerer:
    from hermetic.cli.audit.probe import probe_pods
    from hermetic.collect.probe.running import PATIENCE_SECONDS, ProbeAnswerer, ProbeRounds

    pods = probe_pods(sources.probe_namespace, sources.probe_image, declared.probe)
    progress.note(f"probing from pods of {pods.image} in {pods.namespace}; {PATIENCE_SECONDS} s at most")
    return ProbeAnswerer(ProbeRounds(api, pods), SystemClock())

"""Reads what `hermetic status` shows: ModelDeployments, their pods, the EgressAudit, and one log."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hermetic.cli.status.report import DeploymentReport, report
from hermetic.cli.status.starting import StartReport, last_line
from hermetic.cli.terminal import note
from hermetic.errors import ApiRefused, HermeticError, NotFound
from hermetic.kinds import EGRESS_AUDIT, MODEL_DEPLOYMENT, POD, THE_EGRESS_AUDIT, Kind
from hermetic.objects.names import MODEL_LABEL

if TYPE_CHECKING:
    from hermetic.kube.client import KubernetesApi

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """The arguments; `namespace` None means the default of the connection. `labels`: a selector, "" for every model."""

    name: str
    namespace: str | None
    everywhere: bool
    labels: str = ""
    kubeconfig: str | None = None
    context: str | None = None


async def read_reports(status_request: StatusRequest) -> tuple[list[DeploymentReport], str | None]:
    """The reports, and the namespace that they are of; None for all of them.

    For a single model that starts also the last line of the log of the container that the start waits for.
    """
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=status_request.kubeconfig, context=status_request.context)
    namespace = None if status_request.everywhere else status_request.namespace or connection.namespace or "default"
    async with KubernetesApi(connection) as api:
        lister = _Lister(api, namespace)
        deployments = await lister.at(
            MODEL_DEPLOYMENT, field_selector=_named(status_request.name), label_selector=status_request.labels
        )
        if status_request.name and not deployments:
            raise no_such_model(status_request.name, str(namespace), await lister.at(MODEL_DEPLOYMENT))
        label = f"{MODEL_LABEL}={status_request.name}" if status_request.name else MODEL_LABEL
        pods, audits = await asyncio.gather(
            lister.if_allowed(POD, label_selector=label),
            lister.if_allowed(EGRESS_AUDIT, field_selector=_named(THE_EGRESS_AUDIT)),
        )
        reports = _reports(deployments, pods, audits)
        if status_request.name and (start := reports[0].start) is not None and start.container:
            progress = await _log_line(api, reports[0].namespace, start)
            reports = [replace(reports[0], start=replace(start, log=progress))]
    return reports, namespace


async def _log_line(api: KubernetesApi, namespace: str, start: StartReport) -> str:
    """What the container reported last; "" where the account may not read logs or the container has not begun."""
    try:
        return last_line(await api.log_end(namespace, start.pod, start.container))
    except HermeticError:
        return ""


def no_such_model(name: str, namespace: str, deployments: Sequence[Manifest]) -> NotFound:
    near = difflib.get_close_matches(name, [deployment["metadata"]["name"] for deployment in deployments], n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    explanation = f"ModelDeployment '{name}' does not exist in namespace '{namespace}'{meant}"
    return NotFound(explanation, status=404, fix="'hermetic status -A' lists them all")


class _Lister:
    """Lists the objects of one namespace, or of all when it is None."""

    def __init__(self, api: Any, namespace: str | None) -> None:
        self._api = api
        self._namespace = namespace

    async def at(self, kind: Kind, **selectors: str) -> list[Manifest]:
        namespace = self._namespace if kind.namespaced else None
        return [item async for page, _ in self._api.pages(kind, namespace=namespace, **selectors) for item in page]

    async def if_allowed(self, kind: Kind, **selectors: str) -> list[Manifest]:
        """The same; where the account may not list the kind, prints a note and goes on: the rest is useful."""
        try:
            return await self.at(kind, **selectors)
        except ApiRefused as refused:
            note(f"{kind.plural} cannot be seen: {refused.message}")
            return []


def _named(name: str) -> str:
    return f"metadata.name={name}" if name else ""


def _reports(
    deployments: Sequence[Manifest], pods: Sequence[Manifest], audits: Sequence[Manifest]
) -> list[DeploymentReport]:
    of: dict[tuple[str, str], list[Manifest]] = {}
    for pod in pods:
        key = (pod["metadata"]["namespace"], pod["metadata"]["labels"][MODEL_LABEL])
        of.setdefault(key, []).append(pod)
    audit = next(iter(audits), None)
    keyed = sorted(
        ((deployment["metadata"]["namespace"], deployment["metadata"]["name"]), deployment)
        for deployment in deployments
    )
    return [report(deployment, of.get(key, ()), audit) for key, deployment in keyed]

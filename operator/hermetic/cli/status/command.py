"""`hermetic status`: what serves, what does not, and the remedy."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

from hermetic.api.times import timestamp
from hermetic.cli.options import common_options
from hermetic.cli.output import note, write_json
from hermetic.cli.status import isolation
from hermetic.cli.status.report import DeploymentReport, report
from hermetic.errors import ApiRefused, InputError, NotFound
from hermetic.kinds import EGRESS_AUDIT, MODEL_DEPLOYMENT, POD, THE_EGRESS_AUDIT, Kind
from hermetic.objects.names import MODEL_LABEL

Manifest = Mapping[str, Any]
SCHEMA = "hermetic.dev/status/v1"
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@click.command(
    "status",
    epilog="Example: hermetic status\n\n"
    "Example: hermetic status llama-3-1-8b -n inference\n\n"
    "Example: hermetic status -A -o json",
)
@click.argument("name", required=False, metavar="[NAME]")
@click.option("--namespace", "-n", help="Namespace. Default: that of the kubeconfig's context, else 'default'.")
@click.option("--all-namespaces", "-A", is_flag=True, help="Every namespace.")
@common_options(cluster=True)
def command(
    name: str | None,
    namespace: str | None,
    all_namespaces: bool,
    kubeconfig: str | None,
    context: str | None,
    output: str,
) -> None:
    """Show what serves, what does not, and the command that fixes it.

    With NAME everything about one ModelDeployment, else a table of all in the namespace. Reads ModelDeployments, their
    pods and the EgressAudit; writes nothing. Exit code 0 whatever the state is: it was shown.
    """
    if all_namespaces and (name or namespace):
        raise InputError(
            "-A goes with neither NAME nor -n", fix="hermetic status -A, or hermetic status NAME -n NAMESPACE"
        )
    if namespace is not None and DNS_LABEL.fullmatch(namespace) is None:
        raise InputError(f"'{namespace}' cannot be the name of a namespace", fix="'kubectl get namespaces' lists them")
    wanted = StatusRequest(name or "", namespace, all_namespaces)
    reports, place = asyncio.run(_read_reports(wanted, kubeconfig, context))
    if output == "json":
        found = next((one.proof for one in reports if one.proof is not None), None)
        proof = {"isolation": isolation.as_json(found)} if found is not None else {}
        write_json({"schema": SCHEMA, **proof, "deployments": [as_json(one) for one in reports]})
    elif name:
        from hermetic.cli.screen import show_one

        show_one(reports[0], datetime.now(UTC))
    elif reports:
        from hermetic.cli.screen import show_many

        show_many(reports, datetime.now(UTC))
    else:
        elsewhere = f"namespace '{place}'; 'hermetic status -A' shows every namespace"
        note(f"no ModelDeployment in {elsewhere if place else 'any namespace'}")


@dataclass(frozen=True, slots=True)
class StatusRequest:
    """The arguments; `namespace` None means the default of the connection."""

    name: str
    namespace: str | None
    everywhere: bool


async def _read_reports(
    wanted: StatusRequest, kubeconfig: str | None, context: str | None
) -> tuple[list[DeploymentReport], str | None]:
    """The reports, and the namespace that they are of; None for all of them."""
    from hermetic.kube.client import KubernetesApi
    from hermetic.kube.connection import find_connection

    connection = await find_connection(kubeconfig=kubeconfig, context=context)
    namespace = None if wanted.everywhere else wanted.namespace or connection.namespace or "default"
    async with KubernetesApi(connection) as api:
        lister = _Lister(api, namespace)
        deployments = await lister.at(MODEL_DEPLOYMENT, field_selector=_named(wanted.name))
        if wanted.name and not deployments:
            raise _not_there(wanted.name, str(namespace), await lister.at(MODEL_DEPLOYMENT))
        label = f"{MODEL_LABEL}={wanted.name}" if wanted.name else MODEL_LABEL
        pods, audits = await asyncio.gather(
            lister.if_allowed(POD, label_selector=label),
            lister.if_allowed(EGRESS_AUDIT, field_selector=_named(THE_EGRESS_AUDIT)),
        )
    return _reports(deployments, pods, audits), namespace


def _not_there(name: str, namespace: str, others: Sequence[Manifest]) -> NotFound:
    near = difflib.get_close_matches(name, [one["metadata"]["name"] for one in others], n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    what = f"there is no ModelDeployment '{name}' in namespace '{namespace}'{meant}"
    return NotFound(what, status=404, fix="'hermetic status -A' lists them all")


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
    keyed = sorted(((each["metadata"]["namespace"], each["metadata"]["name"]), each) for each in deployments)
    return [report(each, of.get(key, ()), audit) for key, each in keyed]


def as_json(one: DeploymentReport) -> dict[str, Any]:
    remedy = one.remedy
    return {
        "namespace": one.namespace,
        "name": one.name,
        "engine": one.engine,
        "model": one.model,
        "gpus": one.gpus,
        "weights": one.weights,
        "replicas": {"wanted": one.wanted, "serving": one.serving},
        "endpoint": one.endpoint,
        "ready": one.ready.truth,
        "reason": one.ready.reason,
        "message": one.ready.message,
        "blocks": one.blocks,
        "fix": remedy.advice if remedy is not None else "",
        "commands": list(remedy.commands) if remedy is not None else [],
        "evidenceObservedAt": timestamp(one.evidence) if one.evidence is not None else "",
        "conditions": [
            {"type": each.type, "status": each.truth, "reason": each.reason, "message": each.message}
            for each in one.conditions
        ],
        "pods": [
            {"name": pod.name, "state": pod.state, "restarts": pod.restarts, "node": pod.node} for pod in one.pods
        ],
    }

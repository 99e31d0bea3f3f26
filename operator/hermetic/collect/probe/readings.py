"""Reads the answer of one round from its pods. Pure.

The answer of a pod is its container's termination message. It counts only if the pod ran exactly the program of this
release, with the questions of this round; any other pod is of another writer or another release.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.questions import Answer, Body, Problem, Question, UnreadReason
from hermetic.audit.findings import Evidence
from hermetic.collect.probe.job import CONTAINER, ProbedNode, ProbePods, job_name, probe_job
from hermetic.collect.probe.program.asking import QUESTIONS

Manifest = Mapping[str, Any]
VANTAGES = (False, True)


@dataclass(frozen=True, slots=True)
class ExpectedPod:
    """One pod of a round."""

    probed_node: ProbedNode
    host_network: bool

    def __str__(self) -> str:
        network = "the machine's network" if self.host_network else "the pods' network"
        return (
            f"pool {self.probed_node.pool}, subnet {self.probed_node.subnet}, in {network} of {self.probed_node.node}"
        )

    def job(self, run: str) -> str:
        """The name of its Job, which the Job's pod carries as a label."""
        return job_name(self.probed_node, run, "host" if self.host_network else "pod")


@dataclass(frozen=True, slots=True)
class Round:
    """The state of a round: its answer so far, and the pods still awaited."""

    answer: Answer
    awaited: tuple[ExpectedPod, ...]


def wanted_pods(probed_nodes: Iterable[ProbedNode]) -> tuple[ExpectedPod, ...]:
    """Both vantages of every node."""
    return tuple(ExpectedPod(probed_node, host_network) for probed_node in probed_nodes for host_network in VANTAGES)


def question(cluster: str) -> Question:
    """The question that the runs of a round answer."""
    return Question(ProbeRun.SOURCE, "list", ProbeRun.TYPE, cluster)


def read_round(
    pods: ProbePods,
    run: str,
    probed_nodes: Sequence[ProbedNode],
    found: Iterable[Manifest],
    failures: Mapping[str, str],
) -> Round:
    """The state of a round. `found` are its pods; `failures` has by Job name why no answer of it can come any more.

    While an answer is missing, the round has a problem, so that no check of the probe passes on the others alone.
    """
    by_job = {_label(pod, "batch.kubernetes.io/job-name"): pod for pod in found}
    bodies: list[Body] = []
    missing: list[str] = []
    awaited: list[ExpectedPod] = []
    for wanted in wanted_pods(probed_nodes):
        job = wanted.job(run)
        pod = by_job.get(job)
        if pod is not None and _ran_what_we_asked(pods, wanted, run, pod) and (ended := _ended(pod)) is not None:
            bodies.append(_body(wanted, pod, ended))
        else:
            missing.append(f"{wanted}: {failures.get(job) or _why(pod)}")
            if job not in failures:
                awaited.append(wanted)
    problem = (
        Problem(UnreadReason.UNAVAILABLE, f"the probe has not answered from {'; '.join(missing)}") if missing else None
    )
    return Round(Answer(tuple(bodies), (), problem), tuple(awaited))


def _ran_what_we_asked(pods: ProbePods, wanted: ExpectedPod, run: str, pod: Manifest) -> bool:
    template = probe_job(pods, wanted.probed_node, run, host_network=wanted.host_network)["spec"]["template"]["spec"]
    expected, spec = template["containers"][0], pod.get("spec") or {}
    ours = _of_the_probe(spec.get("containers"))
    return (
        ours.get("command") == expected["command"]
        and _questions(ours) == _questions(expected)
        and spec.get("nodeName") == wanted.probed_node.node
        and bool(spec.get("hostNetwork")) == wanted.host_network
    )


def _of_the_probe(containers: Iterable[Manifest] | None) -> Manifest:
    return next((one for one in containers or () if one.get("name") == CONTAINER), {})


def _questions(container: Manifest) -> list[str]:
    return [str(entry.get("value")) for entry in container.get("env") or () if entry.get("name") == QUESTIONS]


def _ended(pod: Manifest) -> Manifest | None:
    ours = _of_the_probe((pod.get("status") or {}).get("containerStatuses"))
    ended = (ours.get("state") or {}).get("terminated")
    return ended if isinstance(ended, Mapping) else None


def _body(wanted: ExpectedPod, pod: Manifest, ended: Manifest) -> Body:
    metadata, spec = pod["metadata"], pod["spec"]
    answer = str(ended.get("message") or "")
    name = f"Pod {metadata['namespace']}/{metadata['name']}"
    value = {
        "id": name,
        "pool": wanted.probed_node.pool,
        "subnet": wanted.probed_node.subnet,
        "node": wanted.probed_node.node,
        "hostNetwork": wanted.host_network,
        "observedAt": str(ended.get("finishedAt") or ""),
        "questions": _questions(_of_the_probe(spec["containers"]))[0],
        "answer": answer,
    }
    digest = hashlib.sha256(answer.encode()).hexdigest()
    return Body(value, (Evidence(f"{name} on {wanted.probed_node.node}: termination message", None, digest),))


def _label(pod: Manifest, name: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(name, ""))


def _why(pod: Manifest | None) -> str:
    """Why a pod has not answered yet, by its status."""
    if pod is None:
        return "no pod yet"
    return "; ".join(_waiting_for(pod)) or f"pod {pod['metadata']['name']} has not ended"


def _waiting_for(pod: Manifest) -> Iterator[str]:
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield str(condition.get("message") or condition.get("reason"))
    for container in status.get("containerStatuses") or ():
        if waiting := (container.get("state") or {}).get("waiting"):
            yield f"{waiting.get('reason')}: {waiting.get('message', '')}"

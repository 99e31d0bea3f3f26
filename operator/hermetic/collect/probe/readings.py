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
from hermetic.audit.model.findings import Evidence
from hermetic.collect.probe.job import CONTAINER, ProbedNode, ProbePods, job_name, probe_job
from hermetic.collect.probe.program.asking import QUESTIONS

Manifest = Mapping[str, Any]
VANTAGES = (False, True)
CONTAINER_FIELDS = (
    "image",
    "command",
    "args",
    "env",
    "envFrom",
    "volumeMounts",
    "volumeDevices",
    "workingDir",
    "lifecycle",
)
POD_FIELDS: tuple[str, ...] = (
    "initContainers",
    "ephemeralContainers",
    "volumes",
    "dnsPolicy",
    "dnsConfig",
    "hostAliases",
)
POD_FIELDS += ("runtimeClassName", "hostPID", "hostIPC", "shareProcessNamespace")


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


def expected_pods(probed_nodes: Iterable[ProbedNode]) -> tuple[ExpectedPod, ...]:
    """Both vantages of every node."""
    return tuple(ExpectedPod(probed_node, host_network) for probed_node in probed_nodes for host_network in VANTAGES)


def question(cluster: str) -> Question:
    """The question that the runs of a round answer."""
    return Question(ProbeRun.SOURCE, "list", ProbeRun.TYPE, cluster)


def read_round(
    pods: ProbePods,
    run: str,
    probed_nodes: Sequence[ProbedNode],
    round_pods: Iterable[Manifest],
    failures: Mapping[str, str],
) -> Round:
    """The state of a round. `round_pods` are its pods; `failures` has by Job name why no answer of it will come.

    While an answer is missing, the round has a problem, so that no check of the probe passes on the others alone.
    """
    by_job = {_label(pod, "batch.kubernetes.io/job-name"): pod for pod in round_pods}
    bodies: list[Body] = []
    missing: list[str] = []
    awaited: list[ExpectedPod] = []
    for expected_pod in expected_pods(probed_nodes):
        job = expected_pod.job(run)
        pod = by_job.get(job)
        if (
            pod is not None
            and _is_as_expected(pods, expected_pod, run, pod)
            and (terminated := _terminated_state(pod)) is not None
        ):
            bodies.append(_body(expected_pod, pod, terminated))
        else:
            missing.append(f"{expected_pod}: {failures.get(job) or _reason_for_silence(pod)}")
            if job not in failures:
                awaited.append(expected_pod)
    problem = (
        Problem(UnreadReason.UNAVAILABLE, f"the probe has not answered from {'; '.join(missing)}") if missing else None
    )
    return Round(Answer(tuple(bodies), (), problem), tuple(awaited))


def _is_as_expected(pods: ProbePods, expected_pod: ExpectedPod, run: str, pod: Manifest) -> bool:
    """Whether the pod has the program, the image and the environment of the Job, and nothing that changes the program.

    Admission may add to a pod: an init container, a volume or a variable such as PYTHONPATH decides what the
    interpreter loads, and dnsConfig or hostAliases decide what names lead to.
    """
    template = probe_job(pods, expected_pod.probed_node, run, host_network=expected_pod.host_network)["spec"][
        "template"
    ]["spec"]
    expected, spec = template["containers"][0], pod.get("spec") or {}
    container = _probe_container(spec.get("containers"))
    return (
        all((container.get(field) or None) == (expected.get(field) or None) for field in CONTAINER_FIELDS)
        and all((spec.get(field) or None) == (template.get(field) or None) for field in POD_FIELDS)
        and len(spec.get("containers") or ()) == 1
        and spec.get("nodeName") == expected_pod.probed_node.node
        and bool(spec.get("hostNetwork")) == expected_pod.host_network
    )


def _probe_container(containers: Iterable[Manifest] | None) -> Manifest:
    return next((container for container in containers or () if container.get("name") == CONTAINER), {})


def _questions(container: Manifest) -> list[str]:
    return [str(entry.get("value")) for entry in container.get("env") or () if entry.get("name") == QUESTIONS]


def _terminated_state(pod: Manifest) -> Manifest | None:
    container_status = _probe_container((pod.get("status") or {}).get("containerStatuses"))
    terminated = (container_status.get("state") or {}).get("terminated")
    return terminated if isinstance(terminated, Mapping) else None


def _body(expected_pod: ExpectedPod, pod: Manifest, terminated: Manifest) -> Body:
    metadata, spec = pod["metadata"], pod["spec"]
    answer = str(terminated.get("message") or "")
    name = f"Pod {metadata['namespace']}/{metadata['name']}"
    value = {
        "id": name,
        "pool": expected_pod.probed_node.pool,
        "subnet": expected_pod.probed_node.subnet,
        "node": expected_pod.probed_node.node,
        "hostNetwork": expected_pod.host_network,
        "observedAt": str(terminated.get("finishedAt") or ""),
        "questions": _questions(_probe_container(spec["containers"]))[0],
        "answer": answer,
    }
    digest = hashlib.sha256(answer.encode()).hexdigest()
    return Body(value, (Evidence(f"{name} on {expected_pod.probed_node.node}: termination message", None, digest),))


def _label(pod: Manifest, name: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(name, ""))


def _reason_for_silence(pod: Manifest | None) -> str:
    """Why a pod has not answered yet, by its status."""
    if pod is None:
        return "no pod yet"
    return "; ".join(reasons_to_wait(pod)) or f"pod {pod['metadata']['name']} has not ended"


def reasons_to_wait(pod: Manifest) -> Iterator[str]:
    """What keeps a pod from starting, by its conditions and the states of its containers."""
    status = pod.get("status") or {}
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield str(condition.get("message") or condition.get("reason"))
    for container in status.get("containerStatuses") or ():
        if waiting := (container.get("state") or {}).get("waiting"):
            yield f"{waiting.get('reason')}: {waiting.get('message', '')}"

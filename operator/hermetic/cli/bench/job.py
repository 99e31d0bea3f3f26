"""The Job of a benchmark and the NetworkPolicy of its pod. Pure: rendered from the live workload of the model.

The pod runs the image of the engine on a node that has it, without a GPU, a service account token or a name server, and
meets the Pod Security Standard `restricted`. It can connect to the pods of its model, and to nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.benchmark import API_KEY, FIGURES, RESULT_FILE
from hermetic.engines.launch import from_secret, literal
from hermetic.engines.offline_environment import CACHE_FOLDERS, HOME, OFFLINE
from hermetic.in_container import program
from hermetic.kinds import MODEL_DEPLOYMENT
from hermetic.objects.names import MODEL_LABEL, Owner, selector
from hermetic.objects.pod import verbatim

BENCHMARK_LABEL = "hermetic.dev/benchmark"
"""On the Job and its pod, with the name of the model: the label for which `allowedClients` can open a model."""
CONTAINER = "benchmark"
LIMIT_SECONDS = 90
"""The longest that the benchmark itself runs, with the start of its program."""
DEADLINE_SECONDS = LIMIT_SECONDS + 60
"""The longest that the Job runs, with scheduling and the mount of the weights."""
KEPT_SECONDS = 900
NEVER_READY = "hermetic.dev/serves-nothing"
WEIGHTS_VOLUME = "weights"


@dataclass(frozen=True, slots=True)
class BenchmarkPod:
    """What a benchmark of one model needs.

    `template`: the pod template of its live workload. `command`: of the engine's benchmark. `labels`: further labels
    of the pod, those of a client that the model admits.
    """

    owner: Owner
    spec: ModelDeploymentSpec
    template: Mapping[str, Any]
    command: tuple[str, ...]
    labels: Mapping[str, str]


def pod_labels(owner: Owner, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of the Job's pod: none of Hermetic's children, which are the operator's alone."""
    return {
        **labels,
        "app.kubernetes.io/name": "hermetic-benchmark",
        "app.kubernetes.io/component": "benchmark",
        BENCHMARK_LABEL: owner.name,
    }


def job_name(owner: Owner, run: str) -> str:
    """At most 63 characters, as a label has. `run`: six hexadecimal digits.

    The 'a' keeps the names of its pods apart from those of a Deployment, which admission policies know by their form.
    """
    return f"{owner.name[:48].rstrip('-.')}-bench-a{run}"


def benchmark_job(pod: BenchmarkPod, engine: Mapping[str, Any], run: str) -> dict[str, Any]:
    """One Job with one pod. `engine`: the container of the engine in the template."""
    labels = pod_labels(pod.owner, pod.labels)
    owner = {"apiVersion": MODEL_DEPLOYMENT.api_version, "kind": MODEL_DEPLOYMENT.kind}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(pod.owner, run),
            "namespace": pod.owner.namespace,
            "labels": {BENCHMARK_LABEL: pod.owner.name, "app.kubernetes.io/component": "benchmark"},
            "ownerReferences": [{**owner, "name": pod.owner.name, "uid": pod.owner.uid}],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "ttlSecondsAfterFinished": KEPT_SECONDS,
            "template": {"metadata": {"labels": labels}, "spec": _pod(pod, engine)},
        },
    }


def benchmark_policy(pod: BenchmarkPod, job: Mapping[str, Any]) -> dict[str, Any]:
    """The pod of the applied `job` calls the pods of its model, and is called by none. It is removed with the Job."""
    metadata = job["metadata"]
    to_model = {
        "to": [{"podSelector": {"matchLabels": selector(pod.owner)}}],
        "ports": [{"protocol": "TCP", "port": pod.spec.endpoint.port}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {BENCHMARK_LABEL: pod.owner.name, "app.kubernetes.io/component": "benchmark"},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
            ],
        },
        "spec": {
            "podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": metadata["name"]}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": [to_model],
        },
    }


def _pod(pod: BenchmarkPod, engine: Mapping[str, Any]) -> dict[str, Any]:
    template = pod.template["spec"]
    on_the_nodes_of_the_model = {
        "labelSelector": {"matchLabels": {MODEL_LABEL: pod.owner.name}},
        "topologyKey": "kubernetes.io/hostname",
    }
    weights = [volume for volume in template.get("volumes") or () if volume["name"] == WEIGHTS_VOLUME]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        # It is called by its address: a name would need a name server, which is a way out of the cluster.
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        # With the labels of a client, a Service of that client would otherwise send requests to this pod.
        "readinessGates": [{"conditionType": NEVER_READY}],
        "securityContext": dict(template["securityContext"]),
        # The image of the engine is on these nodes already, and the weights are mounted there.
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [on_the_nodes_of_the_model]}},
        "tolerations": list(template.get("tolerations") or ()),
        "containers": [_container(pod, engine)],
        "volumes": [
            *weights,
            {"name": "home", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
    }


def _container(pod: BenchmarkPod, engine: Mapping[str, Any]) -> dict[str, Any]:
    mounts = [mount for mount in engine.get("volumeMounts") or () if mount["name"] == WEIGHTS_VOLUME]
    arguments = (str(LIMIT_SECONDS), RESULT_FILE, ",".join(FIGURES), *pod.command)
    return {
        "name": CONTAINER,
        "image": engine["image"],
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-I", "-S", "-B", "-c", verbatim(program("benchmark"))],
        "args": [verbatim(word) for word in arguments],
        "env": list(_environment(pod.spec)),
        "resources": {
            "requests": {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "1Gi"},
            "limits": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "3Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *mounts,
            {"name": "home", "mountPath": HOME},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108
        ],
    }


def _environment(spec: ModelDeploymentSpec) -> tuple[dict[str, Any], ...]:
    # The images of engines ask for all GPUs of the node. 'void' gives none: NVIDIA container toolkit, "Specialized
    # Configurations with Docker", GPU enumeration.
    without_gpus = literal("NVIDIA_VISIBLE_DEVICES", "void")
    key = spec.endpoint.api_key
    secret = () if key is None else (from_secret(API_KEY, key.secret_name, key.key),)
    return (*OFFLINE, *CACHE_FOLDERS, without_gpus, *secret)

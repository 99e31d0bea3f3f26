"""What any engine needs of its container."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from hermetic.api.pod_users import PodUser
from hermetic.api.weights import Weights
from hermetic.in_container import program

WEIGHTS = "/weights"
TLS = "/tls"

# Endpoint removal must reach kube-proxy and the load balancer's probe (5 s, two failures) before the engine stops
# taking requests; the rest is margin.
PROPAGATION_SECONDS = 20
TEARDOWN_SECONDS = 30
BEYOND_GATEWAYS = "4000"
"""Seconds after which an engine behind a gateway closes an idle connection, 5 by default. The gateway must close it
first, or a request that it sends just then is lost: Envoy keeps idle connections for an hour
(https://www.envoyproxy.io/docs/envoy/latest/faq/configuration/timeouts) and repeats no POST."""

ADDRESS_PORT = 29500
"""Where the head of a group serves its own address to the members."""
GROUP_PORTS = (1024, 65535)
"""TCP ports on which the pods of a group talk: those of the engines, and any that NCCL, gloo and ZMQ choose."""
RANK_VARIABLE = "HERMETIC_GROUP_RANK"
"""The rank of a pod in its group, from 0."""
HEAD_VARIABLE = "HERMETIC_HEAD_ADDRESS"
"""An address, not a name, of the Service in front of the head. Its value is known to the builder of the pods alone."""
RANK_LABEL = "apps.kubernetes.io/pod-index"
"""The label with the index of a pod in its StatefulSet. Source: kubernetes.io, StatefulSets, "Pod index label"."""


@dataclass(frozen=True, slots=True)
class WritableFolder:
    """An emptyDir that the engine writes to: volume `name`, mounted at `path`."""

    name: Literal["cache", "tmp", "nim-cache"]
    path: str


_INTERPRETER = ("python3", "-I", "-S", "-B", "-c")

InitContainerName = Literal["check-accelerators", "verify-weights", "link-cache", "copy-cache"]
"""Containers before the engine. What each may run is in manifests/policies/operator-deployments.yaml as well."""


@dataclass(frozen=True, slots=True)
class InitContainer:
    """A container that runs to completion before the engine: as the engine's user, read-only root, no network.

    `command`: empty for the entry point of the image. `mounts`: names of its volumes, among "weights", "shm" and those
    of `Launch.writable`. `cpu`, `memory`: requests; `memory_limit`: the memory limit, None for none. All three are
    Kubernetes quantities. `brings_code`: what it takes from the weights is executed by the engine. `has_accelerators`:
    it has the same number of GPUs as the engine, which gets those devices after it. `budget_seconds`: how long it may
    run beside the startup budget of the engine, 0 for one that takes no time worth a budget.
    """

    name: InitContainerName
    image: str
    command: tuple[str, ...]
    mounts: frozenset[str]
    cpu: str
    memory: str
    memory_limit: str | None
    args: tuple[str, ...] = ()
    brings_code: bool = False
    has_accelerators: bool = False
    budget_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """How one engine is started: every list in the order in which it appears in the pod.

    `args_from_env`: (flag, variable of `env`); the kubelet puts the variable's value after the flag, before `args`.
    `shared_memory`: a quantity that the engine takes of /dev/shm beyond `resources.sharedMemory`.
    `nodes`: pods of a replica, one on each node. With several, `command` starts the member program, which needs
    HEAD_VARIABLE in addition to `env`. `devices`: (extended resource, number) that the engine's container takes beside
    its GPUs.
    """

    engine: str
    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[dict[str, Any], ...]
    live_path: str
    ready_path: str
    writable: tuple[WritableFolder, ...]
    user: int
    group: int
    read_only_root: bool
    sleep_before_stop_seconds: int
    grace_seconds: int
    init_containers: tuple[InitContainer, ...] = ()
    args_from_env: tuple[tuple[str, str], ...] = ()
    shared_memory: str | None = None
    nodes: int = 1
    devices: tuple[tuple[str, int], ...] = ()


def as_user(launch: Launch, user: PodUser | None) -> Launch:
    """The launch with the user of the configuration; None keeps the engine's own.

    The engine writes only into emptyDirs, which every user may write to, and needs no entry in /etc/passwd, for HOME,
    USER and LOGNAME are set.
    """
    return launch if user is None else replace(launch, user=user.run_as_user, group=user.run_as_group)


def literal(name: str, value: str) -> dict[str, Any]:
    """An environment variable with a literal value."""
    return {"name": name, "value": value}


def from_secret(name: str, secret: str, key: str) -> dict[str, Any]:
    """An environment variable that the kubelet fills from a Secret; the operator only names it."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def pod_address(name: str) -> dict[str, Any]:
    """An environment variable with the pod's own address."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}


def pod_rank(name: str) -> dict[str, Any]:
    """An environment variable with the index of the pod in its StatefulSet, from 0."""
    field = {"apiVersion": "v1", "fieldPath": f"metadata.labels['{RANK_LABEL}']"}
    return {"name": name, "valueFrom": {"fieldRef": field}}


def pod_uid(name: str) -> dict[str, Any]:
    """An environment variable with the pod's uid: random, and readable only with permission to read the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}}


def keeping_first_errors(*command: str) -> tuple[str, ...]:
    """The command, run by the `python3` (3.8 or later) of the image in a program that keeps its first errors.

    The kubelet takes the last 4 KiB of /dev/termination-log for the container's message, and the last 2 KiB of the log
    only where that file is empty. The file is written only when the engine fails. Nothing is mounted for it.
    """
    return (*_INTERPRETER, program("error_capture"), *command)


def as_group_member(*command: str) -> tuple[str, ...]:
    """The command, run in a program that tells the members of a group the address of their head, and adds the rank.

    It adds the flags at the end of the command line, so that no argument of a user overrides them.
    """
    return (*_INTERPRETER, program("group_member"), *command)


def model_path(weights: Weights) -> str:
    """Absolute path of the model folder: in the image itself, below the image volume, or the mounted folder."""
    if weights.baked_image is not None:
        return weights.baked_image.path
    if weights.image_volume is not None and weights.image_volume.path:
        return f"{WEIGHTS}/{weights.image_volume.path}"
    return WEIGHTS


def model_folders(weights: Weights) -> tuple[str, ...]:
    """Every folder of the container in which there may be weights."""
    return tuple(dict.fromkeys((WEIGHTS, model_path(weights))))

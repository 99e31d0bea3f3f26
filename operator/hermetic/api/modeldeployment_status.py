"""`status` of a ModelDeployment: what was observed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.adapters import MOST_ADAPTERS, AdapterStatus
from hermetic.api.conditions import Condition
from hermetic.api.field_types import Timestamp, list_of
from hermetic.api.preflight import AcceleratorStatus
from hermetic.api.rules import ApiModel


class EndpointStatus(ApiModel):
    """Where the model answers."""

    url: Annotated[str, StringConstraints(max_length=512)]
    """Base URL for OpenAI clients, for example 'http://10.13.76.40:8000/v1'."""
    address: Annotated[str, StringConstraints(max_length=253)]
    """The private address, or the in-cluster DNS name without a load balancer."""


class PublicAddressStatus(ApiModel):
    """A public address that the load balancer gave although a private one was asked for."""

    address: Annotated[str, StringConstraints(max_length=253)]
    """The address, or the host name in its place."""
    service_removed: bool
    """Whether the Service that had it is gone."""


class PlannedMemory(ApiModel):
    """What the model needs of each GPU, on the VM size that the condition ModelFits is about."""

    instance_type: Annotated[str, StringConstraints(max_length=64)]
    """The VM size: of those that the pods may get the one with least room, or with most where it fits on none."""
    needed_bytes_per_gpu: Annotated[int, Field(ge=1)]
    """Weights, overhead and the key-value cache of the longest context asked for."""
    available_bytes_per_gpu: Annotated[int, Field(ge=1)]
    """What the engine may take of the memory of one GPU."""
    answer: Literal["Fits", "Tight", "DoesNotFit", "Unknown"]
    """Whether the model fits; Tight from 0.9 to 1.1 of what is available, Unknown where a value is not confirmed."""


class PlannedLoad(ApiModel):
    """The least time that the weights need to load; what the share itself delivers is not known to the operator."""

    least_seconds: Annotated[int, Field(ge=1)]
    """Seconds, for one pod on that VM size."""
    bound_by: Annotated[str, StringConstraints(max_length=64)]
    """What needs that time: 'the network of the node', 'what single files deliver' or 'PCIe of the GPUs'."""


class PlanStatus(ApiModel):
    """What Hermetic decided from the spec."""

    engine: Annotated[str, StringConstraints(max_length=16)]
    """Engine as people write it: 'vLLM', 'NIM' or 'SGLang'."""
    tensor_parallel_size: Annotated[int, Field(ge=1)]
    """GPUs that share each layer."""
    startup_budget_seconds: Annotated[int, Field(ge=1)]
    """Seconds that a pod may take until it serves."""
    memory: PlannedMemory | None = None
    """Memory of the GPUs; absent without `weights.facts`, and where it cannot be computed."""
    load: PlannedLoad | None = None
    """Time to load the weights; only beside `memory`, for `azureFiles` and `nfs`."""


StartPhase = Literal[
    "Scheduling",
    "PreparingNode",
    "CheckingAccelerators",
    "VerifyingWeights",
    "CopyingCaches",
    "PullingImage",
    "LoadingModel",
    "Restarting",
]


class StartStatus(ApiModel):
    """The pod that decides when every pod serves: of the pods that start, the one in the earliest phase."""

    pod: Annotated[str, StringConstraints(max_length=253)]
    """Name of the pod."""
    phase: StartPhase
    """Scheduling: it has no node. PreparingNode: the node mounts volumes and pulls images. CheckingAccelerators,
    VerifyingWeights, CopyingCaches: these containers run. PullingImage: one of them has ended, and the node pulls the
    image of the next. LoadingModel: the engine runs and does not serve yet. Restarting: a container ended and is
    started again."""
    since: Timestamp
    """When the phase began."""
    deadline: Timestamp | None = None
    """When `startupBudgetSeconds` ends the phase; only with VerifyingWeights and LoadingModel."""


class ServingStatus(ApiModel):
    """What serves now."""

    pods: Annotated[str, StringConstraints(max_length=16)]
    """Pods that serve, of those that `spec.replicas` asks for: '2/2'."""
    url: Annotated[str, StringConstraints(max_length=512)] | None = None
    """`endpoint.url` while a pod serves; absent while requests would fail."""


MOST_GROUPS = 32
"""Groups that a status shows."""
GroupState = Literal["Serving", "Starting", "Waiting", "Stopping", "BackingOff"]


class GroupStatus(ApiModel):
    """A replica of several nodes, whose pods start and stop together."""

    name: Annotated[str, StringConstraints(max_length=253)]
    """Name of the group and of the objects that belong to it."""
    state: GroupState
    """Serving: every pod is ready. Starting: every pod has a node. Waiting: pods have no node, or none may start yet.
    Stopping: the pods end. BackingOff: a pod failed, and the group starts again after a pause."""
    pods: Annotated[str, StringConstraints(max_length=16)]
    """Pods that serve, of all: '2/2', or '0/2' until every pod is ready."""
    restarts: Annotated[int, Field(ge=0)]
    """How often the group was stopped because a pod failed, was lost or got no node."""
    message: Annotated[str, StringConstraints(max_length=1024)] | None = None
    """Which pod, on which node, and why; absent while the group serves."""


class ModelDeploymentStatus(ApiModel):
    """What was observed, last in the same write as the conditions it vouches for."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """The metadata.generation that this status is about; -1 until it was first seen."""
    conditions: Annotated[list[Condition], Field(max_length=16), list_of("map", "type")] = []
    """Ready and what it is made of."""
    endpoint: EndpointStatus | None = None
    """Where the model answers; absent until it has an address."""
    public_address: PublicAddressStatus | None = None
    """The public address for which the Service was removed; absent without one."""
    replicas: Annotated[int, Field(ge=0)] | None = None
    """Pods that exist, whether they serve yet or not: the number that autoscalers compare with `spec.replicas`."""
    selector: Annotated[str, StringConstraints(max_length=256)] | None = None
    """Label selector of the pods, for autoscalers."""
    plan: PlanStatus | None = None
    """What Hermetic decided from the spec."""
    serving: ServingStatus | None = None
    """How many pods serve, and where."""
    adapters: Annotated[list[AdapterStatus], Field(max_length=MOST_ADAPTERS), list_of("map", "name")] = []
    """Each adapter of `spec.adapters`; absent without any."""
    start: StartStatus | None = None
    """How far the slowest pod has come that starts; absent while every pod serves, and where a pod fails. A phase
    appears once it has lasted ten seconds."""
    accelerators: Annotated[list[AcceleratorStatus], Field(max_length=16), list_of("map", "pod")] = []
    """What the checks of the GPUs found in each pod, faults first, then the newest pods; at most 16."""
    groups: Annotated[list[GroupStatus], Field(max_length=MOST_GROUPS), list_of("map", "name")] = []
    """Each replica of several `accelerator.nodes`; absent with one node. Those that do not serve first, at most 32."""

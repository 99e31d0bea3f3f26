"""ModelDeployment: one model, served privately."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hermetic.api.adapters import ADAPTER_RULES, MOST_ADAPTERS, Adapters, AdapterStatus
from hermetic.api.autoscaling import Autoscaling
from hermetic.api.conditions import Condition
from hermetic.api.endpoint import Endpoint
from hermetic.api.engine import Engine
from hermetic.api.engine_rules import ENGINE_RULES
from hermetic.api.field_types import LabelKey, LabelValue, Quantity, Timestamp, at_most, list_of, matches, name_of
from hermetic.api.group_rules import GROUP_NAME_RULE, GROUP_RULES
from hermetic.api.preflight import AcceleratorStatus, Preflight
from hermetic.api.rules import ApiModel, Rule, immutable
from hermetic.api.scheduling import Scheduling
from hermetic.api.weights import Weights

# 46 characters: the suffixes of ReplicaSet and Pod need 17 of the 63 characters of a host name.
NAME_PATTERN = r"^[a-z]([-a-z0-9]{0,44}[a-z0-9])?$"
NAME_RULE = Rule(
    cel=f"self.metadata.name.matches('{NAME_PATTERN}')",
    holds=lambda deployment: re.fullmatch(NAME_PATTERN, name_of(deployment.metadata)) is not None,
    message="must be 1 to 46 lower-case letters, digits or '-', starting with a letter and ending with a letter or "
    "digit: the names of Service and pods are made from it",
    field=".metadata.name",
    show='"\'" + self.metadata.name + "\'"',
)
SERVED_NAME = r"^[A-Za-z0-9]([A-Za-z0-9._:/-]*[A-Za-z0-9])?$"
ServedName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253),
    matches(SERVED_NAME, "must be a model name as clients send it: letters, digits, '.', '_', ':', '/' and '-'"),
]


class Model(ApiModel):
    """What clients call the model."""

    name: Annotated[ServedName, immutable("name")]
    """Name on /v1/models and in requests, for example 'meta/llama-3.1-8b-instruct'. Immutable."""
    aliases: Annotated[list[ServedName], Field(max_length=16), list_of("set")] = []
    """Further names that clients may use (vLLM only). Default: none."""


class Toleration(ApiModel):
    """A taint that the pods accept."""

    RULES = (
        Rule(
            cel="has(self.key) || self.operator == 'Exists'",
            message="must set `key`, or `operator` 'Exists' to accept every taint",
            holds=lambda toleration: toleration.key is not None or toleration.operator == "Exists",
        ),
        Rule(
            cel="!has(self.value) || self.value == '' || self.operator == 'Equal'",
            message="must not be set with `operator` 'Exists', which accepts every value",
            holds=lambda toleration: not toleration.value or toleration.operator == "Equal",
            field=".value",
            show="'\\'' + self.value + '\\''",
        ),
    )

    key: LabelKey | None = None
    """Key of the taint. Default: every key (then `operator` must be 'Exists')."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """How `value` is compared. Default: Equal."""
    value: LabelValue | None = None
    """Value of the taint. Default: empty."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Default: every effect."""


class Interconnect(ApiModel):
    """The network between the nodes of a replica."""

    RULES = (
        Rule(
            cel="has(self.resource) == (has(self.type) && self.type == 'InfiniBand')",
            message="must be set with `type` 'InfiniBand', and only with it: the site's device plug-in gives the pods "
            "their InfiniBand devices by that name",
            holds=lambda network: (network.resource is not None) == (network.type == "InfiniBand"),
            field=".resource",
        ),
    )

    type: Literal["InfiniBand", "Ethernet"] = "Ethernet"
    """InfiniBand: the pods ask for its devices, and a start that could not use them fails. Ethernet: the pods talk TCP
    over the network of the cluster, which is slower by an order of magnitude. Default: Ethernet."""
    resource: (
        Annotated[
            str,
            StringConstraints(max_length=64),
            matches(
                r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
                "must be an extended resource such as 'rdma/ib'",
            ),
        ]
        | None
    ) = None
    """Extended resource of the InfiniBand devices, for example 'rdma/ib'; the site's device plug-in names it. Only with
    type InfiniBand, which needs it. Default: none."""
    count: Annotated[int, Field(ge=1, le=16)] = 1
    """InfiniBand devices of each pod, 1 to 16. Default: 1."""


class Accelerator(ApiModel):
    """The GPUs of one replica, on one node or on several nodes."""

    RULES = (
        # Source: https://github.com/vllm-project/vllm/issues/6551 and https://github.com/vllm-project/vllm/issues/7211.
        Rule(
            # The API server evaluates the rule of the default `{}` too, which has neither field.
            cel="!has(self.resource) || !self.resource.startsWith('nvidia.com/mig-') || !has(self.count) || "
            "self.count == 1",
            message="must have a `count` of 1: engines do not divide a model over slices of a GPU (MIG); take a larger "
            "slice, or more `replicas`",
            holds=lambda accelerator: not accelerator.resource.startswith("nvidia.com/mig-") or accelerator.count == 1,
            field=".resource",
            show="'\\'' + self.resource + '\\''",
        ),
        Rule(
            cel="!has(self.nodes) || self.nodes == 1 || !has(self.resource) || self.resource in "
            "['nvidia.com/gpu', 'amd.com/gpu']",
            message="must be whole GPUs ('nvidia.com/gpu' or 'amd.com/gpu') with several `nodes`: engines do not "
            "divide a model over slices, partitions and shared GPUs of several nodes",
            holds=lambda accelerator: (
                accelerator.nodes == 1 or accelerator.resource in ("nvidia.com/gpu", "amd.com/gpu")
            ),
            field=".resource",
            show="'\\'' + self.resource + '\\''",
        ),
        Rule(
            cel="!has(self.interconnect) || (has(self.nodes) && self.nodes > 1)",
            message="needs several `nodes`: the GPUs of one node talk over its own links",
            holds=lambda accelerator: accelerator.interconnect is None or accelerator.nodes > 1,
            field=".interconnect",
        ),
        Rule(
            cel="(has(self.nodes) && self.nodes > 1) == (has(oldSelf.nodes) && oldSelf.nodes > 1)",
            message="must not change between one and several, for a model keeps its kind of workload; delete the "
            "object and create it anew to change it",
            field=".nodes",
        ),
    )

    resource: Annotated[
        str,
        StringConstraints(max_length=64),
        matches(
            r"^(nvidia\.com/(gpu(\.shared)?|mig-[0-9]g\.[0-9]+gb(\.[a-z][-a-z0-9.]*)?)|"
            r"amd\.com/(gpu|spx_nps1|dpx_nps[12]|qpx_nps[124]|cpx_nps[1248]))$",
            "must be 'nvidia.com/gpu', 'nvidia.com/gpu.shared', 'nvidia.com/mig-<profile>', 'amd.com/gpu' or a "
            "partition such as 'amd.com/cpx_nps4', with no more memory partitions (NPS) than compute partitions",
        ),
    ] = "nvidia.com/gpu"
    """Extended resource to ask for: whole GPUs, slices (MIG), GPUs shared by time (`renameByDefault` of NVIDIA's
    device plug-in) or partitions (the mixed strategy of AMD's). The fit of a model is computed for whole GPUs, and for
    slices and partitions of known memory. Default: nvidia.com/gpu."""
    count: Annotated[int, Field(ge=1, le=16)] = 1
    """GPUs of each pod, 1 to 16. A replica has as many on each of its `nodes`. Default: 1."""
    nodes: Annotated[int, Field(ge=1, le=16)] = 1
    """Nodes of each replica, 1 to 16, with one pod on each, for a model that is larger than a node (vLLM and SGLang).
    It cannot change between 1 and more. Default: 1."""
    interconnect: Interconnect | None = None
    """The network between the nodes of a replica; only with several `nodes`. Default: Ethernet.

    interconnect: {type: InfiniBand, resource: rdma/ib, count: 8}"""
    instance_types: Annotated[
        list[
            Annotated[
                str,
                StringConstraints(min_length=1, max_length=63),
                matches(r"^[A-Za-z0-9_]+$", "must be a VM size such as 'Standard_NC24ads_A100_v4'"),
            ]
        ],
        Field(max_length=16),
        list_of("set"),
    ] = []
    """VM sizes that may run the pods, for example 'Standard_NC24ads_A100_v4'. Default: every node that has the GPUs."""
    tolerations: Annotated[list[Toleration], Field(max_length=16), list_of("atomic")] = [
        Toleration(key="sku", value="gpu", effect="NoSchedule")
    ]
    """Taints that the pods accept. Default: 'sku=gpu:NoSchedule', the taint of GPU pools in the AKS documentation."""
    preflight: Preflight | None = None
    """The checks of the GPUs that every pod makes before its engine starts. Default: policy Warn, or the minimum of the
    operator's configuration.

    preflight: {policy: Require}"""

    @property
    def gpus(self) -> int:
        """The GPUs of one replica, on all of its nodes."""
        return self.count * self.nodes


class Resources(ApiModel):
    """CPU, memory and scratch space of each pod."""

    cpu: Annotated[Quantity, at_most("1024")] = "4"
    """CPUs asked for, at most 1024, for example '4' or '500m'. Default: 4."""
    cpu_limit: Annotated[Quantity, at_most("1024")] | None = None
    """CPU limit of every container of the pods, at most 1024 and at least `cpu`, where a policy or a quota wants one.
    Starting is bound by CPU: set it no lower than the CPUs of the node that a replica may use. Default: no limit."""
    memory: Annotated[Quantity, at_most("64Ti")] | None = None
    """Memory asked for, and its limit, at most 64Ti, for example '96Gi'. At least the size of the weights divided by
    0.9, plus 16Gi: below that vLLM stops reading ahead from NFS. Default: 16Gi asked for and no limit."""
    shared_memory: Annotated[Quantity, at_most("64Ti")] | None = None
    """Size limit of /dev/shm, at most 64Ti; it counts against `memory`. Default: 2Gi for up to 2 GPUs, 8Gi for more."""
    scratch: Annotated[Quantity, at_most("64Ti")] = "20Gi"
    """Size limit of the writable cache (compiled kernels) on the node's disk, at most 64Ti. Default: 20Gi."""
    ephemeral_storage_limit: (
        Annotated[
            str,
            StringConstraints(max_length=8),
            matches(r"^[1-9][0-9]{0,4}(Mi|Gi|Ti)$", "must be a whole number of Mi, Gi or Ti, such as '30Gi'"),
        ]
        | None
    ) = None
    """Limit of every container of the pods for space on the node's disk, in whole Mi, Gi or Ti, where a policy or a
    quota wants one; at least `scratch` plus 3Gi for /tmp and logs. Beyond it the pod is evicted. A NIM also writes into
    its image. Default: no limit; cache and /tmp are bounded all the same."""


class KvCacheOffload(ApiModel):
    """A second tier of the key-value cache, in the memory of the node."""

    memory: Annotated[
        str,
        StringConstraints(max_length=6),
        matches(r"^[1-9][0-9]{0,3}Gi$", "must be a whole number of GiB from '1Gi' to '9999Gi', such as '64Gi'"),
    ]
    """Memory of each pod for it, in whole GiB, for all GPUs together. It is added to what the pod asks for and to
    its limit. With vLLM it is part of /dev/shm, and is added to `resources.sharedMemory`."""

    @property
    def gibibytes(self) -> int:
        """The size in GiB."""
        return int(self.memory.removesuffix("Gi"))


Enforcement = Literal["Enforce", "Report", "Off"]


class Isolation(ApiModel):
    """What the deployment asks of the proof that the node subnet has no egress path."""

    enforcement: Enforcement = "Enforce"
    """Enforce: no pod is created without fresh evidence of isolation. Report: pods start without it, and the status
    reports that. "Off" (quote it, YAML reads a bare Off as false): evidence is not read. The operator's configuration
    sets the least that counts, by namespace: less is raised to it. Default: Enforce."""
    max_evidence_age_seconds: Annotated[int, Field(ge=300, le=604800)] = 86400
    """Oldest evidence that still counts, in seconds, 300 to 604800. Default: 86400 (a day)."""


class ModelDeploymentSpec(ApiModel):
    """The model to serve, and how."""

    RULES = (*ENGINE_RULES, *GROUP_RULES, *ADAPTER_RULES)

    model: Model
    """What clients call the model.

    model: {name: meta/llama-3.1-8b-instruct}"""
    engine: Engine
    """The inference engine: exactly one of vllm, nim and sglang. The choice is immutable."""
    weights: Weights
    """Where the staged weights are read from: exactly one source. The kind of source is immutable."""
    adapters: Adapters = []
    """LoRA adapters that the engine loads when it starts, at most 16 (vLLM and SGLang). A change replaces the pods.
    Default: none.

    adapters: [{name: support-de, folder: adapters/support-de, rank: 16, integrity: {digest: "sha256:…"}}]"""
    accelerator: Accelerator = Accelerator()
    """The GPUs of one replica. Default: one nvidia.com/gpu."""
    resources: Resources = Resources()
    """CPU, memory and scratch space of each pod. Default: 4 CPUs, 16Gi, 20Gi of scratch space."""
    kv_cache_offload: KvCacheOffload | None = None
    """Keep the key-value cache of prompts that left the GPU in the memory of the node, within the engine's own
    process: a prompt that begins the same is read from there and not computed again. Not with a NIM, and with vLLM only
    on GPUs of NVIDIA. Default: none.

    kvCacheOffload: {memory: 64Gi}"""
    scheduling: Scheduling | None = None
    """Priority class and node labels of the pods, of those that the operator's configuration allows. Default: none."""
    replicas: Annotated[int, Field(ge=0, le=256)] = 1
    """Copies of the model that serve, 0 to 256, each of `accelerator.nodes` pods, and at most 256 pods together.
    Default: 1. With an autoscaler, leave it out of Git: the autoscaler writes it. 0 pauses the model, and its
    autoscaler."""
    autoscaling: Autoscaling | None = None
    """Let a HorizontalPodAutoscaler set `replicas` by the engine's queue; `replicas` must be absent from the manifest.
    It needs a metrics adapter in the cluster. Default: none.

    autoscaling: {minReplicas: 1, maxReplicas: 4, queuedRequests: 5}"""
    startup_budget_seconds: Annotated[int, Field(ge=60, le=14400)] = 1200
    """Seconds that a pod may take until it serves, 60 to 14400; loading from a slow share dominates. Default: 1200."""
    drain_seconds: Annotated[int, Field(ge=0, le=3600)] = 120
    """Seconds that requests in flight may take to finish when a pod is stopped, 0 to 3600. Default: 120."""
    rollout: Literal["Replace", "Surge"] = "Replace"
    """How a change reaches the pods. Replace: one pod makes room for its successor, no spare GPU is needed, and a
    single replica pauses. Surge: the successor serves first, which needs spare GPUs. Default: Replace."""
    endpoint: Endpoint = Endpoint()
    """Who may reach the model, and on what address. Default: port 8000, inside the cluster only, no client pods."""
    isolation: Isolation = Isolation()
    """What is asked of the proof of isolation. Default: enforced, with evidence of the last day."""

    @property
    def wanted_replicas(self) -> int:
        """The number of pods to run: `replicas`, within the bounds of `autoscaling`."""
        return self.replicas if self.autoscaling is None else self.autoscaling.clamp(self.replicas)


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


class ModelDeployment(ApiModel):
    """One model behind a private address, served by vLLM, SGLang or NVIDIA NIM from weights that were staged before."""

    RULES = (NAME_RULE, GROUP_NAME_RULE)

    api_version: Literal["hermetic.dev/v1alpha1"]
    kind: Literal["ModelDeployment"]
    metadata: dict[str, Any]
    spec: ModelDeploymentSpec
    """The model to serve, and how."""
    status: ModelDeploymentStatus = ModelDeploymentStatus()
    """What was observed."""

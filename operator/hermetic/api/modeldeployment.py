"""ModelDeployment: one model, served privately."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hermetic.api.adapters import ADAPTER_RULES, Adapters
from hermetic.api.autoscaling import Autoscaling
from hermetic.api.endpoint import Endpoint
from hermetic.api.engine import Engine
from hermetic.api.engine_rules import ENGINE_RULES
from hermetic.api.field_types import list_of, matches, name_of
from hermetic.api.group_rules import GROUP_NAME_RULE, GROUP_RULES
from hermetic.api.isolation import Isolation
from hermetic.api.modeldeployment_status import ModelDeploymentStatus
from hermetic.api.resources import Accelerator, KvCacheOffload, Resources
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

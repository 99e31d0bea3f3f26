"""`spec.accelerator`, `resources` and `kvCacheOffload`: the GPUs, nodes, CPUs and memory of a replica."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.field_types import Quantity, at_most, list_of, matches
from hermetic.api.preflight import Preflight
from hermetic.api.rules import ApiModel, Rule
from hermetic.api.scheduling import Toleration


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

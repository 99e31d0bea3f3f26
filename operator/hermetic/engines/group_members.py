"""How an engine is started as a member of a group: a replica of several nodes, with one pod on each.

`in_container/group_member.py` finds the head of the group and adds what differs from pod to pod. What is the same for
all of them is here. Both engines start a process for each GPU themselves and meet at an address of rank 0, without Ray
and without ssh. Sources: `MultiprocExecutor` in vllm/v1/executor/multiproc_executor.py and `run_headless` in
vllm/entrypoints/cli/serve.py of vLLM 0.33.0; `_calculate_rank_ranges` and `_launch_subprocesses` in
sglang/srt/entrypoints/engine.py of SGLang 0.5.23.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.resources import Accelerator
from hermetic.engines.launch import ADDRESS_PORT, RANK_VARIABLE, TLS, literal, pod_address, pod_rank
from hermetic.sizing.catalogue import interconnects

VLLM_PORT = 29501
"""Where the workers of vLLM meet on the head; also its default (vllm/config/parallel.py)."""


def is_group(spec: ModelDeploymentSpec) -> bool:
    """Whether a replica of this spec has several pods."""
    return spec.accelerator.nodes > 1


def vllm_group_flags(spec: ModelDeploymentSpec) -> Iterator[tuple[str, ...]]:
    """The flags of vLLM that all pods of a group have in common; none where a replica is one pod."""
    if is_group(spec):
        yield ("--nnodes", str(spec.accelerator.nodes))
        yield ("--master-port", str(VLLM_PORT))


def sglang_group_flags(spec: ModelDeploymentSpec) -> Iterator[tuple[str, ...]]:
    """The flags of SGLang that all pods of a group have in common; none where a replica is one pod."""
    if is_group(spec):
        yield ("--nnodes", str(spec.accelerator.nodes))


def group_environment(spec: ModelDeploymentSpec, health_path: str, named: set[str]) -> Iterator[dict[str, Any]]:
    """The variables of the member program and of the collectives; none where a replica is one pod.

    `named`: variables of the user, which are left to the user.
    """
    if not is_group(spec):
        return
    yield pod_rank(RANK_VARIABLE)
    yield pod_address("HERMETIC_POD_ADDRESS")
    yield literal("HERMETIC_ADDRESS_PORT", str(ADDRESS_PORT))
    yield literal("HERMETIC_ENDPOINT_PORT", str(spec.endpoint.port))
    yield literal("HERMETIC_HEALTH_PATH", health_path)
    if spec.endpoint.tls is not None:
        yield literal("HERMETIC_ENDPOINT_TLS", TLS)
    if has_infiniband(spec.accelerator):
        yield literal("HERMETIC_INTERCONNECT", "InfiniBand")
    collectives = {"GLOO_SOCKET_IFNAME": "eth0", "NCCL_SOCKET_IFNAME": "eth0", **_interconnect_variables(spec)}
    yield from (literal(name, value) for name, value in collectives.items() if name not in named)


def has_infiniband(accelerator: Accelerator) -> bool:
    """Whether the nodes of a replica talk over InfiniBand."""
    return accelerator.interconnect is not None and accelerator.interconnect.type == "InfiniBand"


def interconnect_devices(accelerator: Accelerator) -> tuple[tuple[str, int], ...]:
    """(extended resource, number) of the network devices of each pod."""
    network = accelerator.interconnect
    if network is None or network.resource is None or not has_infiniband(accelerator):
        return ()
    return ((network.resource, network.count),)


def _interconnect_variables(spec: ModelDeploymentSpec) -> dict[str, str]:
    """The variables of NCCL for the network that the spec asks for.

    With InfiniBand NCCL may use nothing else: it would fall back to TCP, and the model would serve many times slower
    without an error. Source: docs.nvidia.com, NCCL user guide, NCCL_NET. What depends on the VM size is rendered where
    all sizes of the spec agree, for the pod template follows from the spec alone.
    """
    if not has_infiniband(spec.accelerator):
        # Its devices are not asked for: a search for them only delays the start.
        return {"NCCL_IB_DISABLE": "1"}
    networks = interconnects()
    of_sizes = [networks[name].variables for name in spec.accelerator.instance_types if name in networks]
    common = dict(of_sizes[0]) if of_sizes and len(of_sizes) == len(spec.accelerator.instance_types) else {}
    for variables in of_sizes:
        common = {name: value for name, value in common.items() if variables.get(name) == value}
    return {"NCCL_NET": "IB", **common}

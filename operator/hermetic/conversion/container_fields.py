"""The options of `docker run` as fields of a ModelDeployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from hermetic.api.engine import Member
from hermetic.api.quantities import memory_quantity
from hermetic.conversion.container_options import Container
from hermetic.conversion.model_files import unused_mounts
from hermetic.conversion.outcomes import Field, Outcome, left_out

AMD_DEVICE = "/dev/kfd"
"""The device of AMD's GPUs. Source: rocm.docs.amd.com, "Running ROCm Docker containers"."""
# The engines listen here unless the command says otherwise. Sources: docs.vllm.ai, `--port`; docs.sglang.ai, `--port`;
# docs.nvidia.com, "Configure Your NIM", NIM_SERVER_PORT.
DEFAULT_PORTS: Mapping[Member, int] = {"vllm": 8000, "sglang": 30000, "nim": 8000}
_DEFAULT_SHARED_MEMORY = 8 * 1024**3
"""The most that a pod gets for /dev/shm unless its spec says otherwise."""
# Source: docs.docker.com, "Runtime metrics / resource constraints": b, k, m and g, powers of 1024.
_DOCKER_SIZE = re.compile(r"([0-9]{1,12})(?:([bkmgt])(?:i?b)?)?", re.IGNORECASE)
_POWERS = {"": 0, "b": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_CPUS = re.compile(r"[0-9]{1,4}(\.[0-9]{1,3})?")


def container_outcomes(container: Container, engine_port: int, model: str) -> Iterator[Outcome]:
    """What becomes of the options. `engine_port`: where the server listens in the container."""
    yield from _port(container, engine_port)
    yield from _memory(container)
    if container.cpus:
        is_quantity = _CPUS.fullmatch(container.cpus) is not None
        yield (
            Field("resources.cpu", container.cpus) if is_quantity else left_out("--cpus", "it is not a number of CPUs")
        )
    for file in container.environment_files:
        yield left_out(f"--env-file {file[:128]}", "the file is not read: give its variables with --env NAME=VALUE")
    for name in container.without_value:
        yield left_out(name[:128], "the command takes its value from the host, which is not read")
    yield from unused_mounts(container.mounts, model)


def _port(container: Container, engine_port: int) -> Iterator[Outcome]:
    """Clients call the port of the host: below 1024 it is that of the Service, for the pod may bind none there."""
    published = container.ports.get(engine_port)
    if published is None or published == engine_port:
        return
    if 1024 <= published <= 65535:
        yield Field("endpoint.port", published)
    elif 1 <= published < 1024:
        yield Field("endpoint.servicePort", published)
    else:
        yield left_out(f"--publish {published}:{engine_port}", "`endpoint.servicePort` takes a port from 1 to 65535")


def _memory(container: Container) -> Iterator[Outcome]:
    shared, memory = _bytes_of(container.shared_memory), _bytes_of(container.memory)
    if shared is not None:
        yield Field("resources.sharedMemory", memory_quantity(shared))
    elif container.shared_memory:
        yield left_out("--shm-size", "it is not a size: set `resources.sharedMemory`")
    if memory is None:
        if container.memory:
            yield left_out("--memory", "it is not a size: set `resources.memory`")
    elif memory > (shared if shared is not None else _DEFAULT_SHARED_MEMORY):
        yield Field("resources.memory", memory_quantity(memory))
    else:
        yield left_out("--memory", "`resources.memory` must exceed /dev/shm, which counts against it")


def _bytes_of(text: str) -> int | None:
    """A size of `docker run` in bytes; None where it is none, or of no use."""
    match = _DOCKER_SIZE.fullmatch(text)
    size = int(match[1]) * 1024 ** _POWERS[(match[2] or "").lower()] if match is not None else 0
    return size if 1024**2 <= size <= 64 * 1024**4 else None


def is_for_amd(container: Container, image: str, environment: Iterable[str]) -> bool:
    """Whether the command is for GPUs of AMD, by its devices, its image or variables that only ROCm builds read."""
    return (
        any(device.partition(":")[0] == AMD_DEVICE for device in container.devices)
        or re.search(r"(^|[/:_.-])rocm", image.lower()) is not None
        or any(name.startswith("VLLM_ROCM_") for name in environment)
    )

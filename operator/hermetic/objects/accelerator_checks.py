"""The init container that checks the GPUs of a pod before anything else in it starts.

It runs a program of the standard library in the engine's own image, with the rights of the engine's container and its
number of GPUs: the kubelet gives the devices of an init container to the containers after it
(https://github.com/kubernetes/kubernetes/issues/56818). Its result is its termination message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import InitContainer, InitContainerName, Launch
from hermetic.in_container import program
from hermetic.objects.pod import REQUESTED_MEMORY

CHECKER: InitContainerName = "check-accelerators"
TIMEOUT_SECONDS = 120
"""After which a driver that does not answer is reported; docs/figures.md has the time of a healthy GPU."""
# An image without python3 starts its engine all the same, and the result says that nothing was checked.
_STARTER = (
    'command -v python3 >/dev/null && exec python3 -I -B -c "$@"; '
    """echo '{"verdict": "Unknown", "seconds": 0, "omitted": 0, "findings": [{"level": "Unknown", """
    """"reason": "PythonMissing", "gpu": "", "message": "the image has no python3"}]}' >/dev/termination-log"""
)


@dataclass(frozen=True, slots=True)
class AcceleratorChecks:
    """The checks of the GPUs; with Require a fault keeps the engine from starting."""

    policy: Literal["Require", "Warn"]


def checked_first(launch: Launch, spec: ModelDeploymentSpec, checks: AcceleratorChecks | None) -> Launch:
    """The launch with the checks before everything else: they take seconds, and the weights minutes."""
    if checks is None:
        return launch
    return replace(launch, init_containers=(_container(launch, spec, checks), *launch.init_containers))


def is_checked(template: Mapping[str, Any]) -> bool:
    """Whether the pods of a template check their GPUs."""
    init_containers = (template.get("spec") or {}).get("initContainers") or ()
    return any(container.get("name") == CHECKER for container in init_containers)


def check_command() -> tuple[str, ...]:
    """The program and what starts it: the same for every model."""
    return ("sh", "-c", _STARTER, CHECKER, program("accelerator_checks"))


def _container(launch: Launch, spec: ModelDeploymentSpec, checks: AcceleratorChecks) -> InitContainer:
    accelerator = spec.accelerator
    options = {
        "--resource": accelerator.resource,
        "--count": str(accelerator.count),
        "--policy": checks.policy,
        "--timeout": str(TIMEOUT_SECONDS),
    }
    return InitContainer(
        CHECKER,
        launch.image,
        command=check_command(),
        args=tuple(word for option in options.items() for word in option),
        mounts=frozenset({"shm", "tmp"}),
        # The requests of the engine, which runs later: they cost nothing more.
        cpu=spec.resources.cpu,
        memory=spec.resources.memory or REQUESTED_MEMORY,
        memory_limit=spec.resources.memory,
        has_accelerators=True,
        budget_seconds=TIMEOUT_SECONDS,
    )

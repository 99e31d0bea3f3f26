"""The volumes of a serving pod: weights read-only, caches writable and bounded, no hostPath."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import TLS, WEIGHTS, Launch
from hermetic.objects.names import Owner
from hermetic.objects.weights_volume import claim_name, share_of

TMP_LIMIT = "2Gi"


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume of the pod and where the engine's container mounts it."""

    volume: dict[str, Any]
    mount: dict[str, Any]


def mounted_volumes(owner: Owner, spec: ModelDeploymentSpec, launch: Launch) -> tuple[Mounted, ...]:
    """Every volume, in the order in which it appears in the pod."""
    return (*_weights(owner, spec), *_writable(spec, launch), _shared_memory(spec), *_tls(spec))


def shared_memory_limit(spec: ModelDeploymentSpec) -> str:
    """Size of /dev/shm: what the workers' ring buffers need for this many GPUs, unless the spec says otherwise."""
    return spec.resources.shared_memory or ("2Gi" if spec.accelerator.count <= 2 else "8Gi")


def _weights(owner: Owner, spec: ModelDeploymentSpec) -> Iterator[Mounted]:
    weights, mount = spec.weights, {"name": "weights", "mountPath": WEIGHTS, "readOnly": True}
    share = share_of(weights)
    if share is not None:
        yield Mounted(_claim(claim_name(owner, share)), mount)
    elif weights.persistent_volume_claim is not None:
        folder = weights.persistent_volume_claim.folder
        yield Mounted(
            _claim(weights.persistent_volume_claim.claim_name), {**mount, **({"subPath": folder} if folder else {})}
        )
    elif weights.image_volume is not None:
        image = {"reference": weights.image_volume.reference, "pullPolicy": "IfNotPresent"}
        yield Mounted({"name": "weights", "image": image}, mount)


def _claim(name: str) -> dict[str, Any]:
    return {"name": "weights", "persistentVolumeClaim": {"claimName": name, "readOnly": True}}


def _writable(spec: ModelDeploymentSpec, launch: Launch) -> Iterator[Mounted]:
    for folder in launch.writable:
        limit = TMP_LIMIT if folder.name == "tmp" else spec.resources.scratch
        yield Mounted(
            {"name": folder.name, "emptyDir": {"sizeLimit": limit}}, {"name": folder.name, "mountPath": folder.path}
        )


def _shared_memory(spec: ModelDeploymentSpec) -> Mounted:
    # A container's own /dev/shm is 64 MiB: too small for the workers of several GPUs.
    memory = {"medium": "Memory", "sizeLimit": shared_memory_limit(spec)}
    return Mounted({"name": "shm", "emptyDir": memory}, {"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108


def _tls(spec: ModelDeploymentSpec) -> Iterator[Mounted]:
    if spec.endpoint.tls is not None:
        secret = {"secretName": spec.endpoint.tls.secret_name}
        yield Mounted({"name": "tls", "secret": secret}, {"name": "tls", "mountPath": TLS, "readOnly": True})

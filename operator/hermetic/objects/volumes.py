"""The volumes of a serving pod: weights read-only, caches writable and bounded, no hostPath."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.quantities import add_memory
from hermetic.engines.adapters import adapter_path, folder_below, mounted_adapters, mounted_folder
from hermetic.engines.launch import TLS, WEIGHTS, Launch
from hermetic.objects.names import Owner
from hermetic.objects.weights_volume import claim_name, share_of

TMP_LIMIT = "2Gi"
BESIDE_SCRATCH = "3Gi"
"""What an ephemeral-storage limit must hold beside the cache: /tmp, and 1Gi for logs and the writable layer."""


@dataclass(frozen=True, slots=True)
class Mounted:
    """A volume of the pod and where the engine's container mounts it; `more`: further folders of the same volume."""

    volume: dict[str, Any]
    mount: dict[str, Any]
    more: tuple[dict[str, Any], ...] = ()

    @property
    def mounts(self) -> tuple[dict[str, Any], ...]:
        return (self.mount, *self.more)


def mounted_volumes(owner: Owner, spec: ModelDeploymentSpec, launch: Launch) -> tuple[Mounted, ...]:
    """Every volume, in the order in which it appears in the pod."""
    return (*_weights(owner, spec), *_writable(spec, launch), _shared_memory(spec, launch), *_tls(spec))


def shared_memory_limit(spec: ModelDeploymentSpec) -> str:
    """Size of /dev/shm: what the workers' ring buffers need for this many GPUs, unless the spec says otherwise."""
    return spec.resources.shared_memory or ("2Gi" if spec.accelerator.count <= 2 else "8Gi")


def _weights(owner: Owner, spec: ModelDeploymentSpec) -> Iterator[Mounted]:
    weights = spec.weights
    share = share_of(spec)
    if share is not None:
        yield _below(mounted_folder(spec), _claim(claim_name(owner, share)), spec)
    elif weights.persistent_volume_claim is not None:
        yield _below("", _claim(weights.persistent_volume_claim.claim_name), spec)
    elif weights.image_volume is not None:
        image = {"reference": weights.image_volume.reference, "pullPolicy": "IfNotPresent"}
        yield Mounted({"name": "weights", "image": image}, _weights_mount(WEIGHTS))


def _below(parent: str, volume: dict[str, Any], spec: ModelDeploymentSpec) -> Mounted:
    """The volume of a share's folder `parent`: of it the model, and the adapters beside the model."""
    model = _weights_mount(WEIGHTS, folder_below(spec.weights.folder, parent))
    adapters = (
        _weights_mount(adapter_path(spec.weights, adapter), folder_below(adapter.folder, parent))
        for adapter in mounted_adapters(spec)
    )
    return Mounted(volume, model, tuple(adapters))


def _weights_mount(path: str, folder: str = "") -> dict[str, Any]:
    return {"name": "weights", "mountPath": path, "readOnly": True, **({"subPath": folder} if folder else {})}


def _claim(name: str) -> dict[str, Any]:
    return {"name": "weights", "persistentVolumeClaim": {"claimName": name, "readOnly": True}}


def _writable(spec: ModelDeploymentSpec, launch: Launch) -> Iterator[Mounted]:
    for folder in launch.writable:
        limit = TMP_LIMIT if folder.name == "tmp" else spec.resources.scratch
        yield Mounted(
            {"name": folder.name, "emptyDir": {"sizeLimit": limit}}, {"name": folder.name, "mountPath": folder.path}
        )


def _shared_memory(spec: ModelDeploymentSpec, launch: Launch) -> Mounted:
    # A container's own /dev/shm is 64 MiB: too small for the workers of several GPUs.
    limit = shared_memory_limit(spec)
    size = limit if launch.shared_memory is None else add_memory(limit, launch.shared_memory)
    memory = {"medium": "Memory", "sizeLimit": size}
    return Mounted({"name": "shm", "emptyDir": memory}, {"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108


def _tls(spec: ModelDeploymentSpec) -> Iterator[Mounted]:
    if spec.endpoint.tls is not None:
        secret = {"secretName": spec.endpoint.tls.secret_name}
        yield Mounted({"name": "tls", "secret": secret}, {"name": "tls", "mountPath": TLS, "readOnly": True})

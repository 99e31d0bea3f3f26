"""Pods: what they run, what they may do to their node, and what they were told of the world outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed
from hermetic.audit.estate.resource import Part
from hermetic.audit.estate.spelling import FreeMap

PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY"})
HUB_KEYS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "NGC_API_KEY", "NGC_CLI_API_KEY", "MODELSCOPE_API_TOKEN"})
VALUES_READ = frozenset({"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "NIM_DISABLE_MODEL_DOWNLOAD"})
"""Variables whose value a check reads. Of the others it is kept at most that they are set."""
NOT_KEPT = "(not kept)"

# DaemonSets that enforce policies, by the namespace in which AKS or their own installer runs them.
POLICY_ENGINES: Mapping[str, str] = {
    "cilium": "kube-system",
    "azure-npm": "kube-system",
    "calico-node": "calico-system",
}


class EnvVar(Trimmed):
    """A variable: a literal, or something that the kubelet fills in (`value_from`)."""

    name: str = ""
    value: str | None = None
    value_from: FreeMap[Any] | None = None

    @classmethod
    def trimmed(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """Without values that nobody reads: credentials are typed into them."""
        named = {"name": kept["name"]} if "name" in kept else {}
        if kept.get("valueFrom"):
            return {**named, "valueFrom": {str(one): {} for one in kept["valueFrom"]}}
        value = kept.get("value")
        if not value or kept.get("name") in VALUES_READ:
            return {**named, **({"value": value} if "value" in kept else {})}
        return {**named, "value": NOT_KEPT}

    @property
    def is_set(self) -> bool:
        """Whether it could hold anything."""
        return bool(self.value) or bool(self.value_from)


class EnvSource(Part):
    """All keys of a ConfigMap or a Secret as variables."""

    config_map_ref: FreeMap[Any] | None = None
    secret_ref: FreeMap[Any] | None = None


class Capabilities(Part):
    """Capabilities beyond the runtime's own; "ALL" is all."""

    add: list[str] | None = None


class WindowsOptions(Part):
    """A host process on Windows is what privileged is on Linux."""

    host_process: bool | None = None


class SecurityContext(Part):
    """What a container may do to its node."""

    privileged: bool | None = None
    capabilities: Capabilities | None = None
    windows_options: WindowsOptions | None = None


class Resources(Trimmed):
    """Quantities of GPUs by resource name."""

    requests: FreeMap[Any] | None = None
    limits: FreeMap[Any] | None = None

    @classmethod
    def trimmed(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """Without what is no GPU."""
        found = {key: _gpus(some) if isinstance(some, Mapping) else some for key, some in kept.items()}
        return {key: some for key, some in found.items() if some}


class VolumeMount(Part):
    """Where a volume of the pod is mounted."""

    name: str = ""
    read_only: bool | None = None


class Container(Trimmed):
    """One container, of whatever sort."""

    name: str = ""
    image: str = ""
    env: list[EnvVar] | None = None
    env_from: list[EnvSource] | None = None
    security_context: SecurityContext | None = None
    resources: Resources | None = None
    volume_mounts: list[VolumeMount] | None = None

    @classmethod
    def trimmed(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """Without variables and quantities that no check asks about: they are most of a pod."""
        env = kept.get("env")
        if isinstance(env, list):
            kept = {**kept, "env": [one for one in env if not isinstance(one, Mapping) or _is_read(one.get("name"))]}
        return kept

    @property
    def wants_gpu(self) -> bool:
        """Whether it asks for a GPU."""
        resources = self.resources or Resources()
        return any(is_gpu(name) for name in (*(resources.requests or ()), *(resources.limits or ())))


class HostPath(Part):
    """A folder or file of the node."""

    path: str = ""


class InlineShare(Part):
    """A share that the pod itself names, without a volume of the cluster."""

    driver: str | None = None
    read_only: bool | None = None


class Volume(Part):
    """A volume of the pod; `nfs`, `azure_file` and `csi` are those without a PersistentVolume."""

    name: str = ""
    host_path: HostPath | None = None
    nfs: InlineShare | None = None
    azure_file: InlineShare | None = None
    csi: InlineShare | None = None


class PodSpec(Part):
    """What was asked for."""

    node_name: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = None
    security_context: SecurityContext | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Volume] | None = None


class PodCondition(Part):
    """One condition."""

    type: str = ""
    status: str = ""


class PodAddress(Part):
    """One of its addresses."""

    ip: str = ""


class PodStatus(Part):
    """What became of it."""

    phase: str | None = None
    pod_ips: list[PodAddress] | None = None
    conditions: list[PodCondition] | None = None


class Pod(Trimmed, KubernetesObject):
    """v1/pods."""

    TYPE: ClassVar[str] = "v1/pods"
    KIND: ClassVar[str] = "Pod"

    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @classmethod
    def trimmed(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """Without conditions but those of policy engines, and without volumes and mounts that are no node's or share's.

        Conditions change for ever, and every pod has volumes that tell nothing.
        """
        spec, status, metadata = kept.get("spec"), kept.get("status"), kept.get("metadata")
        is_agent = isinstance(metadata, Mapping) and metadata.get("namespace") in POLICY_ENGINES.values()
        if isinstance(status, Mapping) and not is_agent:
            kept = {**kept, "status": {key: value for key, value in status.items() if key != "conditions"}}
        return {**kept, "spec": _without_plain_volumes(spec)} if isinstance(spec, Mapping) else kept

    @property
    def has_ended(self) -> bool:
        """Whether none of its containers will run again."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def is_ready(self) -> bool:
        """Whether it says so."""
        return any(one.type == "Ready" and one.status == "True" for one in self.status.conditions or ())

    @property
    def on_host_network(self) -> bool:
        """Whether it has the node's network instead of its own."""
        return self.spec.host_network is True

    @property
    def containers(self) -> Iterator[Container]:
        """All of them: init and ephemeral ones can do what the others can."""
        for some in (self.spec.init_containers, self.spec.containers, self.spec.ephemeral_containers):
            yield from some or ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """Its own addresses."""
        return tuple(one.ip for one in self.status.pod_ips or () if one.ip)

    @property
    def workload(self) -> str:
        """The reference of what was written to have it: the thing to change. Its own where nobody made it.

        A ReplicaSet that bears its template's hash belongs to the Deployment of the name before it.
        """
        owner = self.metadata.controller
        if owner is None or owner.kind == "Node":
            return self.id
        version, kind, name = owner.api_version, owner.kind, owner.name
        template = self.labels.get("pod-template-hash", "")
        if kind == "ReplicaSet" and template and name.endswith(f"-{template}"):
            kind, name = "Deployment", name.removesuffix(f"-{template}")
        return f"{version}/{kind} {self.namespace}/{name}"

    @property
    def workload_name(self) -> str:
        """The bare name of the workload; of a static pod without its node's name."""
        owner = self.metadata.controller
        if owner is not None and owner.kind == "Node":
            return self.metadata.name.removesuffix(f"-{owner.name}")
        return self.workload.rpartition("/")[2]


def is_gpu(resource: str) -> bool:
    """Whether a resource name stands for a GPU or a slice of one."""
    return resource.startswith(("nvidia.com/gpu", "nvidia.com/mig-", "amd.com/gpu"))


def _is_read(name: Any) -> bool:
    if not isinstance(name, str):
        return True
    return name in VALUES_READ or name in HUB_KEYS or name.upper() in PROXIES or name.startswith("NIM_")


def _gpus(quantities: Mapping[str, Any]) -> dict[str, Any]:
    return {name: quantity for name, quantity in quantities.items() if is_gpu(str(name))}


def _without_plain_volumes(spec: Mapping[str, Any]) -> dict[str, Any]:
    volumes = spec.get("volumes")
    if not isinstance(volumes, list):
        volumes = []
    telling = [one for one in volumes if not isinstance(one, Mapping) or one.keys() - {"name"}]
    names = {one.get("name") for one in telling if isinstance(one, Mapping)}
    kept = {key: value for key, value in spec.items() if key != "volumes"} | ({"volumes": telling} if telling else {})
    for sort in ("containers", "initContainers", "ephemeralContainers"):
        if isinstance(spec.get(sort), list):
            kept[sort] = [_without_mounts(one, names) for one in spec[sort]]
    return kept


def _without_mounts(container: Any, names: set[Any]) -> Any:
    mounts = container.get("volumeMounts") if isinstance(container, Mapping) else None
    if not isinstance(mounts, list):
        return container
    telling = [one for one in mounts if not isinstance(one, Mapping) or one.get("name") in names]
    rest = {key: value for key, value in container.items() if key != "volumeMounts"}
    return {**rest, "volumeMounts": telling} if telling else rest

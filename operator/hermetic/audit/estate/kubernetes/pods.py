"""Pods: what they run, their privileges on the node, and the external addresses in their configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.environment import (
    EnvSource,
    EnvVar,
    addresses,
    is_kept,
    of_the_pod,
    without_known,
)
from hermetic.audit.estate.kubernetes.node_choice import Affinity, is_windows_only
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed, api_object
from hermetic.audit.estate.kubernetes.volumes import Volume, VolumeMount, without_plain_volumes
from hermetic.audit.estate.resource import Part

# DaemonSets that enforce policies, by the namespace in which AKS or their own installer runs them.
POLICY_ENGINES: Mapping[str, str] = {
    "cilium": "kube-system",
    "azure-npm": "kube-system",
    "calico-node": "calico-system",
}


class Capabilities(Part):
    """Added capabilities beyond the runtime's default; "ALL" is all."""

    add: list[str] | None = None


class WindowsOptions(Part):
    """On Windows a host process is what a privileged container is on Linux."""

    host_process: bool | None = None


class SecurityContext(Part):
    """Privileges of a container on its node."""

    privileged: bool | None = None
    proc_mount: str | None = None
    capabilities: Capabilities | None = None
    windows_options: WindowsOptions | None = None


class ContainerResources(Trimmed):
    """Quantities of GPUs by resource name, and the claims of devices."""

    requests: FreeMap[Any] | None = None
    limits: FreeMap[Any] | None = None
    claims: list[FreeMap[Any]] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep GPUs only."""
        gpus = {key: _gpus(some) if isinstance(some, Mapping) else some for key, some in fields.items()}
        return {key: some for key, some in gpus.items() if some}


class HostAction(Part):
    """The target of a kubelet request; without a host, the pod."""

    host: str | None = None


class Handler(Part):
    """A probe or a hook of a container."""

    http_get: HostAction | None = None
    tcp_socket: HostAction | None = None

    @property
    def host(self) -> str:
        """The host that the kubelet calls for it; "" for the pod."""
        hosts = (handler.host for handler in (self.http_get, self.tcp_socket) if handler is not None and handler.host)
        return next(hosts, "")


class Lifecycle(Part):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


class ContainerPort(Part):
    """`host_port` is a port of the node that leads to the container."""

    host_port: int | None = None


class Container(Trimmed):
    """One container of any type."""

    name: str = ""
    image: str = ""
    env: list[EnvVar] | None = None
    env_from: list[EnvSource] | None = None
    security_context: SecurityContext | None = None
    resources: ContainerResources | None = None
    volume_mounts: list[VolumeMount] | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    ports: list[ContainerPort] | None = None
    lifecycle: Lifecycle | None = None
    liveness_probe: Handler | None = None
    readiness_probe: Handler | None = None
    startup_probe: Handler | None = None
    restart_policy: str | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop variables, arguments and quantities that no check reads: they are most of a pod."""
        env = fields.get("env")
        own = of_the_pod(env) if isinstance(env, list) else frozenset()
        if isinstance(env, list):
            some = (without_known(variable, own) if isinstance(variable, Mapping) else variable for variable in env)
            fields = {
                **fields,
                "env": [variable for variable in some if not isinstance(variable, Mapping) or is_kept(variable)],
            }
        for field in ("command", "args"):
            if isinstance(fields.get(field), list):
                hosts = [host for word in fields[field] for host in addresses(str(word), own)]
                fields = {**fields, field: list(dict.fromkeys(hosts))}
        empty = ("command", "args", "ports", *_HANDLERS)
        return {key: value for key, value in fields.items() if key not in empty or _says_something(value)}

    @property
    def called_by_the_kubelet(self) -> Iterator[str]:
        """Hosts that its probes and hooks name."""
        hooks = self.lifecycle or Lifecycle()
        handlers = (self.liveness_probe, self.readiness_probe, self.startup_probe, hooks.post_start, hooks.pre_stop)
        yield from (handler.host for handler in handlers if handler is not None and handler.host)

    @property
    def wants_gpu(self) -> bool:
        """Whether it requests a GPU, or claims a device, which may be one (dynamic resource allocation)."""
        resources = self.resources or ContainerResources()
        return bool(resources.claims) or any(
            is_gpu(name) for name in (*(resources.requests or ()), *(resources.limits or ()))
        )


class DnsConfig(Part):
    nameservers: list[str] | None = None


class HostAlias(Part):
    """Host names that the pod maps to an address."""

    ip: str = ""
    hostnames: list[str] | None = None


class PodSpec(Part):
    node_name: str | None = None
    service_account_name: str | None = None
    host_network: bool | None = None
    host_pid: bool | None = None
    host_ipc: bool | None = None
    node_selector: FreeMap[Any] | None = None
    affinity: Affinity | None = None
    dns_config: DnsConfig | None = None
    host_aliases: list[HostAlias] | None = None
    security_context: SecurityContext | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    ephemeral_containers: list[Container] | None = None
    volumes: list[Volume] | None = None

    @property
    def is_windows_only(self) -> bool:
        """Whether its pods can run on nodes of Windows and no other."""
        return is_windows_only(self.node_selector, self.affinity)


class PodCondition(Part):
    type: str = ""
    status: str = ""


class PodAddress(Part):
    ip: str = ""


class PodStatus(Part):
    phase: str | None = None
    pod_ips: list[PodAddress] | None = None
    conditions: list[PodCondition] | None = None


@api_object("v1/pods", "Pod")
class Pod(Trimmed, KubernetesObject):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep conditions of policy engines only, and only volumes and mounts that a check reads.

        Conditions change constantly, and most volumes do not matter to a check. The nodes that it may run on are read
        of templates: a pod shows its node.
        """
        spec, status, metadata = fields.get("spec"), fields.get("status"), fields.get("metadata")
        is_agent = isinstance(metadata, Mapping) and metadata.get("namespace") in POLICY_ENGINES.values()
        if isinstance(status, Mapping) and not is_agent:
            fields = {**fields, "status": {key: value for key, value in status.items() if key != "conditions"}}
        return (
            {**fields, "spec": without_node_choice(without_plain_volumes(spec))}
            if isinstance(spec, Mapping)
            else fields
        )

    @property
    def has_ended(self) -> bool:
        """Whether its phase is final: none of its containers will run again."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def is_ready(self) -> bool:
        """Whether its condition Ready is True."""
        return any(
            condition.type == "Ready" and condition.status == "True" for condition in self.status.conditions or ()
        )

    @property
    def on_host_network(self) -> bool:
        """Whether it uses the node's network."""
        return self.spec.host_network is True

    @property
    def containers(self) -> Iterator[Container]:
        """All containers: init and ephemeral ones have the same capabilities as the others."""
        for some in (self.spec.init_containers, self.spec.containers, self.spec.ephemeral_containers):
            yield from some or ()

    @property
    def servers(self) -> Iterator[Container]:
        """Its containers that run side by side: all but the init containers that end before the others start."""
        yield from (container for container in self.spec.init_containers or () if container.restart_policy == "Always")
        yield from self.spec.containers or ()
        yield from self.spec.ephemeral_containers or ()

    @property
    def wants_gpu(self) -> bool:
        """Whether one of its containers requests a GPU."""
        return any(container.wants_gpu for container in self.containers)

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(pod_ip.ip for pod_ip in self.status.pod_ips or () if pod_ip.ip)

    @property
    def workload(self) -> str:
        """The reference of the object to change: its controller, or itself without one.

        A ReplicaSet with its template's hash in its name belongs to the Deployment of the name before it.
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
        """The name of the workload; of a static pod without its node's name."""
        owner = self.metadata.controller
        if owner is not None and owner.kind == "Node":
            return self.metadata.name.removesuffix(f"-{owner.name}")
        return self.workload.rpartition("/")[2]


def without_node_choice(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without the fields that choose its node."""
    return {key: value for key, value in spec.items() if key not in {"nodeSelector", "affinity"}}


def is_gpu(resource: str) -> bool:
    """Whether a resource name is that of a GPU or a slice of one."""
    return resource.startswith(("nvidia.com/gpu", "nvidia.com/mig-", "amd.com/"))


_HANDLERS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


def _says_something(value: Any) -> bool:
    """Whether it has any value: most probes call the pod itself, and most ports are the pod's own."""
    if isinstance(value, Mapping):
        return any(_says_something(item) for item in value.values())
    if isinstance(value, list):
        return any(_says_something(item) for item in value)
    return value is not None and value != ""


def _gpus(quantities: Mapping[str, Any]) -> dict[str, Any]:
    return {name: quantity for name, quantity in quantities.items() if is_gpu(str(name))}

"""The serving pod: restricted in every field, offline, with startup and drain budgets."""

from __future__ import annotations

from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.quantities import add_memory
from hermetic.engines.launch import InitContainer, Launch
from hermetic.objects.names import Owner, labels, selector
from hermetic.objects.volumes import Mounted, mounted_volumes

STARTUP_PERIOD_SECONDS = 5
REQUESTED_MEMORY = "16Gi"
ENGINE = "engine"
"""The one container that every pod has."""


def pod_template(owner: Owner, spec: ModelDeploymentSpec, launch: Launch) -> dict[str, Any]:
    """The pod template of a model. It depends on the spec alone: an upgrade of Hermetic restarts no pod."""
    mounted = mounted_volumes(owner, spec, launch)
    return {
        "metadata": {"labels": labels(owner, launch.engine)},
        "spec": {
            "serviceAccountName": owner.name,
            "automountServiceAccountToken": False,
            # A Service called 'vllm' would otherwise put VLLM_PORT=tcp://... into the engine's environment.
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": launch.user,
                "runAsGroup": launch.group,
                **_reader_groups(spec),
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "terminationGracePeriodSeconds": launch.grace_seconds,
            **_placement(owner, spec),
            **_init_containers(spec, launch, mounted),
            "containers": [_engine(spec, launch, mounted)],
            "volumes": [item.volume for item in mounted],
        },
    }


def _reader_groups(spec: ModelDeploymentSpec) -> dict[str, Any]:
    # No fsGroup: the kubelet would change the group of every file of a volume, which is mounted read-only here.
    groups = spec.weights.supplemental_groups
    return {"supplementalGroups": list(groups)} if groups else {}


def _engine(spec: ModelDeploymentSpec, launch: Launch, mounted: tuple[Mounted, ...]) -> dict[str, Any]:
    command = {"command": list(launch.command)} if launch.command else {}
    args = [f"{flag}=$({variable})" for flag, variable in launch.args_from_env] + [verbatim(w) for w in launch.args]
    arguments = {"args": args} if args else {}
    return {
        "name": ENGINE,
        "image": launch.image,
        "imagePullPolicy": "IfNotPresent",
        **command,
        **arguments,
        "env": [_literal(variable) for variable in launch.env],
        "ports": [{"name": "http", "containerPort": spec.endpoint.port, "protocol": "TCP"}],
        "resources": _resources(spec, launch),
        "securityContext": _locked(read_only_root=launch.read_only_root),
        **_probes(spec, launch),
        # Endpoints must have dropped the pod before the engine receives SIGTERM.
        "lifecycle": {"preStop": {"sleep": {"seconds": launch.sleep_before_stop_seconds}}},
        # The engine's first errors are the diagnosis (engines/launch.py); without any, the end of its log.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for item in mounted for mount in item.mounts],
    }


def verbatim(text: str) -> str:
    """The text, escaped for the kubelet, which would replace '$(NAME)' by a variable and '$$' by '$'.

    Otherwise a variable could add a flag or a path that no gate has checked.
    """
    return text.replace("$", "$$")


def _literal(variable: dict[str, Any]) -> dict[str, Any]:
    return {**variable, "value": verbatim(variable["value"])} if "value" in variable else variable


def _locked(*, read_only_root: bool) -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": read_only_root,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def requested_memory(spec: ModelDeploymentSpec) -> str:
    """The memory request of the engine's container, a quantity: the key-value cache in the node's memory is added."""
    memory, offload = spec.resources.memory or REQUESTED_MEMORY, spec.kv_cache_offload
    return memory if offload is None else add_memory(memory, offload.memory)


def _resources(spec: ModelDeploymentSpec, launch: Launch) -> dict[str, Any]:
    resources, devices = spec.resources, _devices(spec) | {name: str(count) for name, count in launch.devices}
    limits = dict(devices)
    if resources.memory is not None:
        limits["memory"] = requested_memory(spec)
    limits |= _policy_limits(spec)
    return {
        "requests": {
            "cpu": resources.cpu,
            "memory": requested_memory(spec),
            "ephemeral-storage": resources.scratch,
            **devices,
        },
        # No CPU limit unless asked for: start-up is bound by CPU. Nor one of memory: the page cache that reads ahead
        # from NFS is charged to the pod, and a limit below the weights' size switches that off.
        "limits": limits,
    }


def _devices(spec: ModelDeploymentSpec) -> dict[str, str]:
    return {spec.accelerator.resource: str(spec.accelerator.count)}


def _requests(spec: ModelDeploymentSpec, container: InitContainer) -> dict[str, str]:
    """Requests of an init container, none above those of the engine: without one, a limit would be the request."""
    limited = spec.resources.ephemeral_storage_limit is not None
    disk = {"ephemeral-storage": spec.resources.scratch} if limited else {}
    return {"cpu": container.cpu, "memory": container.memory, **disk}


def _policy_limits(spec: ModelDeploymentSpec) -> dict[str, str]:
    """Limits that every container has where the spec names them: policies look at init containers too."""
    resources = spec.resources
    limits = {"cpu": resources.cpu_limit, "ephemeral-storage": resources.ephemeral_storage_limit}
    return {resource: limit for resource, limit in limits.items() if limit is not None}


def _probes(spec: ModelDeploymentSpec, launch: Launch) -> dict[str, Any]:
    scheme = "HTTPS" if spec.endpoint.tls is not None else "HTTP"

    def get(path: str) -> dict[str, Any]:
        return {"httpGet": {"path": path, "port": "http", "scheme": scheme}, "timeoutSeconds": 5}

    attempts = -(-spec.startup_budget_seconds // STARTUP_PERIOD_SECONDS)
    return {
        "startupProbe": {
            **get(launch.ready_path),
            "periodSeconds": STARTUP_PERIOD_SECONDS,
            "failureThreshold": attempts,
        },
        "readinessProbe": {**get(launch.ready_path), "periodSeconds": 5, "failureThreshold": 2},
        # The process that answers the probe can stall under load for longer than one period.
        "livenessProbe": {**get(launch.live_path), "periodSeconds": 15, "failureThreshold": 4},
    }


def _init_containers(spec: ModelDeploymentSpec, launch: Launch, mounted: tuple[Mounted, ...]) -> dict[str, Any]:
    containers = [_init_container(spec, container, mounted) for container in launch.init_containers]
    return {"initContainers": containers} if containers else {}


def _init_container(
    spec: ModelDeploymentSpec, init_container: InitContainer, mounted: tuple[Mounted, ...]
) -> dict[str, Any]:
    command_line = {"command": init_container.command, "args": init_container.args}
    memory = {"memory": init_container.memory_limit} if init_container.memory_limit is not None else {}
    devices = _devices(spec) if init_container.has_accelerators else {}
    requests = {**_requests(spec, init_container), **devices}
    limits = {**devices, **memory, **_policy_limits(spec)}
    return {
        "name": init_container.name,
        "image": init_container.image,
        "imagePullPolicy": "IfNotPresent",
        **{name: [verbatim(word) for word in tokens] for name, tokens in command_line.items() if tokens},
        "resources": {"requests": requests, **({"limits": limits} if limits else {})},
        "securityContext": _locked(read_only_root=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount for item in mounted for mount in item.mounts if mount["name"] in init_container.mounts],
    }


def _placement(owner: Owner, spec: ModelDeploymentSpec) -> dict[str, Any]:
    placement: dict[str, Any] = {
        "tolerations": [
            toleration.model_dump(by_alias=True, exclude_none=True) for toleration in spec.accelerator.tolerations
        ],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector(owner)},
            }
        ],
    }
    if spec.scheduling is not None:
        name, labels_of_nodes = spec.scheduling.priority_class_name, spec.scheduling.node_selector
        placement |= {"priorityClassName": name} if name is not None else {}
        placement |= {"nodeSelector": dict(labels_of_nodes)} if labels_of_nodes else {}
    if spec.accelerator.instance_types:
        placement["affinity"] = {"nodeAffinity": _on_instance_types(spec.accelerator.instance_types)}
    return placement


def _on_instance_types(types: list[str]) -> dict[str, Any]:
    sizes = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [sizes]}]}}

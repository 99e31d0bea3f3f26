"""What the platform team itself installs: GPU agents, Flux, model servers. Images come from its own registry."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from testbed.textbook.aks import LOCAL_DNS, Plane
from testbed.textbook.kinds import FLUX, GPU_OPERATOR, definitions
from testbed.textbook.objects import (
    Machine,
    Manifest,
    Part,
    agent,
    an_object,
    controller,
    default_deny,
    namespace,
    service,
)

REGISTRY = "acrinference.azurecr.io"
INFERENCE = "inference"
MODEL = {"app.kubernetes.io/name": "llama-3-1-8b"}
PRIVATE_ENDPOINTS = "10.40.8.0/26"


def image(name: str) -> str:
    """An image of the team's own registry, by digest."""
    return f"{REGISTRY}/{name}@sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def device_plugin(plane: Plane) -> list[Manifest]:
    """learn.microsoft.com/azure/aks/use-nvidia-gpu, "Manually install the NVIDIA device plugin": the manifest there.

    The image nvcr.io/nvidia/k8s-device-plugin is mirrored, for the nodes reach no registry outside.
    """
    part = Part(
        image("nvidia/k8s-device-plugin"),
        "default",
        {"name": "nvidia-device-plugin-ds"},
        folders=("/var/lib/kubelet/device-plugins",),
        env={"FAIL_ON_INIT_ERROR": "false"},
    )
    space = "gpu-resources"
    return [namespace(space), default_deny(space), *agent("nvidia-device-plugin-daemonset", space, part, plane.gpus)]


_DRIVER, _VALIDATIONS, _VALIDATOR = "/run/nvidia", "/run/nvidia/validations", image("nvidia/gpu-operator")
# rights and folders of the operator's own assets: github.com/NVIDIA/gpu-operator at a22dbf6, assets/state-*
_GPU_AGENTS = {
    "nvidia-driver-daemonset": Part(
        image("nvidia/driver"),
        "nvidia-driver",
        host_pid=True,
        privileged=True,
        folders=(_DRIVER, "/", "/sys", "/var/log", "/dev/log", "/etc/os-release", "/run/nvidia-fabricmanager"),
        first=(image("nvidia/k8s-driver-manager"),),
    ),
    "nvidia-container-toolkit-daemonset": Part(
        image("nvidia/container-toolkit"),
        "nvidia-container-toolkit",
        host_pid=True,
        privileged=True,
        folders=("/run/nvidia/toolkit", _VALIDATIONS, "/", "/usr/local/nvidia", "/var/run/cdi", "/run/containerd"),
        first=(_VALIDATOR,),
    ),
    "nvidia-device-plugin-daemonset": Part(
        image("nvidia/k8s-device-plugin"),
        "nvidia-device-plugin",
        privileged=True,
        folders=("/var/lib/kubelet/device-plugins", _VALIDATIONS, _DRIVER, "/", "/var/run/cdi"),
        first=(_VALIDATOR,),
    ),
    "nvidia-dcgm-exporter": Part(
        image("nvidia/dcgm-exporter"),
        "nvidia-dcgm-exporter",
        capabilities=("SYS_ADMIN",),
        folders=("/var/lib/kubelet/pod-resources", _VALIDATIONS),
        first=(_VALIDATOR,),
    ),
    "gpu-feature-discovery": Part(
        image("nvidia/k8s-device-plugin"),
        "nvidia-gpu-feature-discovery",
        privileged=True,
        folders=("/etc/kubernetes/node-feature-discovery/features.d", _VALIDATIONS, "/sys"),
        first=(_VALIDATOR,),
    ),
    "nvidia-mig-manager": Part(
        image("nvidia/k8s-mig-manager"),
        "nvidia-mig-manager",
        host_pid=True,
        privileged=True,
        folders=("/sys", "/", "/run/nvidia/driver"),
        first=(_VALIDATOR,),
    ),
    "nvidia-operator-validator": Part(
        _VALIDATOR,
        "nvidia-operator-validator",
        privileged=True,
        folders=(_VALIDATIONS, _DRIVER, "/", "/dev/char"),
        first=(_VALIDATOR, _VALIDATOR),
    ),
}


def gpu_operator(plane: Plane) -> list[Manifest]:
    """NVIDIA's GPU Operator (learn.microsoft.com/azure/aks/nvidia-gpu-operator), images from the team's registry."""
    space = "gpu-operator"
    manifests = [namespace(space, **{"pod-security.kubernetes.io/enforce": "privileged"}), default_deny(space)]
    for name, part in _GPU_AGENTS.items():
        manifests += agent(name, space, replace(part, labels={"app": name}), plane.gpus)
    # Of a driver compiled for a kernel (controllers/object_controls.go), and without a pod until a node asks for MPS.
    driver, plug_in = _GPU_AGENTS["nvidia-driver-daemonset"], _GPU_AGENTS["nvidia-device-plugin-daemonset"]
    mps, kernel = "nvidia-device-plugin-mps-control-daemon", "nvidia-driver-daemonset-6.8.0-1021-azure-ubuntu22.04"
    manifests += agent(kernel, space, replace(driver, labels={"app": kernel}), ())
    manifests += agent(mps, space, replace(plug_in, host_pid=True, labels={"app": mps}), ())
    worker = Part(
        image("nfd/node-feature-discovery"),
        "node-feature-discovery",
        {"app.kubernetes.io/name": "node-feature-discovery", "role": "worker"},
        folders=("/sys", "/boot", "/usr/lib", "/lib", "/proc/swaps"),
    )
    keeper = Part(image("nvidia/gpu-operator"), "gpu-operator", {"app": "gpu-operator"}, folders=("/etc/os-release",))
    discovery = Part(image("nfd/node-feature-discovery"), "node-feature-discovery", {"role": "master"})
    return [
        *manifests,
        *definitions(GPU_OPERATOR),
        *agent("gpu-operator-node-feature-discovery-worker", space, worker, plane.machines),
        *controller("gpu-operator", space, keeper, plane.system[:1]),
        *controller("gpu-operator-node-feature-discovery-master", space, discovery, plane.system[:1]),
        egress_to_api_server(space, plane),
    ]


def egress_to_api_server(space: str, plane: Plane) -> Manifest:
    """The API server's one address and the cluster's own names; nothing else."""
    rules = [
        {"to": [{"ipBlock": {"cidr": f"{plane.api_server}/32"}}], "ports": [{"protocol": "TCP", "port": 443}]},
        *_names_rules(),
    ]
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}
    return an_object("networking.k8s.io/v1", "NetworkPolicy", "to-api-server", space, spec=spec)


def _names_rules() -> list[Manifest]:
    """Cluster DNS, and where LocalDNS is on the node's own resolver."""
    system = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    dns = {**system, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    ports = [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]
    return [{"to": [dns], "ports": ports}]


def flux(plane: Plane) -> list[Manifest]:
    """`flux install --registry=... --network-policy=false` (fluxcd.io/flux/installation/configuration/air-gapped), and
    a policy of the team's own: the one that Flux ships lets every pod out everywhere.

    Sources are OCI artifacts in the team's registry, behind its private endpoint.
    """
    space = "flux-system"
    manifests = [namespace(space, **{"app.kubernetes.io/part-of": "flux"}), default_deny(space)]
    for name in ("source-controller", "kustomize-controller", "helm-controller", "notification-controller"):
        part = Part(image(f"fluxcd/{name}"), name, {"app": name})
        manifests += controller(name, space, part, plane.system[:1])
    rules = [
        {"to": [{"ipBlock": {"cidr": PRIVATE_ENDPOINTS}}], "ports": [{"protocol": "TCP", "port": 443}]},
        {"to": [{"podSelector": {}}]},
    ]
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}
    return [
        *manifests,
        *definitions(FLUX),
        service("source-controller", space, {"app": "source-controller"}, 80),
        egress_to_api_server(space, plane),
        an_object("networking.k8s.io/v1", "NetworkPolicy", "to-registry", space, spec=spec),
    ]


def model_servers(plane: Plane, *, local_dns: bool = False) -> list[Manifest]:
    """A namespace with a model server on each GPU node; its weights are in its image."""
    part = Part(
        image("models/llama-3-1-8b"),
        "llama-3-1-8b",
        MODEL,
        env={"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"},
        limits={"nvidia.com/gpu": "1"},
    )
    return [
        namespace(INFERENCE),
        default_deny(INFERENCE),
        *controller("llama-3-1-8b", INFERENCE, part, plane.gpus[:2]),
        service("llama-3-1-8b", INFERENCE, MODEL, 443),
        _internal_balancer(plane.gpus),
        _dns_policy(local_dns=local_dns),
    ]


def _internal_balancer(machines: tuple[Machine, ...]) -> Manifest:
    """A Service on an internal load balancer; AKS makes `kubernetes-internal` for it."""
    assert machines, "model servers need a GPU node"
    spec = {
        "type": "LoadBalancer",
        "selector": MODEL,
        "ports": [{"port": 443, "nodePort": 31443}],
        "externalTrafficPolicy": "Cluster",
    }
    return an_object(
        "v1",
        "Service",
        "llama-3-1-8b-internal",
        INFERENCE,
        annotations={"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
        spec=spec,
        status={"loadBalancer": {"ingress": [{"ip": "10.40.12.10"}]}},
    )


def _dns_policy(*, local_dns: bool) -> Manifest:
    rules = _names_rules()
    if local_dns:
        blocks = [{"ipBlock": {"cidr": f"{address}/32"}} for address in LOCAL_DNS]
        rules.append({"to": blocks, "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]})
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": rules}
    return an_object("networking.k8s.io/v1", "NetworkPolicy", "to-names", INFERENCE, spec=spec)

"""What pods may do to their node, and where they are configured to go."""

from __future__ import annotations

from collections.abc import Callable

from testbed.kubernetes_plants.pieces import (
    closed_namespace,
    container,
    gpu_container,
    host_path,
    image,
    manifest,
    node,
    put,
    put_pod,
    variable,
)
from testbed.kubernetes_plants.plant import Manifest, Manifests, plant
from testbed.kubernetes_plants.services import machine_with_external_address

STANDARDS = "Kubernetes: Pod Security Standards"
MICROSOFT = "mcr.microsoft.com"


@plant("k8s-hostnetwork", "high", "AKS: Azure CNI powered by Cilium, limitations")
def pod_on_the_host_network(manifests: Manifests) -> str:
    """A pod has its node's network: no policy applies to it."""
    return put_pod(manifests, spec={"hostNetwork": True})


def _rights(name: str, title: str, made: Callable[[Manifests], str], source: str = STANDARDS) -> None:
    made.__doc__ = title
    plant("k8s-privileged", "high", source, name=name)(made)


def _with_context(context: Manifest) -> Callable[[Manifests], str]:
    return lambda manifests: put_pod(manifests, of=container(manifests, securityContext=context))


def _with_folder(path: str) -> Callable[[Manifests], str]:
    return lambda manifests: put_pod(manifests, spec=host_path(path))


_rights("privileged_container", "A privileged container.", _with_context({"privileged": True}))
for _name in ("NET_ADMIN", "CAP_NET_RAW", "SYS_ADMIN", "SYS_PTRACE", "BPF", "ALL"):
    _rights(
        f"capability_{_name.lower()}", f"A container with {_name}.", _with_context({"capabilities": {"add": [_name]}})
    )
_rights("host_processes", "A pod in its node's process space.", lambda some: put_pod(some, spec={"hostPID": True}))
for _name, _path in {
    "root": "/",
    "network_configuration": "/etc/cni/net.d",
    "container_runtime": "/run/containerd",
    "container_runtime_by_its_old_name": "/var/run/containerd/containerd.sock",
    "kernel": "/sys/kernel",
    "kubelet": "/var/lib/kubelet/pki",
    "settings": "/etc",
    "home_of_root": "/root",
    "homes": "/home/azureuser/.ssh",
    "programs": "/usr/local/bin",
    "agents": "/var/lib/waagent",
    "devices": "/dev/mem",
    "spelt_otherwise": "//etc/./kubernetes/",
    "cron": "/var/spool/cron",
    "windows": r"C:\k",
}.items():
    _rights(f"folder_of_the_node_{_name}", f"A pod mounts the node's {_path}.", _with_folder(_path))


@plant("k8s-privileged", "high", STANDARDS)
def privileged_init_container(manifests: Manifests) -> str:
    """A container that runs before the others is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    return put_pod(manifests, spec={"initContainers": [{**of, "name": "prepare"}]})


@plant("k8s-privileged", "high", "Kubernetes: Ephemeral containers")
def privileged_debug_container(manifests: Manifests) -> str:
    """A container that was added for debugging is privileged."""
    of = container(manifests, securityContext={"privileged": True})
    return put_pod(manifests, spec={"ephemeralContainers": [{**of, "name": "debug"}]})


def _like_the_platforms(manifests: Manifests, namespace: str, reference: str) -> str:
    """A pod with the name, the owner, the labels and the rights of the platform's own proxy."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "kube-proxy", "uid": "u", "controller": True}
    of = container(manifests, image=reference, securityContext={"privileged": True}, command=["sh", "-c", "sleep 9"])
    spec = {"nodeName": node(manifests)["metadata"]["name"], "serviceAccountName": "kube-proxy", "containers": [of]}
    metadata = {"ownerReferences": [owner], "labels": {"component": "kube-proxy", "tier": "node"}}
    made = manifest("v1", "Pod", "kube-proxy-x2b4c", namespace, spec=spec, status={"phase": "Running"}, **metadata)
    put(manifests, made)
    return f"apps/v1/DaemonSet {namespace}/kube-proxy"


@plant("k8s-privileged", "high", "Kubernetes: Owners and Dependents; ClusterRole edit")
def platform_part_in_a_tenants_namespace(manifests: Manifests) -> str:
    """A tenant's pod has names, labels, owner and image of a part of the platform; only the namespace is its own."""
    return _like_the_platforms(manifests, closed_namespace(manifests), f"{MICROSOFT}/oss/v2/kubernetes/kube-proxy:v1")


@plant("k8s-privileged", "high", "AKS: network isolated clusters", also=("k8s-default-deny-egress",))
def platform_part_with_an_image_of_our_own(manifests: Manifests) -> str:
    """In kube-system a pod has the name and the owner of a part of the platform, and an image of our own."""
    return _like_the_platforms(manifests, "kube-system", image(manifests))


@plant("k8s-privileged", "high", "AKS: use-nvidia-gpu")
def device_plug_in_that_no_policy_names(manifests: Manifests) -> str:
    """A device plug-in mounts the kubelet's folder, and no policy names it."""
    path = "/var/lib/kubelet/device-plugins"
    return put_pod(manifests, of=container(manifests, name="nvidia-device-plugin-ctr"), spec=host_path(path))


@plant("k8s-proxy-env", "high", "AKS: HTTP proxy support")
def proxy_in_lower_case(manifests: Manifests) -> str:
    """A pod is configured with a proxy, in lower case."""
    return put_pod(manifests, of=container(manifests, env=[variable("https_proxy", "http://10.9.9.9:3128")]))


@plant("k8s-image-origin", "medium", "AKS: Network isolated clusters")
def image_from_outside(manifests: Manifests) -> str:
    """A pod runs an image of a public registry."""
    return put_pod(manifests, of=container(manifests, image="docker.io/library/busybox:1"))


@plant("k8s-hf-offline", "medium", "Hugging Face Hub: environment variables")
def key_to_a_model_hub(manifests: Manifests) -> str:
    """A model server holds a key to a model hub."""
    return put_pod(manifests, of=gpu_container(manifests, variable("HF_TOKEN", "hf_x")))


@plant("k8s-hf-offline", "medium", "Hugging Face Hub: environment variables")
def offline_switched_off(manifests: Manifests) -> str:
    """A model server is set to ask the hub."""
    of = gpu_container(manifests)
    return put_pod(manifests, of={**of, "env": [variable("HF_HUB_OFFLINE", "0"), of["env"][1]]})


@plant("k8s-static-egress", "critical", "AKS: Configure Static Egress Gateway")
def pod_annotated_for_the_static_gateway(manifests: Manifests) -> str:
    """A pod asks to leave by the static egress gateway."""
    return put_pod(manifests, annotations={"kubernetes.azure.com/static-gateway-configuration": "out"})


@plant("k8s-svc-egress-gateway", "critical", "cloud-provider-azure: service gateway")
def pod_labelled_for_the_service_gateway(manifests: Manifests) -> str:
    """A pod's traffic goes through the service gateway's NAT."""
    return put_pod(manifests, labels={"kubernetes.azure.com/service-egress-gateway": "out"})


@plant("weights-share-writable", "medium", "azurefile-csi-driver: driver parameters")
def share_that_a_pod_can_write_to(manifests: Manifests) -> str:
    """A pod mounts a share it can leave data on."""
    mounts = [{"name": "share", "mountPath": "/share"}]
    share = {"name": "share", "csi": {"driver": "file.csi.azure.com"}}
    return put_pod(manifests, of=container(manifests, volumeMounts=mounts), spec={"volumes": [share]})


_rights("host_ipc", "A pod in its node's IPC space.", lambda some: put_pod(some, spec={"hostIPC": True}))
_rights("unmasked_proc", "A container sees all of /proc.", _with_context({"procMount": "Unmasked"}))
_rights(
    "capability_dac_read_search",
    "A container may open any file of the node by its handle.",
    _with_context({"capabilities": {"add": ["DAC_READ_SEARCH"]}}),
    "capabilities(7)",
)


@plant("k8s-image-origin", "medium", "Kubernetes: Image volumes")
def files_of_an_image_from_outside(manifests: Manifests) -> str:
    """A volume is made of an image of a public registry."""
    return put_pod(manifests, spec={"volumes": [{"name": "model", "image": {"reference": "quay.io/models/llama:1"}}]})


@plant("k8s-proxy-env", "high", "npm: config, proxy")
def proxy_of_one_tool(manifests: Manifests) -> str:
    """A tool is configured with a proxy by a name of its own."""
    return put_pod(manifests, of=container(manifests, env=[variable("npm_config_https_proxy", "http://10.9.9.9:3128")]))


@plant("k8s-nodeport", "medium", "Kubernetes: hostPort", also=("k8s-node-externalip",))
def host_port_on_a_public_machine(manifests: Manifests) -> str:
    """A host port is open on a machine with an external address."""
    machine_with_external_address(manifests)
    return put_pod(manifests, of=container(manifests, ports=[{"containerPort": 80, "hostPort": 80}]))

"""Pods in their node's network, or with rights on the node that can undo its restrictions."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import CONTAINERS, VOLUMES, Place
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.workloads import belongs_on_the_host_network, pods_and_templates, trust_of
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.host_paths import gives_the_node_away
from hermetic.audit.estate.kubernetes.platform import is_probe, may_control_its_node
from hermetic.audit.estate.kubernetes.pods import Container, Pod, SecurityContext
from hermetic.audit.evaluation.each_object import each_pod
from hermetic.audit.evaluation.results import CheckResult, fails
from hermetic.audit.model import hops
from hermetic.audit.model.hops import NODE, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.policy.node_agents import is_trusted, other_images, with_entries
from hermetic.errors import FactDamaged

# Capabilities over the network of the node, or over all of it.
CAPABILITIES = frozenset(
    {
        "ALL",
        "BPF",
        "DAC_READ_SEARCH",
        "MAC_ADMIN",
        "MAC_OVERRIDE",
        "NET_ADMIN",
        "NET_RAW",
        "PERFMON",
        "SYS_ADMIN",
        "SYS_BOOT",
        "SYS_MODULE",
        "SYS_PTRACE",
        "SYS_RAWIO",
    }
)

_TAKE_IT_OUT = "Take hostNetwork out of the pod template of the workload."
_NO_RIGHTS = """Take the right that the finding names out of the pod template; label the namespace
pod-security.kubernetes.io/enforce=restricted so that it stays out.
"""

# What Istio's webhook adds to a pod to redirect its traffic, unless the network plug-in of the mesh does that.
_INJECTED = "istio-init"
_MESH_IMAGES_OF_AKS = ("mcr.microsoft.com/oss/istio/", "mcr.microsoft.com/oss/v2/istio/")
# learn.microsoft.com/azure/aks/istio-cni: revision asm-1-25 or later, no Ubuntu 20.04; existing pods keep istio-init.
_BY_PLUG_IN_OF_AKS = """The service mesh add-on of AKS put the container istio-init into these pods. With its network
plug-in (Istio CNI, revision asm-1-25 or later) they need no such right. Until it is generally available in your region
it is a preview: it needs the az extension aks-preview and the feature IstioCNIPreview.
az aks mesh enable-istio-cni --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --name CLUSTER_NAME
"""
_BY_PLUG_IN = """Istio put the container istio-init into these pods. With its network plug-in (Istio CNI) they need no
such right: install it (istio.io: Install the Istio CNI node agent), and name its DaemonSet under `trustedNodeAgents`.
"""
_MAKE_PODS_AGAIN = """Make the pods again: those that run keep the container.
kubectl --namespace NAMESPACE rollout restart KIND/NAME
"""


@check_each("k8s-hostnetwork", each_pod("NoHostNetwork", "only the platform's own have their node's network"))
def k8s_hostnetwork(estate: Estate, policy: Policy, pod: Pod) -> Iterator[CheckResult]:
    """Cilium's policies and the restriction of instance metadata do not apply to the host network."""
    if not pod.on_host_network or is_probe(pod, policy.hermetic_namespaces):
        return
    if belongs_on_the_host_network(estate, policy, pod):
        return
    yield fails(
        pod.workload,
        "HostNetwork",
        "its pods have their node's network: no network policy applies to them",
        pod,
        paths=(path_of(hops.kubernetes(pod.workload), NODE, hops.node("everything that the node can reach")),),
        remedy=with_entries(_TAKE_IT_OUT, pod, policy, host_network=True),
        blames=(("spec", "hostNetwork"),),
    )


@check_each(
    "k8s-privileged",
    each_pod("NoRightsOverNode", "only the platform's own and named agents have rights over their node"),
)
def k8s_privileged(estate: Estate, policy: Policy, pod: Pod) -> Iterator[CheckResult]:
    """A pod with rights on its node can undo the rules that restrict it."""
    trust = trust_of(estate, policy)
    if may_control_its_node(pod, trust):
        return
    why = sorted(set(_rights(pod)))
    if why and not is_trusted(pod, policy.trusted_node_agents):
        message = f"its pods have {', '.join(why)}{_not_the_trusted_image(pod, policy)}"
        remedy = _remedy(estate, policy, pod)
        yield fails(pod.workload, "RightsOverNode", message, pod, remedy=remedy, blames=_places(pod))


def _remedy(estate: Estate, policy: Policy, pod: Pod) -> str:
    injected = [container for container in pod.spec.init_containers or () if container.name == _INJECTED]
    if injected and set(_rights(pod)) == {right for container in injected for right in _rights_of(container)}:
        of_aks = all(container.image.startswith(_MESH_IMAGES_OF_AKS) for container in injected)
        again = _MAKE_PODS_AGAIN if pod.metadata.controller is not None else "Then make the pod again."
        return f"{_BY_PLUG_IN_OF_AKS if of_aks else _BY_PLUG_IN}{again}"
    images = _images_of_agents(estate, policy, pod.namespace)
    return with_entries(_NO_RIGHTS, pod, policy, host_network=pod.on_host_network, images_beside=images)


@derived
def _images_of_agents(estate: Estate, policy: Policy, namespace: str) -> frozenset[str]:
    """The images of the DaemonSets of a namespace that have rights over their node, and not its network."""
    pods = (pod for pod in pods_and_templates(estate) if pod.namespace == namespace and _is_agent(pod))
    trust = trust_of(estate, policy)
    return frozenset(
        container.image for pod in pods if not may_control_its_node(pod, trust) for container in pod.containers
    )


def _is_agent(pod: Pod) -> bool:
    """Whether a DaemonSet made it, with rights over its node and without its network; False where unreadable."""
    owner = pod.metadata.controller
    if owner is None or owner.kind != "DaemonSet":
        return False
    try:
        return not pod.has_ended and not pod.on_host_network and any(_rights(pod))
    except FactDamaged:
        return False


def _places(pod: Pod) -> Iterator[Place]:
    """The fields that give rights over the node."""
    if pod.spec.host_pid:
        yield ("spec", "hostPID")
    if pod.spec.host_ipc:
        yield ("spec", "hostIPC")
    if _is_host_process(pod.spec.security_context):
        yield ("spec", "securityContext")
    yield from CONTAINERS if any(True for container in pod.containers for _ in _rights_of(container)) else (VOLUMES,)


def _not_the_trusted_image(pod: Pod, policy: Policy) -> str:
    images = other_images(pod, policy.trusted_node_agents)
    return f"; trustedNodeAgents names its controller, and not its image {', '.join(images)}" if images else ""


def _rights(pod: Pod) -> Iterator[str]:
    if pod.spec.host_pid:
        yield "hostPID"
    if pod.spec.host_ipc:
        yield "hostIPC"
    if _is_host_process(pod.spec.security_context):
        yield "a Windows host process"
    for container in pod.containers:
        yield from _rights_of(container)
    for volume in pod.spec.volumes or ():
        if volume.host_path is not None and gives_the_node_away(volume.host_path.path):
            yield f"the node's {volume.host_path.path}"
        if volume.flex_volume is not None:
            yield f"the FlexVolume {volume.flex_volume.driver}, a program of the node"


def _rights_of(container: Container) -> Iterator[str]:
    context = container.security_context
    if context is None:
        return
    if context.privileged:
        yield f"the privileged container {container.name}"
    if _is_host_process(context):
        yield "a Windows host process"
    if context.proc_mount == "Unmasked":
        yield f"procMount Unmasked in {container.name}"
    added = (context.capabilities.add if context.capabilities is not None else None) or ()
    for capability in added:
        if capability.upper().removeprefix("CAP_") in CAPABILITIES:
            yield f"capability {capability} in {container.name}"


def _is_host_process(context: SecurityContext | None) -> bool:
    windows = context.windows_options if context is not None else None
    return windows is not None and windows.host_process is True

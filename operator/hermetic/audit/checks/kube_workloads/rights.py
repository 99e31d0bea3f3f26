"""Pods in their node's network, or with rights on the node that can undo its restrictions."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import CONTAINERS, VOLUMES, Place
from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.platform import is_probe, may_control_its_node
from hermetic.audit.estate.kubernetes.pods import Container, Pod, SecurityContext
from hermetic.audit.evaluation import CheckResult, fails
from hermetic.audit.hops import NODE, path_of
from hermetic.audit.host_paths import gives_the_node_away
from hermetic.audit.node_agents import is_trusted, other_images, with_entries
from hermetic.audit.policy import Policy
from hermetic.audit.workloads import belongs_on_the_host_network, each_pod, trust_of

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
        paths=(path_of(hops.kubernetes(pod.workload), NODE, hops.node("whatever the node can reach")),),
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
        words = f"its pods have {', '.join(why)}{_not_the_trusted_image(pod, policy)}"
        remedy = with_entries(_NO_RIGHTS, pod, policy, host_network=pod.on_host_network)
        yield fails(pod.workload, "RightsOverNode", words, pod, remedy=remedy, blames=_places(pod))


def _places(pod: Pod) -> Iterator[Place]:
    """The fields that give rights over the node."""
    if pod.spec.host_pid:
        yield ("spec", "hostPID")
    if pod.spec.host_ipc:
        yield ("spec", "hostIPC")
    if _is_host_process(pod.spec.security_context):
        yield ("spec", "securityContext")
    yield from CONTAINERS if any(True for one in pod.containers for _ in _rights_of(one)) else (VOLUMES,)


def _not_the_trusted_image(pod: Pod, policy: Policy) -> str:
    others = other_images(pod, policy.trusted_node_agents)
    return f"; trustedNodeAgents names its controller, and not its image {', '.join(others)}" if others else ""


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

"""Pods that have their node's network, or rights over the node that undo what keeps others in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.platform import is_platform, is_probe
from hermetic.audit.estate.kubernetes.pods import Container, Pod, SecurityContext
from hermetic.audit.judging import Judgement, fails
from hermetic.audit.looking_at_objects import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy

# Rights over the network of the node, or over all of it.
CAPABILITIES = frozenset({"ALL", "NET_ADMIN", "NET_RAW", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "BPF"})
# Whoever writes there decides how packets flow, or speaks to what does.
FOLDERS = tuple(
    PurePosixPath(path)
    for path in (
        "/etc/cni",
        "/opt/cni",
        "/var/lib/cni",
        "/run/cni",
        "/run/cilium",
        "/run/calico",
        "/run/containerd",
        "/run/docker.sock",
        "/run/crio",
        "/run/netns",
        "/run/xtables.lock",
        "/lib/modules",
        "/usr/lib/modules",
        "/proc",
        "/sys",
        "/etc/kubernetes",
        "/var/lib/kubelet",
        "/etc/systemd",
    )
)


def host_network(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """The host's network is exempt from Cilium's policies and from the restriction of instance metadata."""
    pods = everywhere(estate, Pod)

    def judge(pod: Pod) -> Iterator[Judgement]:
        if pod.has_ended or not pod.on_host_network or is_platform(pod) or is_probe(pod, policy.hermetic_namespaces):
            return
        yield fails(
            pod.workload,
            "HostNetwork",
            "its pods have their node's network: no network policy applies to them",
            pod,
            paths=(f"{pod.workload} -> node -> whatever the node can reach",),
        )

    fine = f"{counted(len(pods), 'pod')}: only the platform's own have their node's network"
    yield from settled(estate, objections(pods, judge), "NoHostNetwork", fine, pods)


def privileged(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A pod with rights over its node can undo the rules that keep it in."""
    pods = everywhere(estate, Pod)

    def judge(pod: Pod) -> Iterator[Judgement]:
        if pod.has_ended or is_platform(pod):
            return
        why = tuple(dict.fromkeys(_rights(pod)))
        if why:
            yield fails(pod.workload, "RightsOverNode", f"its pods have {', '.join(why)}", pod)

    fine = f"{counted(len(pods), 'pod')}: only the platform's own have rights over their node"
    yield from settled(estate, objections(pods, judge), "NoRightsOverNode", fine, pods)


def _rights(pod: Pod) -> Iterator[str]:
    if pod.spec.host_pid:
        yield "hostPID"
    if _is_host_process(pod.spec.security_context):
        yield "a Windows host process"
    for container in pod.containers:
        yield from _rights_of(container)
    for volume in pod.spec.volumes or ():
        if volume.host_path is not None and _reaches(volume.host_path.path):
            yield f"the node's {volume.host_path.path}"


def _rights_of(container: Container) -> Iterator[str]:
    context = container.security_context
    if context is None:
        return
    if context.privileged:
        yield f"the privileged container {container.name}"
    if _is_host_process(context):
        yield "a Windows host process"
    added = (context.capabilities.add if context.capabilities is not None else None) or ()
    for capability in added:
        if capability.upper().removeprefix("CAP_") in CAPABILITIES:
            yield f"capability {capability} in {container.name}"


def _is_host_process(context: SecurityContext | None) -> bool:
    windows = context.windows_options if context is not None else None
    return windows is not None and windows.host_process is True


def _reaches(path: str) -> bool:
    """Whether a folder of the node is, holds, or lies in one of those."""
    # /var/run is a link to /run on every node.
    here = PurePosixPath("/" + path.strip("/"))
    if here.is_relative_to("/var/run"):
        here = PurePosixPath("/run") / here.relative_to("/var/run")
    return any(here.is_relative_to(folder) or folder.is_relative_to(here) for folder in FOLDERS)

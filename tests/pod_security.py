"""The Pod Security Standard `restricted`, control by control, as Kubernetes 1.36 holds it against a pod.

Written from the standard and its admission plug-in, not from what Hermetic renders: it is the oracle that the rendered
pods are held against. A control that is met says nothing; one that is not yields a line with the field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Spec = Mapping[str, Any]

VOLUME_TYPES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_wmem",
    }
)
SELINUX_TYPES = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
CONFINED = frozenset({"RuntimeDefault", "Localhost"})


def violations(pod: Spec) -> list[str]:
    """Every control of `restricted` that the pod's spec does not meet."""
    return [*_of_the_pod(pod), *(line for container in _containers(pod) for line in _of_a_container(pod, container))]


def _of_the_pod(pod: Spec) -> Iterator[str]:
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{field} is set"
    for volume in pod.get("volumes", ()):
        for kind in set(volume) - {"name"} - VOLUME_TYPES:
            yield f"volume {volume['name']} is of type {kind}"
    security = pod.get("securityContext", {})
    for sysctl in security.get("sysctls", ()):
        if sysctl["name"] not in SAFE_SYSCTLS:
            yield f"sysctl {sysctl['name']} is not safe"
    yield from _of_a_context("pod", security)


def _of_a_container(pod: Spec, container: Spec) -> Iterator[str]:
    name, security, inherited = container["name"], container.get("securityContext", {}), pod.get("securityContext", {})
    yield from _of_a_context(name, security)
    if security.get("privileged"):
        yield f"{name}: privileged"
    if security.get("allowPrivilegeEscalation") is not False:
        yield f"{name}: allowPrivilegeEscalation is not false"
    capabilities = security.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()):
        yield f"{name}: does not drop ALL capabilities"
    if set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield f"{name}: adds capabilities"
    if security.get("procMount", "Default") != "Default":
        yield f"{name}: procMount"
    if security.get("runAsNonRoot", inherited.get("runAsNonRoot")) is not True:
        yield f"{name}: runAsNonRoot is not true"
    if security.get("seccompProfile", inherited.get("seccompProfile", {})).get("type") not in CONFINED:
        yield f"{name}: seccompProfile is not RuntimeDefault or Localhost"
    yield from (f"{name}: hostPort" for port in container.get("ports", ()) if port.get("hostPort"))
    yield from (f"{name}: {handler} names a host" for handler in _handlers_with_a_host(container))


def _of_a_context(where: str, security: Spec) -> Iterator[str]:
    if security.get("runAsUser") == 0:
        yield f"{where}: runs as user 0"
    if security.get("windowsOptions", {}).get("hostProcess"):
        yield f"{where}: hostProcess"
    if security.get("appArmorProfile", {}).get("type", "RuntimeDefault") not in CONFINED:
        yield f"{where}: appArmorProfile"
    selinux = security.get("seLinuxOptions", {})
    if selinux.get("type", "") not in SELINUX_TYPES or selinux.get("user") or selinux.get("role"):
        yield f"{where}: seLinuxOptions"


def _handlers_with_a_host(container: Spec) -> Iterator[str]:
    probes = {name: container.get(name, {}) for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    hooks = {name: container.get("lifecycle", {}).get(name, {}) for name in ("postStart", "preStop")}
    for name, handler in (probes | hooks).items():
        if any(handler.get(kind, {}).get("host") for kind in ("httpGet", "tcpSocket")):
            yield name


def _containers(pod: Spec) -> Iterator[Spec]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from pod.get(field, ())

"""A proxy in the environment is an invitation to go out by it."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.pods import PROXIES, Container, Pod
from hermetic.audit.findings import Severity
from hermetic.audit.judging import Judgement, cannot_say, fails
from hermetic.audit.looking_at_objects import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy


def proxy_environment(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """No container is told of a proxy, in whichever form."""
    pods = everywhere(estate, Pod)

    def judge(pod: Pod) -> Iterator[Judgement]:
        if pod.has_ended:
            return
        found = tuple(dict.fromkeys(f"{name} in {one.name}" for one in pod.containers for name in _proxies(one)))
        if found:
            yield fails(
                pod.workload,
                "ProxySet",
                f"its pods are told of a proxy: {', '.join(found[:5])}",
                pod,
                paths=(f"{pod.workload} -> proxy -> internet",),
            )
        elif taken := taken_whole(pod):
            # Whole ConfigMaps and Secrets are not read: one may hold a proxy, most hold none.
            yield cannot_say(
                pod.workload,
                "EnvironmentNotSeen",
                f"variables are taken whole from {', '.join(taken[:5])}, which the audit does not read",
                pod,
                severity=Severity.MEDIUM,
                remedy="Name each variable (`env` instead of `envFrom`), or look for a proxy there and accept this.",
            )

    fine = f"{counted(len(pods), 'pod')}: none is told of a proxy"
    yield from settled(estate, objections(pods, judge), "NoProxy", fine, pods)


def taken_whole(pod: Pod) -> tuple[str, ...]:
    """ConfigMaps and Secrets that are taken whole as variables, by name."""
    found = []
    for container in pod.containers:
        for source in container.env_from or ():
            if source.config_map_ref:
                found.append(f"ConfigMap {source.config_map_ref.get('name', '')}")
            if source.secret_ref:
                found.append(f"Secret {source.secret_ref.get('name', '')}")
    return tuple(dict.fromkeys(found))


def _proxies(container: Container) -> Iterator[str]:
    for variable in container.env or ():
        if variable.name.upper() in PROXIES and variable.is_set:
            yield variable.name

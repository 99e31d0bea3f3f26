"""Proxies in the environment of containers, by which they can reach the outside."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import CONTAINERS
from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.environment import PROXIES, EnvVar, is_proxy
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.evaluation import Judgement, cannot_say, fails
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.variables import SEE_WHAT_IT_HOLDS, ConfigMaps, config_maps, secrets_taken_whole
from hermetic.audit.workloads import each_pod

_NAME_THEM = "Name each variable that the pods need (`env` instead of `envFrom`): the ConfigMap holds too many."


@check_each("k8s-proxy-env", each_pod("NoProxy", "none is told of a proxy"))
def k8s_proxy_env(estate: Estate, _policy: Policy, pod: Pod) -> Iterator[Judgement]:
    """No container is configured with a proxy, in any form."""
    maps = config_maps(estate)
    yield from _judged(pod, maps)


def _judged(pod: Pod, maps: ConfigMaps) -> Iterator[Judgement]:
    named = [(one, variable) for one in pod.containers for variable in maps.variables(pod, one)]
    proxies = [(one, variable) for one, variable in named if is_proxy(variable.name) and variable.is_set]
    hidden = [variable for _, variable in proxies if _may_be_a_switch(variable)]
    found = tuple(dict.fromkeys(f"{each.name} in {one.name}" for one, each in proxies if each not in hidden))
    if found:
        message = f"its pods are told of a proxy: {', '.join(found[:5])}"
        yield fails(
            pod.workload,
            "ProxySet",
            message,
            pod,
            paths=(path_of(hops.kubernetes(pod.workload), "proxy", INTERNET),),
            blames=CONTAINERS,
        )
    elif unread := maps.unread(pod):
        yield cannot_say(pod.workload, "ConfigMapsNotSeen", "it takes variables from ConfigMaps", pod, *unread)
    elif hidden:
        names = ", ".join(sorted({f"{one.name} from Secret {one.secret}" for one in hidden}))
        message = f"{names}: the name is that of a proxy, and the audit does not read the value"
        fill = {"SECRET_NAME": [one.secret for one in hidden]}
        yield cannot_say(pod.workload, "ProxyNotSeen", message, pod, remedy=SEE_WHAT_IT_HOLDS, fill=fill)
    else:
        yield from not_seen_whole(pod, maps)


def not_seen_whole(pod: Pod, maps: ConfigMaps) -> Iterator[Judgement]:
    """Unknown for variables that come from an unread source as a whole: most hold no address, but one may."""
    secrets = secrets_taken_whole(pod)
    sources = (*(f"Secret {one}" for one in secrets), *maps.beyond(pod))
    if sources:
        message = f"variables are taken whole from {', '.join(sources[:5])}, which the audit does not read"
        remedy, fill = (SEE_WHAT_IT_HOLDS, {"SECRET_NAME": list(secrets)}) if secrets else (_NAME_THEM, None)
        severity = Severity.MEDIUM
        yield cannot_say(pod.workload, "EnvironmentNotSeen", message, pod, severity=severity, remedy=remedy, fill=fill)


def _may_be_a_switch(variable: EnvVar) -> bool:
    """Whether it comes from a Secret under a name that tools also use for switches."""
    return bool(variable.secret) and variable.name.upper() not in PROXIES

"""Addresses outside that pods are configured to call: proxies, models, packages, telemetry, resolvers."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.field_managers import CONTAINERS
from hermetic.api.ip_ranges import is_azure_resolver, leads_outside
from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster.variables import SEE_WHAT_IT_HOLDS, ConfigMaps, config_maps, secrets_taken_whole
from hermetic.audit.cluster.workloads import trust_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.environment import PROXIES, EnvVar, addresses, is_endpoint, is_proxy
from hermetic.audit.estate.kubernetes.names import is_inside
from hermetic.audit.estate.kubernetes.platform import is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Container, Pod
from hermetic.audit.evaluation.each_object import each_pod
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, path_of
from hermetic.audit.policy.declarations import Policy

_WRITE_IT_OUT = "Write the host out in the pod template, without a variable."
_NAME_THEM = "Name each variable that the pods need (`env` instead of `envFrom`): the ConfigMap holds too many."


@check_each("k8s-proxy-env", each_pod("NoProxy", "none has a proxy set"))
def k8s_proxy_env(estate: Estate, _policy: Policy, pod: Pod) -> Iterator[CheckResult]:
    """No container is configured with a proxy, in any form."""
    maps = config_maps(estate)
    yield from _results(pod, maps)


def _results(pod: Pod, maps: ConfigMaps) -> Iterator[CheckResult]:
    named = [(container, variable) for container in pod.containers for variable in maps.variables(pod, container)]
    proxies = [(container, variable) for container, variable in named if is_proxy(variable.name) and variable.is_set]
    hidden = [variable for _, variable in proxies if _may_be_a_switch(variable)]
    proxy_settings = tuple(
        dict.fromkeys(
            f"{variable.name} in {container.name}" for container, variable in proxies if variable not in hidden
        )
    )
    if proxy_settings:
        message = f"its pods have a proxy set: {', '.join(proxy_settings[:5])}"
        yield fails(
            pod.workload,
            "ProxySet",
            message,
            pod,
            paths=(path_of(hops.kubernetes(pod.workload), "proxy", INTERNET),),
            blames=CONTAINERS,
        )
    elif unread := maps.unread(pod):
        yield unknown(pod.workload, "ConfigMapsNotSeen", "it takes variables from ConfigMaps", pod, *unread)
    elif hidden:
        names = ", ".join(sorted({f"{variable.name} from Secret {variable.secret}" for variable in hidden}))
        message = f"{names}: the name is that of a proxy, and the audit does not read the value"
        fill = {"SECRET_NAME": [variable.secret for variable in hidden]}
        yield unknown(pod.workload, "ProxyNotSeen", message, pod, remedy=SEE_WHAT_IT_HOLDS, fill=fill)
    else:
        yield from not_seen_whole(pod, maps)


def not_seen_whole(pod: Pod, maps: ConfigMaps) -> Iterator[CheckResult]:
    """Unknown for variables that come from an unread source as a whole: most hold no address, but one may."""
    secrets = secrets_taken_whole(pod)
    sources = (*(f"Secret {secret}" for secret in secrets), *maps.beyond(pod))
    if sources:
        message = f"variables are taken whole from {', '.join(sources[:5])}, which the audit does not read"
        remedy, fill = (SEE_WHAT_IT_HOLDS, {"SECRET_NAME": list(secrets)}) if secrets else (_NAME_THEM, None)
        severity = Severity.MEDIUM
        yield unknown(pod.workload, "EnvironmentNotSeen", message, pod, severity=severity, remedy=remedy, fill=fill)


def _may_be_a_switch(variable: EnvVar) -> bool:
    """Whether it comes from a Secret under a name that tools also use for switches."""
    return bool(variable.secret) and variable.name.upper() not in PROXIES


SHOWN = 5


@check_each("k8s-outside-endpoint", each_pod("EndpointsInside", "none is configured with an address outside"))
def k8s_outside_endpoint(estate: Estate, policy: Policy, pod: Pod) -> Iterator[CheckResult]:
    """No model server is configured with an address outside, and no pod with a hub, an index or a collector outside."""
    maps = config_maps(estate)
    trust = trust_of(estate, policy)
    if is_the_platforms(pod, trust):
        return
    called = tuple(dict.fromkeys(host for container in pod.containers for host in container.called_by_the_kubelet))
    if any(not is_inside(host) for host in called):
        yield _by_the_kubelet(pod, next(host for host in called if not is_inside(host)))
    destinations = tuple(dict.fromkeys(_outside(pod, maps)))
    if destinations:
        yield _with_a_proxy(pod, destinations)
    elif unread := maps.unread(pod):
        yield unknown(pod.workload, "ConfigMapsNotSeen", "it takes variables from ConfigMaps", pod, *unread)
    else:
        yield from _not_seen(pod, maps)


def _with_a_proxy(pod: Pod, destinations: tuple[str, ...]) -> CheckResult:
    return fails(
        pod.workload,
        "EndpointOutside",
        f"its pods are configured to call {', '.join(destinations[:SHOWN])}",
        pod,
        paths=(path_of(hops.kubernetes(pod.workload), destinations[0]),),
        blames=(*CONTAINERS, ("spec", "dnsConfig")),
    )


def _by_the_kubelet(pod: Pod, host: str) -> CheckResult:
    return fails(
        pod.workload,
        "KubeletCallsOutside",
        f"a probe or a hook makes the kubelet call {host}: no network policy applies to its machine",
        pod,
        paths=(path_of(hops.kubernetes(pod.workload), "kubelet", host),),
        severity=Severity.HIGH,
        blames=CONTAINERS,
    )


def _outside(pod: Pod, maps: ConfigMaps) -> Iterator[str]:
    config = pod.spec.dns_config
    resolvers = (config.nameservers if config else None) or ()
    yield from (
        f"the resolver {resolver}"
        for resolver in resolvers
        if leads_outside(resolver) and not is_azure_resolver(resolver)
    )
    for alias in pod.spec.host_aliases or ():
        if leads_outside(alias.ip):
            yield f"{alias.ip} by the name {', '.join(alias.hostnames or ())}"
    yield from (
        f"{volume.git_repo.repository} (gitRepo)" for volume in pod.spec.volumes or () if volume.git_repo is not None
    )
    serves_models = pod.wants_gpu
    for container in pod.containers:
        for variable in maps.variables(pod, container):
            if serves_models or is_endpoint(variable.name):
                yield from (f"{host} ({variable.name})" for host in _named_by(variable) if "$" not in host)
        if serves_models:
            yield from (f"{host} (argument)" for host in _arguments(container) if "$" not in host)


def _named_by(variable: EnvVar) -> tuple[str, ...]:
    """The addresses that were kept of its value."""
    value = variable.value or ""
    return tuple(value.split()) if "//" in value or any(addresses(value)) else ()


def _arguments(container: Container) -> tuple[str, ...]:
    return (*(container.command or ()), *(container.args or ()))


def _made_of_variables(pod: Pod, maps: ConfigMaps) -> Iterator[str]:
    for container in pod.containers:
        for variable in maps.variables(pod, container):
            if pod.wants_gpu or is_endpoint(variable.name):
                yield from (f"{host} ({variable.name})" for host in _named_by(variable) if "$" in host)
        if pod.wants_gpu:
            yield from (f"{host} (argument)" for host in _arguments(container) if "$" in host)


def _not_seen(pod: Pod, maps: ConfigMaps) -> Iterator[CheckResult]:
    named = [
        variable
        for container in pod.containers
        for variable in maps.variables(pod, container)
        if is_endpoint(variable.name)
    ]
    hidden = {variable.name: variable for variable in named if variable.value_from}
    if hidden:
        names = ", ".join(sorted(hidden)[:SHOWN])
        message = f"{names}: set from elsewhere, with a value that the audit does not read"
        secrets = [variable.secret for variable in hidden.values() if variable.secret]
        remedy, fill = (SEE_WHAT_IT_HOLDS, {"SECRET_NAME": secrets}) if secrets else ("", None)
        yield unknown(pod.workload, "EndpointNotSeen", message, pod, remedy=remedy, fill=fill)
    elif composed := tuple(dict.fromkeys(_made_of_variables(pod, maps))):
        message = (
            f"its pods are configured to call {', '.join(composed[:SHOWN])}: the audit does not read the values of the "
            "variables"
        )
        yield unknown(pod.workload, "AddressNotSeen", message, pod, remedy=_WRITE_IT_OUT)
    elif pod.wants_gpu:
        yield from not_seen_whole(pod, maps)

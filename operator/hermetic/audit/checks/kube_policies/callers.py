"""What operators call for objects of others: add-ons of AKS do so out of namespaces without default deny."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hermetic.api.field_managers import SPEC
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.cluster.workloads import pods_and_templates, trust_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.addons import (
    Capture,
    ExternalDataProvider,
    PodMonitor,
    SecretProviderClass,
    ServiceMonitor,
    TracesConfiguration,
)
from hermetic.audit.estate.kubernetes.ai_gateways import Backend, BackendSecurityPolicy
from hermetic.audit.estate.kubernetes.callers import UNRESOLVED, Caller
from hermetic.audit.estate.kubernetes.platform import KUBE_SYSTEM, is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.scalers import (
    CloudEventSource,
    ClusterCloudEventSource,
    ClusterTriggerAuthentication,
    EventSource,
    ScaledJob,
    ScaledObject,
    TriggerAuthentication,
)
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.observation import Listing
from hermetic.audit.evaluation.each_object import not_known, objections
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

CALLERS: tuple[type[Caller], ...] = (
    ScaledObject,
    ScaledJob,
    TriggerAuthentication,
    ClusterTriggerAuthentication,
    CloudEventSource,
    ClusterCloudEventSource,
    PodMonitor,
    ServiceMonitor,
    SecretProviderClass,
    ExternalDataProvider,
    Capture,
    TracesConfiguration,
    Backend,
    BackendSecurityPolicy,
)
_REMEDY = """
Let the object name a server inside, by its full name such as NAME.NAMESPACE.svc.cluster.local, or delete it.
Warning: the object then no longer scales, scrapes or captures anything.
kubectl --namespace NAMESPACE delete KIND NAME
"""
_RESOLVE = """
Write the address into the object, and the credentials alone into the Secret: the audit does not read variables, Secrets
and files. In a relabeling, set the port by the endpoint's own field in place of `__address__`. Where the address cannot
stand in the object, see that it is one inside, and accept it by an exception.
kubectl --namespace NAMESPACE edit KIND NAME
"""


def caller_listings(estate: Estate) -> tuple[Listing[Caller], ...]:
    """The lists that `caller_results` rests on."""
    return tuple(everywhere(estate, kind) for kind in CALLERS)


def caller_results(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Objects for which an operator calls an address outside, or one that is not known."""
    services = frozenset(f"{service.metadata.name}.{service.namespace}" for service in everywhere(estate, Service))
    for kind, listing in zip(CALLERS, caller_listings(estate), strict=True):
        severity = _severity(estate, policy, kind.OPERATED_BY) if listing.items else Severity.HIGH
        yield from objections(listing, partial(_evaluate, severity, services))


def _severity(estate: Estate, policy: Policy, operators: frozenset[str]) -> Severity:
    """Medium where every pod of the operator is in a namespace that has to have default deny."""
    is_closed = [
        _needs_default_deny(estate, policy, pod) for pod in pods_and_templates(estate) if _is_of(pod, operators)
    ]
    return Severity.MEDIUM if is_closed and all(is_closed) else Severity.HIGH


def _is_of(pod: Pod, operators: frozenset[str]) -> bool:
    try:
        return pod.workload_name in operators
    except FactDamaged:  # reported by the checks of pods
        return True


def _needs_default_deny(estate: Estate, policy: Policy, pod: Pod) -> bool:
    try:
        is_exempt = pod.on_host_network or is_the_platforms(pod, trust_of(estate, policy))
    except FactDamaged:
        return False
    return pod.namespace != KUBE_SYSTEM and not is_exempt


def _evaluate(severity: Severity, services: frozenset[str], caller: Caller) -> Iterator[CheckResult]:
    addresses = [address for address in dict.fromkeys(caller.calls) if _host_of(address) not in services]
    named = [address for address in addresses if address != UNRESOLVED]
    if named:
        message = f"makes {caller.CALLED_BY} call {', '.join(named[:3])}"
        path = path_of(hops.kubernetes(caller.id), caller.HOP, named[0].partition("://")[2] or named[0])
        yield fails(
            caller.id, "CallsOutside", message, caller, paths=(path,), severity=severity, remedy=_REMEDY, blames=(SPEC,)
        )
    elif addresses:
        message = f"makes {caller.CALLED_BY} call an address that is not in the object"
        yield unknown(caller.id, "AddressNotSeen", message, caller, severity=severity, remedy=_RESOLVE)
    elif isinstance(caller, EventSource):
        yield from not_known(caller)


def _host_of(address: str) -> str:
    """ "kafka.team" of "kafka.team:9092" and of "http://kafka.team"."""
    return (address.partition("://")[2] or address).partition(":")[0]

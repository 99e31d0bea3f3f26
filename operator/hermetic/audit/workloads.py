"""Running pods, and pods that templates would create: one list for all checks of workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.platform import KUBE_SYSTEM, SHOWN_BY, PlatformTrust, may_use_the_host_network
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.served import SERVED, ServedGroup
from hermetic.audit.estate.kubernetes.templates import CONTROLLERS, Resting, as_pod
from hermetic.audit.estate.observation import Listing, merged
from hermetic.audit.evaluation import CheckResult
from hermetic.audit.kube_findings import Objections, counted, everywhere, objections, settled
from hermetic.audit.node_agents import is_trusted
from hermetic.audit.policy import Policy


@derived
def pods_and_templates(estate: Estate) -> Listing[Pod]:
    """All pods, and one for each template without a pod. It has the first problem of the lists it is made from."""
    return merged("", everywhere(estate, Pod), *(_as_pods(estate, kind) for kind in CONTROLLERS))


def _as_pods(estate: Estate, kind: type[Resting]) -> Listing[Pod]:
    listing = everywhere(estate, kind)
    made = tuple(pod for one in listing if (pod := as_pod(one)) is not None)
    return Listing(listing.target, made, listing.evidence, listing.problem)


def belongs_on_the_host_network(estate: Estate, policy: Policy, pod: Pod) -> bool:
    """Whether it is a component of AKS that needs its node's network, or an agent that the policy trusts with it."""
    agents = [one for one in policy.trusted_node_agents if one.host_network]
    return may_use_the_host_network(pod, trust_of(estate, policy)) or is_trusted(pod, agents)


def each_pod(reason: str, fine: str) -> Callable[[Estate, Policy, Objections[Pod]], Iterator[CheckResult]]:
    """For `check_each`: evaluate pods that have not ended, and templates; `reason` and `fine` are of the Pass."""

    def each(estate: Estate, _policy: Policy, evaluate: Objections[Pod]) -> Iterator[CheckResult]:
        def of_pod(pod: Pod) -> Iterable[CheckResult]:
            return () if pod.has_ended else evaluate(pod)

        pods = pods_and_templates(estate)
        words = f"{counted(len(pods), 'pod')}: {fine}"
        yield from settled(estate, objections(pods, of_pod), reason, words, pods)

    return each


@derived
def trust_of(estate: Estate, policy: Policy) -> PlatformTrust:
    """The trust settings; a namespace that needs an API group counts only where the API server serves that group."""
    served = {group.id for group in estate.every(ServedGroup, SERVED.target)}
    shown = (namespace for namespace, group in SHOWN_BY.items() if group in served)
    approved = frozenset(one.lower() for one in policy.allowed_registries)
    return PlatformTrust(approved, frozenset({KUBE_SYSTEM, *shown}))

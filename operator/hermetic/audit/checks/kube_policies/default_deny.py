"""Every pod may go only where some policy lets it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Namespace
from hermetic.audit.estate.kubernetes.objects import reference_to
from hermetic.audit.estate.kubernetes.platform import is_operator, is_probe, is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import (
    CiliumClusterwideNetworkPolicy,
    CiliumNetworkPolicy,
    LabelSelector,
    NetworkPolicy,
    Requirement,
)
from hermetic.audit.estate.look import Listing, Look
from hermetic.audit.judging import Judgement, cannot_say, fails
from hermetic.audit.looking_at_objects import counted, everywhere, objections, settled
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged

NAMESPACE_OF_POD = "io.kubernetes.pod.namespace"
# Cilium's names for where a label comes from; the pod's own are "k8s", and "any" is whichever.
_OF_THE_POD = ("k8s:", "any:")


def default_deny(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """A namespace is closed by a policy for all of its pods, or by policies that together select every one of them."""
    pods, policies = everywhere(estate, Pod), everywhere(estate, NetworkPolicy)
    cilium = everywhere(estate, CiliumNetworkPolicy)
    clusterwide = everywhere(estate, CiliumClusterwideNetworkPolicy)
    closing = _Closing(policies, cilium, clusterwide)
    open_pods: dict[str, list[Pod]] = defaultdict(list)
    namespaces = set()

    def judge(pod: Pod) -> Iterator[Judgement]:
        if pod.has_ended or pod.on_host_network or is_the_platforms(pod) or _is_own(pod, policy):
            return
        namespaces.add(pod.namespace)
        if not closing.closes(pod):
            open_pods[pod.namespace].append(pod)
        yield from ()

    listings = (policies, cilium, clusterwide)
    said = [*objections(pods, judge)]
    said += [_open(namespace, some, *listings) for namespace, some in sorted(open_pods.items())]
    fine = f"every pod in {counted(len(namespaces), 'namespace')} with workloads may go only where a policy lets it"
    yield from settled(estate, said, "EgressClosed", fine, pods, *listings)


def _is_own(pod: Pod, policy: Policy) -> bool:
    # The operator talks to the API server, wherever that is; the probe has to be able to try.
    return is_operator(pod, policy.hermetic_namespaces) or is_probe(pod, policy.hermetic_namespaces)


def _open(namespace: str, pods: Sequence[Pod], *policies: Look) -> Judgement:
    resource = reference_to(Namespace, "", namespace)
    unread = next((listing for listing in policies if listing.problem is not None), None)
    if unread is not None:  # what closes the pods may stand in what could not be read
        return cannot_say(resource, "PoliciesNotSeen", "not every policy could be read", unread)
    workloads = sorted({pod.workload for pod in pods})
    more = f" and {len(workloads) - 3} more" if len(workloads) > 3 else ""
    return fails(
        resource,
        "EgressOpen",
        f"no policy closes egress of {counted(len(pods), 'pod')}: {', '.join(workloads[:3])}{more}",
        *pods[:1],
        *policies,
        paths=(f"pod in {namespace} -> node -> whatever the network lets through",),
    )


class _Closing:
    """The policies that close egress, sorted by whom they can select."""

    def __init__(
        self,
        policies: Listing[NetworkPolicy],
        cilium: Listing[CiliumNetworkPolicy],
        clusterwide: Listing[CiliumClusterwideNetworkPolicy],
    ) -> None:
        self._plain: dict[str, list[LabelSelector]] = defaultdict(list)
        self._cilium: dict[str, list[LabelSelector]] = defaultdict(list)
        for policy in policies:
            self._take(self._plain[policy.namespace], policy)
        for one in cilium:
            self._take_cilium(self._cilium[one.namespace], one)
        for other in clusterwide:
            self._take_cilium(self._cilium[""], other)

    def closes(self, pod: Pod) -> bool:
        """Whether some policy selects it, certainly."""
        if any(selector.selects(pod.labels) for selector in self._plain.get(pod.namespace, ())):
            return True
        own, of_cluster = self._cilium.get(pod.namespace, ()), self._cilium.get("", ())
        labels = {**pod.labels, NAMESPACE_OF_POD: pod.namespace}
        return any(_selects(selector, labels) for selector in (*own, *of_cluster))

    @staticmethod
    def _take(selectors: list[LabelSelector], policy: NetworkPolicy) -> None:
        try:
            if policy.closes_egress:
                selectors.append(policy.spec.pod_selector)
        except FactDamaged:
            return  # what cannot be read closes nothing

    @staticmethod
    def _take_cilium(
        selectors: list[LabelSelector], policy: CiliumNetworkPolicy | CiliumClusterwideNetworkPolicy
    ) -> None:
        try:
            selectors += [
                rule.endpoint_selector
                for rule in policy.rules
                if rule.closes_egress and rule.endpoint_selector is not None
            ]
        except FactDamaged:
            return


def _selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """As Cilium selects, where the pod's own labels and its namespace decide; anything else selects nothing for us."""
    keys = (*(selector.match_labels or ()), *(one.key for one in selector.match_expressions or ()))
    if any(_own_key(key) is None for key in keys):
        return False
    named = all(labels.get(_own_key(key) or "") == value for key, value in (selector.match_labels or {}).items())
    return named and all(_holds(one, labels) for one in selector.match_expressions or ())


def _holds(one: Requirement, labels: Mapping[str, str]) -> bool:
    spelt = Requirement.model_construct(key=_own_key(one.key) or "", operator=one.operator, values=one.values)
    return spelt.holds(labels) is True


def _own_key(key: str) -> str | None:
    bare = next((key.removeprefix(source) for source in _OF_THE_POD if key.startswith(source)), key)
    if ":" in bare or (bare.startswith("io.cilium.") or bare == "io.kubernetes.pod.uid"):
        return None
    return bare

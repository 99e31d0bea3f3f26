"""Every pod is selected by a policy that closes egress."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from hermetic.api.text import first_of
from hermetic.audit.checks.family import check
from hermetic.audit.checks.kube_policies.enforcement import CILIUM, enforces, seen_by_cilium
from hermetic.audit.checks.kube_policies.settings import has_a_label_filter
from hermetic.audit.cluster.objects import everywhere
from hermetic.audit.cluster.workloads import pods_and_templates, trust_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.calico_policies import CalicoGlobalNetworkPolicy, CalicoNetworkPolicy
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumClusterwideNetworkPolicy, CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.nodes import Namespace
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, reference_to
from hermetic.audit.estate.kubernetes.platform import is_operator, is_probe, is_the_platforms
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.kubernetes.policies import ADMIN_KINDS, AdminPolicy, NetworkPolicy, Requirement
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_object import counted, objections, settled
from hermetic.audit.evaluation.results import CheckResult, fails, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import NODE, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

NAMESPACE_OF_POD = "io.kubernetes.pod.namespace"
# Cilium's prefixes for the source of a label; "k8s" are the pod's own, "any" is every source.
_OF_THE_POD = ("k8s:", "any:")
_PLAINLY = "Close the namespace by a NetworkPolicy with `podSelector: {}` and `policyTypes: [Egress]`."

P = TypeVar("P", bound=KubernetesObject)
_Cilium = CiliumNetworkPolicy | CiliumClusterwideNetworkPolicy
_Calico = CalicoNetworkPolicy | CalicoGlobalNetworkPolicy
# All requirements of a policy's pod selector; None for one that the audit cannot evaluate.
_Selection = tuple[Requirement | None, ...]
_Selections = defaultdict[str, list[_Selection]]
_NOT_KNOWN: _Selection = (None,)


@check("k8s-default-deny-egress")
def k8s_default_deny_egress(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A namespace is closed by a policy for all of its pods, or by policies that together select every one of them."""
    pods, policies = pods_and_templates(estate), everywhere(estate, NetworkPolicy)
    trust = trust_of(estate, policy)
    cilium = everywhere(estate, CiliumNetworkPolicy)
    clusterwide = everywhere(estate, CiliumClusterwideNetworkPolicy)
    calico, calico_global = everywhere(estate, CalicoNetworkPolicy), everywhere(estate, CalicoGlobalNetworkPolicy)
    admin = tuple(everywhere(estate, kind) for kind in ADMIN_KINDS)
    by_cilium = enforces(estate, policy, CILIUM)
    closing = _Closing(
        policies,
        (*cilium, *clusterwide),
        (*calico, *calico_global),
        tuple(admin_policy for some in admin for admin_policy in some),
        by_cilium=by_cilium,
        sees=_seen(estate, by_cilium=by_cilium),
    )
    open_pods: dict[str, list[Pod]] = defaultdict(list)
    doubtful_pods: dict[str, list[Pod]] = defaultdict(list)
    namespaces = set()

    def evaluate(pod: Pod) -> Iterator[CheckResult]:
        if pod.has_ended or pod.on_host_network or is_the_platforms(pod, trust) or _is_own(pod, policy):
            return
        namespaces.add(pod.namespace)
        closes = closing.closes(pod)
        if closes is not True:
            (doubtful_pods if closes is None else open_pods)[pod.namespace].append(pod)
        yield from ()

    listings = (policies, cilium, clusterwide)
    results = [*objections(pods, evaluate)]
    for namespace in sorted({*open_pods, *doubtful_pods}):
        some = open_pods.get(namespace, ())
        results.append(
            _open(namespace, some, doubtful_pods.get(namespace, ()), *listings, calico, calico_global, *admin)
        )
    fine = f"every pod in {counted(len(namespaces), 'namespace')} with workloads may go only where a policy lets it"
    yield from settled(estate, results, "EgressClosed", fine, pods, *listings)


def _is_own(pod: Pod, policy: Policy) -> bool:
    # The operator must reach the API server, which may be outside; the probe must be able to try every call.
    return is_operator(pod, policy.hermetic_namespaces) or is_probe(pod, policy.hermetic_namespaces)


def _open(namespace: str, pods: Sequence[Pod], doubtful: Sequence[Pod], *policies: Observation) -> CheckResult:
    resource = reference_to(Namespace, "", namespace)
    unread = next((listing for listing in policies if listing.problem is not None), None)
    if unread is not None:  # the policy that closes the pods may be in a list that could not be read
        return unknown(resource, "PoliciesNotSeen", "not every policy could be read", unread)
    if not pods:
        message = f"a policy may close egress of {_shown(doubtful)}; the audit cannot see whether it does"
        return unknown(resource, "SelectionUnknown", message, *doubtful[:1], *policies, remedy=_PLAINLY)
    return fails(
        resource,
        "EgressOpen",
        f"no policy closes egress of {_shown(pods)}",
        *pods[:1],
        *policies,
        paths=(path_of(hops.pod(f"pod in {namespace}"), NODE, "all that the network lets through"),),
    )


def _shown(pods: Sequence[Pod]) -> str:
    return f"{counted(len(pods), 'pod')}: {first_of(sorted({pod.workload for pod in pods}), 3)}"


def _nothing(_labels: Mapping[str, str]) -> dict[str, str]:
    return {}


def _seen(estate: Estate, *, by_cilium: bool | None) -> Callable[[Mapping[str, str]], dict[str, str]]:
    """What the engine is known to see of a pod's labels."""
    if by_cilium is False:
        return dict
    # A filter of its own may leave out any label: which ones, only Cilium can tell.
    return _nothing if has_a_label_filter(estate) else seen_by_cilium


class _Closing:
    """Selectors of the policies that close egress, by namespace; those of the whole cluster under ""."""

    def __init__(
        self,
        plain: Iterable[NetworkPolicy],
        cilium: Iterable[_Cilium],
        calico: Iterable[_Calico],
        admin: Iterable[AdminPolicy],
        *,
        by_cilium: bool | None,
        sees: Callable[[Mapping[str, str]], dict[str, str]],
    ) -> None:
        self._identity = sees
        self._plain: _Selections = defaultdict(list)
        self._others: _Selections = defaultdict(list)
        _take(self._plain, plain, _of_plain)
        if by_cilium is not False:  # no other engine reads Cilium's kinds
            _take(self._others, cilium, partial(_of_cilium, is_sure=by_cilium is True))
        _take(self._others, calico, _of_calico)
        _take(self._others, admin, _of_administrators)

    def closes(self, pod: Pod) -> bool | None:
        """Whether some policy selects the pod; None where that cannot be evaluated."""
        identity = self._identity(pod.labels)
        truths = {_selects(selection, pod.labels, identity) for selection in self._plain.get(pod.namespace, ())}
        if True not in truths:
            added = {NAMESPACE_OF_POD: pod.namespace}
            other_selections = (*self._others.get(pod.namespace, ()), *self._others.get("", ()))
            truths |= {
                _selects(selection, {**pod.labels, **added}, {**identity, **added}) for selection in other_selections
            }
        return True if True in truths else None if None in truths else False


def _take(into: _Selections, policies: Iterable[P], read: Callable[[P], Iterable[_Selection]]) -> None:
    for policy in policies:
        try:
            into[policy.namespace] += read(policy)
        except FactDamaged:  # its selector cannot be read
            into[policy.namespace].append(_NOT_KNOWN)


def _of_plain(policy: NetworkPolicy) -> Iterator[_Selection]:
    if policy.closes_egress:
        yield policy.spec.pod_selector.requirements


def _of_cilium(policy: _Cilium, *, is_sure: bool) -> Iterator[_Selection]:
    doubt = () if is_sure and not policy.may_be_rejected else _NOT_KNOWN
    for rule in policy.rules:
        if rule.closes_egress and rule.endpoint_selector is not None:
            unread = _NOT_KNOWN if rule.unread_fields else ()
            yield (*map(_spelt, rule.endpoint_selector.requirements), *doubt, *unread)


def _of_calico(policy: _Calico) -> Iterator[_Selection]:
    # Calico's selectors have a language of their own, which the audit does not evaluate.
    if policy.spec.closes_egress:
        yield _NOT_KNOWN


def _of_administrators(policy: AdminPolicy) -> Iterator[_Selection]:
    # Whether an engine enforces these is not visible: Cilium and Azure NPM as AKS runs them do not.
    if policy.denies_ranges:
        yield _NOT_KNOWN


def _selects(selection: _Selection, labels: Mapping[str, str], identity: Mapping[str, str]) -> bool | None:
    """False if any requirement fails, None if any is unknown, else True.

    `identity` are the labels that the engine is known to see. A requirement is unknown where the others decide it.
    """
    truths = {_holds(requirement, labels, identity) for requirement in selection}
    return False if False in truths else None if None in truths else True


def _holds(requirement: Requirement | None, labels: Mapping[str, str], identity: Mapping[str, str]) -> bool | None:
    truth = None if requirement is None else requirement.holds(labels)
    return truth if requirement is None or truth == requirement.holds(identity) else None


def _spelt(requirement: Requirement) -> Requirement | None:
    """The requirement without Cilium's source prefix, on the pod's own labels or namespace; None for any other."""
    key = _own_key(requirement.key)
    return (
        None
        if key is None
        else Requirement.model_construct(key=key, operator=requirement.operator, values=requirement.values)
    )


def _own_key(key: str) -> str | None:
    bare = next((key.removeprefix(source) for source in _OF_THE_POD if key.startswith(source)), key)
    if ":" in bare or (bare.startswith("io.cilium.") or bare == "io.kubernetes.pod.uid"):
        return None
    return bare

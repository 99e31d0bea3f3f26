"""Checks over many Kubernetes objects: a finding for each object with a problem, or one for the cluster.

A cluster has thousands of pods, so there is no Pass for each. What is wrong or undecided is a finding named by the
object to change; where nothing is, one finding about the cluster gives the number checked, with the lists as evidence.
A list that is incomplete makes that finding Unknown, or adds an Unknown to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.cluster.objects import everywhere, never_empty
from hermetic.audit.cluster.workloads import pods_and_templates
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, unread_fields
from hermetic.audit.estate.kubernetes.pods import Pod
from hermetic.audit.estate.observation import Observation, unreadable
from hermetic.audit.evaluation.results import CheckResult, passes, unknown
from hermetic.audit.policy.declarations import Policy
from hermetic.errors import FactDamaged

K = TypeVar("K", bound=KubernetesObject)
Objections = Callable[[K], Iterable[CheckResult]]


def objections(listing: Iterable[K], evaluate: Objections[K]) -> Iterator[CheckResult]:
    """The results about each object. One that cannot be read is Unknown and does not affect the others."""
    for item in listing:
        try:
            # Not lazily: damage met while evaluating this object must be caught here and not with another one.
            yield from tuple(evaluate(item))
        except FactDamaged as damage:
            yield unknown(item.id, "Unreadable", damage.message, unreadable(damage))


def not_known(kubernetes_object: KubernetesObject) -> Iterator[CheckResult]:
    """Unknown for an object with fields that this release does not know."""
    if fields := sorted(set(unread_fields(kubernetes_object))):
        message = f"it has {', '.join(fields[:3])}, which this release does not know: it may let more out"
        yield unknown(kubernetes_object.id, "FieldsNotKnown", message, kubernetes_object)


def settled(
    estate: Estate, results: Iterable[CheckResult], reason: str, fine: str, *observations: Observation
) -> Iterator[CheckResult]:
    """The results given; where there are none, a Pass about the cluster that rests on all `observations`.

    `fine` is the message of that Pass.
    """
    findings = tuple(results)
    yield from findings
    if not findings:
        yield passes(estate.cluster, reason, fine, *observations)
        return
    broken = next((observation for observation in observations if observation.problem is not None), None)
    if broken is not None:
        yield unknown(estate.cluster, "ListNotWhole", "there may be more than what was found", broken)


def each_object(
    kind: type[K], reason: str, fine: str
) -> Callable[[Estate, Policy, Objections[K]], Iterator[CheckResult]]:
    """For `check_each`: evaluate every object of a kind that each cluster has; `reason` and `fine` are of the Pass."""

    def evaluate_all(estate: Estate, _policy: Policy, evaluate: Objections[K]) -> Iterator[CheckResult]:
        listing = never_empty(everywhere(estate, kind), kind)
        message = f"{counted(len(listing), kind.KIND)}: {fine}"
        yield from settled(estate, objections(listing, evaluate), reason, message, listing)

    return evaluate_all


def counted(number: int, noun: str, whats: str = "") -> str:
    """ "1 Service", "3 Services", "no Service"."""
    if number == 0:
        return f"no {noun}"
    return f"{number} {noun if number == 1 else whats or noun + 's'}"


def each_pod(reason: str, fine: str) -> Callable[[Estate, Policy, Objections[Pod]], Iterator[CheckResult]]:
    """For `check_each`: evaluate pods that have not ended, and templates; `reason` and `fine` are of the Pass."""

    def evaluate_all(estate: Estate, _policy: Policy, evaluate: Objections[Pod]) -> Iterator[CheckResult]:
        def of_pod(pod: Pod) -> Iterable[CheckResult]:
            return () if pod.has_ended else evaluate(pod)

        pods = pods_and_templates(estate)
        message = f"{counted(len(pods), 'pod')}: {fine}"
        yield from settled(estate, objections(pods, of_pod), reason, message, pods)

    return evaluate_all

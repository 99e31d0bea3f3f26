"""Checks over many Kubernetes objects: a finding for each object with a problem, or one for the cluster.

A cluster has thousands of pods, so there is no Pass for each. What is wrong or undecided is a finding named by the
object to change; where nothing is, one finding about the cluster gives the number checked, with the lists as evidence.
A list that is incomplete makes that finding Unknown, or adds an Unknown to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE, KubernetesObject, unread_fields
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.estate.questions import Problem, UnreadReason
from hermetic.audit.evaluation import CheckResult, passes, unknown, unreadable
from hermetic.audit.policy import Policy
from hermetic.errors import FactDamaged

K = TypeVar("K", bound=KubernetesObject)
Objections = Callable[[K], Iterable[CheckResult]]


def everywhere(estate: Estate, kind: type[K]) -> Listing[K]:
    """All objects of a kind in all namespaces."""
    return estate.every(kind, EVERYWHERE)


def never_empty(listing: Listing[K], kind: type[K]) -> Listing[K]:
    """The same listing, with a problem if it is empty although every cluster has such objects (incomplete answer)."""
    if listing.problem is not None or listing.items:
        return listing
    detail = f"no {kind.KIND} in the answer, and every cluster has one"
    return Listing(listing.target, (), listing.evidence, Problem(UnreadReason.UNREADABLE, detail))


def objections(listing: Iterable[K], evaluate: Objections[K]) -> Iterator[CheckResult]:
    """The results about each object. One that cannot be read is Unknown and does not affect the others."""
    for item in listing:
        try:
            # Not lazily: damage met while evaluating this object must be caught here and not with another one.
            yield from tuple(evaluate(item))
        except FactDamaged as damage:
            yield unknown(item.id, "Unreadable", damage.message, unreadable(damage))


def not_known(one: KubernetesObject) -> Iterator[CheckResult]:
    """Unknown for an object with fields that this release does not know."""
    if fields := sorted(set(unread_fields(one))):
        words = f"it has {', '.join(fields[:3])}, which this release does not know: it may let more out"
        yield unknown(one.id, "FieldsNotKnown", words, one)


def settled(
    estate: Estate, results: Iterable[CheckResult], reason: str, fine: str, *observations: Observation
) -> Iterator[CheckResult]:
    """The results given; where there are none, a Pass about the cluster that rests on all `observations`.

    `fine` is the message of that Pass.
    """
    found = tuple(results)
    yield from found
    if not found:
        yield passes(estate.cluster, reason, fine, *observations)
        return
    broken = next((observation for observation in observations if observation.problem is not None), None)
    if broken is not None:
        yield unknown(estate.cluster, "ListNotWhole", "there may be more than what was found", broken)


def each_object(
    kind: type[K], reason: str, fine: str
) -> Callable[[Estate, Policy, Objections[K]], Iterator[CheckResult]]:
    """For `check_each`: evaluate every object of a kind that each cluster has; `reason` and `fine` are of the Pass."""

    def each(estate: Estate, _policy: Policy, evaluate: Objections[K]) -> Iterator[CheckResult]:
        listing = never_empty(everywhere(estate, kind), kind)
        words = f"{counted(len(listing), kind.KIND)}: {fine}"
        yield from settled(estate, objections(listing, evaluate), reason, words, listing)

    return each


def counted(number: int, what: str, whats: str = "") -> str:
    """ "1 Service", "3 Services", "no Service"."""
    if number == 0:
        return f"no {what}"
    return f"{number} {what if number == 1 else whats or what + 's'}"

"""Lists of the Kubernetes objects of the cluster."""

from __future__ import annotations

from typing import TypeVar

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE, KubernetesObject
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.questions import Problem, UnreadReason

K = TypeVar("K", bound=KubernetesObject)


def everywhere(estate: Estate, kind: type[K]) -> Listing[K]:
    """All objects of a kind in all namespaces."""
    return estate.every(kind, EVERYWHERE)


def never_empty(listing: Listing[K], kind: type[K]) -> Listing[K]:
    """The same listing, with a problem if it is empty although every cluster has such objects (incomplete answer)."""
    if listing.problem is not None or listing.items:
        return listing
    detail = f"no {kind.KIND} in the answer, and every cluster has one"
    return Listing(listing.target, (), listing.evidence, Problem(UnreadReason.UNREADABLE, detail))

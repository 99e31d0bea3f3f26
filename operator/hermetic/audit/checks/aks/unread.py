"""Fields of the cluster's answer that this release does not know."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.estate.azure.cluster_unread import ClusterUnread
from hermetic.audit.estate.azure.versions import CONTAINER_SERVICE
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation import Judgement, cannot_say, passes
from hermetic.audit.policy import Policy


@check("aks-unread-features")
def aks_unread_features(estate: Estate, _policy: Policy) -> Iterator[Judgement]:
    """A field that is set and that no model reads may open a way out: Unknown."""
    seen = estate.one(ClusterUnread, estate.cluster)
    if seen.value is None:
        yield cannot_say(estate.cluster, "ClusterNotSeen", "the cluster could not be read", seen)
    elif seen.value.unread:
        words = f"set, and not known to this release: {', '.join(seen.value.unread)}"
        yield cannot_say(estate.cluster, "FeatureUnknown", words, seen)
    else:
        words = f"every field that is set is one of api-version {CONTAINER_SERVICE}"
        yield passes(estate.cluster, "AllFieldsKnown", words, seen)

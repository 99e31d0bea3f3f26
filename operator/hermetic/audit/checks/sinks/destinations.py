"""Whether what receives logs and measurements is ours."""

from __future__ import annotations

from collections.abc import Sequence

from hermetic.audit.cluster_scope import network_ids_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import Judgement, fails, passes
from hermetic.audit.hops import Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.topology import PlaceKind

PARTNER = "partner solution"


def sent(
    estate: Estate, policy: Policy, resource: str, sinks: Sequence[tuple[str, str]], *observations: Observation
) -> Judgement:
    """Fail where a destination is in no subscription of ours. `sinks`: the kind and the ARM id of each destination."""
    ours = (estate.cluster, *network_ids_of(estate))
    others = [(word, one) for word, one in sinks if word == PARTNER or not policy.owns(one, *ours)]
    if not others:
        words = f"logs go to {', '.join(f'{word} {name_of(one)}' for word, one in sinks)}, in subscriptions of ours"
        return passes(resource, "OurSink", words, *observations)
    words = f"logs are sent to what is not ours: {', '.join(f'{word} {one}' for word, one in others)}"
    paths = tuple(path_of("cluster", "azure monitor", _sink(word)) for word, _ in others)
    return fails(resource, "ForeignSink", words, *observations, paths=paths)


def _sink(word: str) -> Hop:
    kind = PlaceKind.STORAGE if word == "storage account" else PlaceKind.OTHER
    return Hop(kind, f"{word} of another subscription")

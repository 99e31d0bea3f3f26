"""Whether the targets that Azure sends to are in subscriptions of ours."""

from __future__ import annotations

from collections.abc import Sequence

from hermetic.audit.cluster.members import network_ids_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.results import CheckResult, fails, passes
from hermetic.audit.model.hops import Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy

PARTNER = "partner solution"


def sent(
    estate: Estate, policy: Policy, resource: str, sinks: Sequence[tuple[str, str]], *observations: Observation
) -> CheckResult:
    """Fail where a destination is in no subscription of ours. `sinks`: the kind and the ARM id of each destination."""
    ours = (estate.cluster, *network_ids_of(estate))
    foreign_sinks = [(kind, sink) for kind, sink in sinks if kind == PARTNER or not policy.owns(sink, *ours)]
    if not foreign_sinks:
        message = f"logs go to {', '.join(f'{kind} {name_of(sink)}' for kind, sink in sinks)}, in subscriptions of ours"
        return passes(resource, "OurSink", message, *observations)
    message = f"logs are sent to what is not ours: {', '.join(f'{kind} {sink}' for kind, sink in foreign_sinks)}"
    paths = tuple(path_of("cluster", "azure monitor", hop_of(kind)) for kind, _ in foreign_sinks)
    return fails(resource, "ForeignSink", message, *observations, paths=paths)


def hop_of(kind: str) -> Hop:
    """The hop of a target that is not ours."""
    kind_of_place = PlaceKind.STORAGE if kind == "storage account" else PlaceKind.OTHER
    return Hop(kind_of_place, f"{kind} of another subscription")

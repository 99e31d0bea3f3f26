"""Vantages of the probe (pod network, node network), and the order in which its results are weighed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter

from hermetic.api.text import first_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.evaluation.each_resource import whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import Hop, Path
from hermetic.audit.model.topology import PlaceKind

POD, HOST = False, True
"""Values of `host_network`: a pod in the cluster's own network, or in the machine's."""
BOTH = (POD, HOST)


@dataclass(frozen=True, slots=True)
class ProbePlace:
    """The machines of one pool in one subnet, and the probe runs on them."""

    pool: str
    subnet: str
    runs: tuple[ProbeRun, ...]

    @property
    def resource(self) -> str:
        """The resource of a finding: the pool's subnet, where a correction starts."""
        return f"agentPools/{self.pool}/subnets/{self.subnet}"

    def seen_from(self, vantages: Iterable[bool]) -> tuple[ProbeRun, ...]:
        vantage_set = frozenset(vantages)
        return tuple(run for run in self.runs if run.host_network in vantage_set)


@dataclass(frozen=True, slots=True)
class OpenPath:
    """An open path: a message, and its hops."""

    message: str
    path: Path = ()


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason why the absence of an answer does not count."""

    reason: str
    message: str
    remedy: str = ""


def each_place(estate: Estate, evaluate: Callable[[ProbePlace], Iterable[CheckResult]]) -> Iterator[CheckResult]:
    """Apply `evaluate` to every pool and subnet with a run; Unknown without any run."""
    runs: Listing[ProbeRun] = estate.every(ProbeRun, estate.cluster)
    runs_by_place: dict[tuple[str, str], list[ProbeRun]] = {}
    for run in runs:
        runs_by_place.setdefault((run.pool, run.subnet), []).append(run)
    for (pool, subnet), of_place in sorted(runs_by_place.items(), key=itemgetter(0)):
        yield from evaluate(ProbePlace(pool, subnet, tuple(of_place)))
    yield from whole_or_unknown(estate.cluster, "the runs of the probe", runs)
    if not runs_by_place:
        yield unknown(estate.cluster, "NoProbeRun", "no pod of the probe has answered", runs)


def weigh(
    probe_place: ProbePlace,
    vantages: tuple[bool, ...],
    *,
    reason: str,
    find_open_paths: Callable[[ProbeRun], Iterable[OpenPath]],
    doubts: Callable[[ProbeRun], Iterable[Doubt]],
    silence: str,
) -> CheckResult:
    """Any open path fails. A pass needs a run of every vantage, each with its positive control, and no doubt."""
    runs = probe_place.seen_from(vantages)
    if open_paths := [open_path for run in runs for open_path in find_open_paths(run)]:
        paths = tuple(dict.fromkeys(open_path.path for open_path in open_paths if open_path.path))
        return fails(
            probe_place.resource, reason, _joined(open_path.message for open_path in open_paths), *runs, paths=paths
        )
    if missing := [vantage for vantage in vantages if not probe_place.seen_from((vantage,))]:
        names = " and ".join("host network pod" if vantage is HOST else "pod" for vantage in missing)
        return unknown(probe_place.resource, "VantageMissing", f"no {names} of the probe has answered from here", *runs)
    if mute := [run.node for run in runs if not run.report.control_answered]:
        message = f"the positive control did not answer on {_joined(mute)}: this silence means nothing"
        return unknown(probe_place.resource, "ControlSilent", message, *runs)
    if doubt := next((doubt for run in runs for doubt in doubts(run)), None):
        return unknown(probe_place.resource, doubt.reason, doubt.message, *runs, remedy=doubt.remedy)
    return passes(probe_place.resource, "NothingAnswered", silence, *runs)


def on_each_machine(
    estate: Estate,
    reason: str,
    find_open_paths: Callable[[ProbeRun], Iterable[OpenPath]],
    doubts: Callable[[ProbeRun], Iterable[Doubt]],
    silence: str,
) -> Iterator[CheckResult]:
    """Evaluate what only a pod in the machine's own network can observe."""

    def evaluate(probe_place: ProbePlace) -> Iterator[CheckResult]:
        yield weigh(
            probe_place, (HOST,), reason=reason, find_open_paths=find_open_paths, doubts=doubts, silence=silence
        )

    return each_place(estate, evaluate)


def _joined(messages: Iterable[str]) -> str:
    """Each message once, at most six, since a machine without any restriction would yield many."""
    return first_of(list(dict.fromkeys(messages)), 6, "; ")


def start_of(run: ProbeRun) -> Path:
    """The first hops of every path of this run."""
    inside = hops.node(f"node {run.node}") if run.host_network else hops.pod(f"pod on node {run.node}")
    return (Hop(PlaceKind.POOL, f"pool {run.pool}"), inside)

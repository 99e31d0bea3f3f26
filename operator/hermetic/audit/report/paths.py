"""The topology of a report: the network as the paths of its findings show it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from hermetic.audit.findings import Finding, Report, Severity, Verdict, worst_first
from hermetic.audit.hops import Hop, Path, shown
from hermetic.audit.report.resources import short_name
from hermetic.audit.topology import NetworkLink, NetworkPlace, PlaceKind, Topology

OPEN, MASKED, ACCEPTED, UNDECIDED = "open", "masked", "accepted", "not decided"
_STATES = (OPEN, MASKED, ACCEPTED, UNDECIDED)
_WEIGHTS = {Severity.CRITICAL: 3, Severity.HIGH: 2}


@dataclass(frozen=True, slots=True)
class DrawnPath:
    """One path, hop by hop, its state, and the severity of the worst finding that has it."""

    hops: Path
    state: str
    severity: Severity = Severity.HIGH

    @property
    def inbound(self) -> bool:
        """Whether it leads in from the internet."""
        return bool(self.hops) and self.hops[0].kind is PlaceKind.INTERNET

    @property
    def weight(self) -> int:
        """3 for critical, 2 for high, 1 for the rest."""
        return _WEIGHTS.get(self.severity, 1)


@dataclass(frozen=True, slots=True)
class PathBundle:
    """Paths drawn as one: of the same state and weight, with one hop or several of a kind at each position."""

    hops: tuple[Path, ...]
    ways: tuple[DrawnPath, ...]

    @property
    def worst(self) -> DrawnPath:
        """The path that determines how all of them are drawn."""
        return self.ways[0]


def drawn_paths(report: Report) -> list[DrawnPath]:
    """The paths to draw, the worst first: every path of a finding."""
    drawn = [
        (finding, DrawnPath(shown(path), _state(finding), finding.severity))
        for finding in worst_first(report.findings)
        for path in finding.paths
    ]
    ways: dict[Path, DrawnPath] = {}
    for _, way in sorted(drawn, key=_rank):
        ways.setdefault(way.hops, way)
    return list(ways.values())


def _rank(drawn: tuple[Finding, DrawnPath]) -> tuple[bool, int, int]:
    """Sort key: an open path of a warning comes before an undecided path of a more severe finding.

    Derived findings come last: they repeat the paths of their parts with less detail.
    """
    finding, way = drawn
    return finding.derived_from is not None, _STATES.index(way.state), way.severity.rank


def bundles_of(ways: Iterable[DrawnPath]) -> list[PathBundle]:
    """Merge parallel paths: those that differ in one hop, and there only in its name. The order of paths is kept."""
    bundles = [PathBundle(tuple((hop,) for hop in way.hops), (way,)) for way in ways]
    for place in range(max((len(one.hops) for one in bundles), default=0)):
        merged: dict[tuple[object, ...], PathBundle] = {}
        for one in bundles:
            key = _parallel(one, place)
            known = merged.get(key)
            merged[key] = one if known is None else _joined(known, one, place)
        bundles = list(merged.values())
    return bundles


def _parallel(one: PathBundle, place: int) -> tuple[object, ...]:
    """The grouping key of bundles that differ at most at one position."""
    way = one.worst
    drawn_as = (way.state, way.weight, way.inbound)
    if place >= len(one.hops):
        return (*drawn_as, one.hops)
    return (*drawn_as, one.hops[place][0].kind, one.hops[:place], one.hops[place + 1 :])


def _joined(one: PathBundle, other: PathBundle, place: int) -> PathBundle:
    if place >= len(one.hops):
        return replace(one, ways=(*one.ways, *other.ways))
    names = tuple(dict.fromkeys((*one.hops[place], *other.hops[place])))
    return PathBundle((*one.hops[:place], names, *one.hops[place + 1 :]), (*one.ways, *other.ways))


def topology_of(report: Report) -> Topology:
    """The cluster and every path of a finding, parallel ones as one.

    A path of a Fail is open, and labelled where something masks it today. One of an accepted Fail is open too, and
    labelled as accepted: an exception closes nothing. Any other path is drawn as not known to be open.
    """
    cluster = NetworkPlace(report.cluster.lower(), PlaceKind.CLUSTER, short_name(report.cluster))
    places = {cluster.id: cluster}
    links: dict[tuple[str, str], NetworkLink] = {}
    for bundle in bundles_of(drawn_paths(report)):
        way, hops = bundle.worst, [_place(hops) for hops in bundle.hops]
        label = way.state if way.state in {ACCEPTED, MASKED} else ""
        for source, target in pairwise(_from_the_cluster(cluster, hops)):
            # the worst path comes first, and its state of a link is kept
            link = NetworkLink(source.id, target.id, way.state != UNDECIDED, label, way.state, way.inbound, way.weight)
            links.setdefault((source.id, target.id), link)
            places |= {place.id: places.get(place.id, place) for place in (source, target)}
    if not links and report.verdict is Verdict.PASS:
        # two boxes without a link: only for a Pass
        places["internet"] = NetworkPlace("internet", PlaceKind.INTERNET, "internet")
    return Topology(tuple(places.values()), tuple(links.values()))


def _from_the_cluster(cluster: NetworkPlace, hops: list[NetworkPlace]) -> list[NetworkPlace]:
    """A path out begins at the cluster; a path in begins at an internet box separate from that of paths out."""
    if hops and hops[0].kind is PlaceKind.INTERNET:
        return [replace(hops[0], id=f"from {hops[0].id}"), *hops[1:]]
    return [cluster, *hops]


def _place(hops: tuple[Hop, ...]) -> NetworkPlace:
    """One box; the kind is shown above the label, so "nat gateway nat-egress" gets the label "nat-egress"."""
    kind = hops[0].kind
    labels = [hop.label for hop in hops]
    label = ", ".join(one[len(kind) :].strip() or one if one.lower().startswith(f"{kind} ") else one for one in labels)
    return NetworkPlace("\n".join(sorted(one.lower() for one in labels)), kind, label, len(hops))


def _state(finding: Finding) -> str:
    if finding.verdict is Verdict.FAIL:
        return MASKED if finding.masked else OPEN
    accepted = finding.exception is not None and finding.exception.accepted is Verdict.FAIL
    return ACCEPTED if accepted else UNDECIDED

"""The topology of a report: the network as the paths of its findings show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hermetic.audit.model.findings import Finding, Severity, Verdict, worst_first
from hermetic.audit.model.hops import Hop, Path, shown
from hermetic.audit.model.topology import NetworkLink, NetworkPlace, PlaceKind, Topology
from hermetic.audit.report.resources import short_name
from hermetic.audit.result.report import Report

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
    paths: tuple[DrawnPath, ...]

    @property
    def worst(self) -> DrawnPath:
        """The path that determines how all of them are drawn."""
        return self.paths[0]


def drawn_paths(report: Report) -> list[DrawnPath]:
    """The paths to draw, the worst first: every path of a finding."""
    drawn = [
        (finding, DrawnPath(shown(path), _state(finding), finding.severity))
        for finding in worst_first(report.findings)
        for path in finding.paths
    ]
    paths_by_hops: dict[Path, DrawnPath] = {}
    for _, drawn_path in sorted(drawn, key=_rank):
        paths_by_hops.setdefault(drawn_path.hops, drawn_path)
    return list(paths_by_hops.values())


def _rank(drawn: tuple[Finding, DrawnPath]) -> tuple[bool, int, int]:
    """Sort key: an open path of a warning comes before an undecided path of a more severe finding.

    Derived findings come last: they repeat the paths of their parts with less detail.
    """
    finding, drawn_path = drawn
    return finding.derived_from is not None, _STATES.index(drawn_path.state), drawn_path.severity.rank


def bundles_of(paths: Iterable[DrawnPath]) -> list[PathBundle]:
    """Merge parallel paths: those that differ in one hop, and there only in its name. The order of paths is kept."""
    bundles = [PathBundle(tuple((hop,) for hop in drawn_path.hops), (drawn_path,)) for drawn_path in paths]
    for position in range(max((len(bundle.hops) for bundle in bundles), default=0)):
        merged: dict[tuple[object, ...], PathBundle] = {}
        for bundle in bundles:
            key = _parallel(bundle, position)
            existing = merged.get(key)
            merged[key] = bundle if existing is None else _joined(existing, bundle, position)
        bundles = list(merged.values())
    return bundles


def _parallel(path_bundle: PathBundle, position: int) -> tuple[object, ...]:
    """The grouping key of bundles that differ at most at one position."""
    worst_path = path_bundle.worst
    drawn_as = (worst_path.state, worst_path.weight, worst_path.inbound)
    if position >= len(path_bundle.hops):
        return (*drawn_as, path_bundle.hops)
    return (
        *drawn_as,
        path_bundle.hops[position][0].kind,
        path_bundle.hops[:position],
        path_bundle.hops[position + 1 :],
    )


def _joined(path_bundle: PathBundle, other: PathBundle, position: int) -> PathBundle:
    if position >= len(path_bundle.hops):
        return replace(path_bundle, paths=(*path_bundle.paths, *other.paths))
    names = tuple(dict.fromkeys((*path_bundle.hops[position], *other.hops[position])))
    return PathBundle(
        (*path_bundle.hops[:position], names, *path_bundle.hops[position + 1 :]), (*path_bundle.paths, *other.paths)
    )


def topology_of(report: Report, paths: Sequence[DrawnPath] | None = None) -> Topology:
    """The cluster and these paths, by default every path of a finding; parallel ones as one.

    A path of a Fail is open, and labelled where something masks it today. One of an accepted Fail is open too, and
    labelled as accepted: an exception closes nothing. Any other path is drawn as not known to be open.
    """
    cluster = NetworkPlace(report.cluster.lower(), PlaceKind.CLUSTER, short_name(report.cluster))
    nodes_by_id = {cluster.id: cluster}
    links: dict[tuple[str, str], NetworkLink] = {}
    for bundle in bundles_of(drawn_paths(report) if paths is None else paths):
        worst_path, hops = bundle.worst, [_place(hops) for hops in bundle.hops]
        label = worst_path.state if worst_path.state in {ACCEPTED, MASKED} else ""
        for source, target in pairwise(_from_the_cluster(cluster, hops)):
            # the worst path comes first, and its state of a link is kept
            link = NetworkLink(
                source.id,
                target.id,
                worst_path.state != UNDECIDED,
                label,
                worst_path.state,
                worst_path.inbound,
                worst_path.weight,
            )
            links.setdefault((source.id, target.id), link)
            nodes_by_id |= {node.id: nodes_by_id.get(node.id, node) for node in (source, target)}
    if not links and report.verdict is Verdict.PASS:
        # two boxes without a link: only for a Pass
        nodes_by_id["internet"] = NetworkPlace("internet", PlaceKind.INTERNET, "internet")
    return Topology(tuple(nodes_by_id.values()), tuple(links.values()))


def _from_the_cluster(cluster: NetworkPlace, hops: list[NetworkPlace]) -> list[NetworkPlace]:
    """A path out begins at the cluster; a path in begins at an internet box separate from that of paths out."""
    if hops and hops[0].kind is PlaceKind.INTERNET:
        return [replace(hops[0], id=f"from {hops[0].id}"), *hops[1:]]
    return [cluster, *hops]


def _place(hops: tuple[Hop, ...]) -> NetworkPlace:
    """One box; the kind is shown above the label, so "nat gateway nat-egress" gets the label "nat-egress"."""
    kind = hops[0].kind
    labels = [hop.label for hop in hops]
    label = ", ".join(
        label[len(kind) :].strip() or label if label.lower().startswith(f"{kind} ") else label for label in labels
    )
    return NetworkPlace("\n".join(sorted(label.lower() for label in labels)), kind, label, len(hops))


def _state(finding: Finding) -> str:
    if finding.verdict is Verdict.FAIL:
        return MASKED if finding.masked else OPEN
    accepted = finding.exception is not None and finding.exception.accepted is Verdict.FAIL
    return ACCEPTED if accepted else UNDECIDED

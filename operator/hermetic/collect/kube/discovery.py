"""API discovery: the kinds that the API server serves, in one request where the server supports that.

Kubernetes answers GET /apis with all groups, versions and resources at once (aggregated discovery, on by default since
1.27). An older server names the groups only, and each version is requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.audit.findings import Evidence
from hermetic.collect.kube.list_requests import digest_of
from hermetic.errors import HermeticError, ServerTrouble
from hermetic.ports import ClusterReader

ALL_GROUPS = "/apis"
AGGREGATED = "APIGroupDiscoveryList"


@dataclass(slots=True)
class Group:
    """Kinds by plural name: (kind, versions). `stale` are versions whose server did not answer."""

    kinds: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    read_by: list[Evidence] = field(default_factory=list)

    def serve(self, plural: str, kind: str, version: str) -> None:
        """Add a kind, or a version of it."""
        self.kinds.setdefault(plural, (kind, []))[1].append(version)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All kinds outside of the core group that are served, and the documents that show it."""

    groups: Mapping[str, Group]
    evidence: Evidence

    def shows_absence(self, group: str, plural: str) -> tuple[Evidence, ...]:
        """The documents which together show that no version of the kind is served; none when they do not."""
        found = self.groups.get(group)
        if found is None:
            return (self.evidence,)
        if plural in found.kinds or found.stale:
            return ()
        return (self.evidence, *found.read_by)

    def version_of(self, group: str, plural: str, versions: Iterable[str]) -> str:
        """The first of these versions in which the kind is served; "" where none is."""
        found = self.groups.get(group)
        served = found.kinds[plural][1] if found is not None and plural in found.kinds else []
        return next((one for one in versions if one in served), "")

    @property
    def documents(self) -> tuple[Evidence, ...]:
        """All documents that were read."""
        return (self.evidence, *(one for group in self.groups.values() for one in group.read_by))

    @property
    def bodies(self) -> Iterator[dict[str, Any]]:
        """The groups as answers, in one order."""
        for name, group in sorted(self.groups.items()):
            kinds = [
                {"plural": plural, "kind": kind, "versions": sorted(versions)}
                for plural, (kind, versions) in sorted(group.kinds.items())
            ]
            yield {"id": name, "kinds": kinds, "stale": sorted(group.stale)}


async def catalogue(api: ClusterReader) -> Catalogue:
    """What is served now. Raises the leaves of `errors`; a document of another shape is a ServerTrouble."""
    whole = await api.discovered(ALL_GROUPS)
    try:
        if whole.get("kind") == AGGREGATED:
            groups = {one["metadata"]["name"]: _aggregated(one) for one in whole["items"]}
        else:
            groups = {one["name"]: await _by_version(api, one) for one in whole["groups"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise ServerTrouble(f"not a discovery document: {error!r}", status=200) from error
    return Catalogue(groups, Evidence(f"GET {ALL_GROUPS}", 200, digest_of((whole,))))


def _aggregated(one: Mapping[str, Any]) -> Group:
    group = Group()
    for version in one["versions"]:
        if version.get("freshness", "Current") != "Current":
            group.stale.append(version["version"])
        for served in version.get("resources") or ():
            group.serve(served["resource"], (served.get("responseKind") or {}).get("kind", ""), version["version"])
    return group


async def _by_version(api: ClusterReader, one: Mapping[str, Any]) -> Group:
    group = Group()
    for version in one["versions"]:
        path = f"{ALL_GROUPS}/{one['name']}/{version['version']}"
        try:
            document = await api.discovered(path)
        except HermeticError:
            group.stale.append(version["version"])
            continue
        group.read_by.append(Evidence(f"GET {path}", 200, digest_of((document,))))
        for served in document["resources"]:
            if "/" not in served["name"]:
                group.serve(served["name"], served.get("kind", ""), version["version"])
    return group

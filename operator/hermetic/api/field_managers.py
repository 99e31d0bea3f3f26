"""Which field manager wrote an object, or a field of it, last, from metadata.managedFields.

A client chooses the name of its field manager: it shows where to look first, and proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hermetic.api.public_services import CLASS, INTERNAL, PRIVATE_FRONT, PUBLIC_SIDE, PUBLISHES
from hermetic.api.text import one_line

OURS = ("hermetic", "Apply")
LONGEST_NAME = 128
LONGEST_MOMENT = 32
# Garbage collectors, finalizers and clients that label objects write only these, which make nothing public.
_ASIDE = frozenset({"f:labels", "f:finalizers", "f:ownerReferences"})


Place = tuple[str, ...]
MOST_HOLDERS = 8


def annotation(name: str) -> Place:
    """The path of an annotation."""
    return ("metadata", "annotations", name)


SPEC: Place = ("spec",)
DATA: Place = ("data",)
TEMPLATE: Place = ("spec", "template")
JOB_TEMPLATE: Place = ("spec", "jobTemplate", "spec", "template")
CONTAINERS: tuple[Place, ...] = (("spec", "containers"), ("spec", "initContainers"))
VOLUMES: Place = ("spec", "volumes")
LABELS: Place = ("metadata", "labels")
ANNOTATIONS: Place = ("metadata", "annotations")
"""Places in a pod, and in a template below `TEMPLATE` or `JOB_TEMPLATE`."""

BLAMED: tuple[Place, ...] = (
    SPEC, DATA, TEMPLATE, JOB_TEMPLATE,
    *(("spec", name) for name in (
        "type", "externalName", "externalIPs", "loadBalancerClass", "egress", "rules", "defaultBackend",
        "ingressClassName", "gatewayClassName", "addresses", "conversion",
    )),
    ("endpoints",), ("webhooks",),
    *map(annotation, (INTERNAL, *PUBLIC_SIDE, *PUBLISHES, CLASS, PRIVATE_FRONT)),
    *(
        (*root, *path) for root in (TEMPLATE, JOB_TEMPLATE) for path in (
            *CONTAINERS, VOLUMES, ("spec", "hostNetwork"), ("spec", "hostPID"), ("spec", "hostIPC"),
            ("spec", "securityContext"), ("spec", "dnsConfig"), ANNOTATIONS, LABELS,
        )
    ),
)  # fmt: skip
"""The places of which it is kept who wrote them, where that is not who wrote the object last."""


def newest(managed: Any) -> list[dict[str, str]]:
    """Of metadata.managedFields, the newest entry of others that is not about the status, without its fields; bounded.

    An entry with only labels, finalizers or owners counts only if there is no other.
    """
    return [_named(max(written, key=_age))] if (written := _written(managed)) else []


def record(managed: Any) -> list[dict[str, Any]]:
    """Of metadata.managedFields, the newest entry and those that contain a path of `BLAMED`; bounded.

    Each keeps only the paths of which it is the newest writer; a single entry keeps no fields.
    """
    written = _written(managed)
    if not written:
        return []
    last = max(written, key=_age)
    paths_of: dict[int, list[Place]] = {id(last): []}
    for path in BLAMED:
        holders = [entry for entry in written if _holds(entry, path)]
        if holders and (id(holder := max(holders, key=_age)) in paths_of or len(paths_of) < MOST_HOLDERS):
            paths_of.setdefault(id(holder), []).append(path)
    recorded = [entry for entry in written if id(entry) in paths_of]
    return [_named(entry) | (_fields(paths_of[id(entry)]) if len(recorded) > 1 else {}) for entry in recorded]


def last_writer(managed: Any, *paths: Place) -> str:
    """The last writer of the first of these paths that has one, else of the object, as one bounded line.

    "'kubectl' (Update, 2026-11-22T10:00:00Z)"; "" if not known.
    """
    written = _written(managed)
    for path in paths:
        if holders := [entry for entry in written if _holds(entry, path)]:
            return _words(_named(max(holders, key=_age)))
    return next((_words(last) for last in newest(managed)), "")


def _written(managed: Any) -> list[Mapping[str, Any]]:
    entries = [entry for entry in managed if isinstance(entry, dict)] if isinstance(managed, list) else []
    of_others = (entry for entry in entries if (entry.get("manager"), entry.get("operation")) != OURS)
    return [entry for entry in of_others if entry.get("manager") and not entry.get("subresource")]


def _age(entry: Mapping[str, Any]) -> tuple[bool, str, str]:
    return (_has_content(entry), str(entry.get("time") or ""), str(entry["manager"]))


def _named(entry: Mapping[str, Any]) -> dict[str, str]:
    longest = {"manager": LONGEST_NAME, "operation": LONGEST_MOMENT, "time": LONGEST_MOMENT}
    return {name: str(entry[name])[:length] for name, length in longest.items() if entry.get(name)}


def _words(last: Mapping[str, str]) -> str:
    how = ", ".join(last[name] for name in ("operation", "time") if name in last)
    return one_line(f"'{last['manager']}'" + (f" ({how})" if how else ""))


def _holds(entry: Mapping[str, Any], path: Place) -> bool:
    fields = entry.get("fieldsV1")
    for name in path:
        fields = fields.get(f"f:{name}") if isinstance(fields, Mapping) else None
    return fields is not None


def _fields(paths: Iterable[Place]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for path in paths:
        inner = fields
        for name in _spelled(path):
            inner = inner.setdefault(name, {})
    return {"fieldsV1": fields} if fields else {}


def _spelled(path: Place) -> Iterator[str]:
    return (f"f:{name}" for name in path)


def written_by(writer: str) -> str:
    """The end of a message: "; written by field manager 'kubectl' (Update, ...)"; "" for no writer."""
    return f"; written by field manager {writer}" if writer else ""


def _has_content(entry: Mapping[str, Any]) -> bool:
    """Whether it contains more than `_ASIDE`; True if its fields were not kept."""
    fields = entry.get("fieldsV1")
    if not isinstance(fields, Mapping) or not fields:
        return True
    metadata = fields.get("f:metadata")
    inner = metadata.keys() if isinstance(metadata, Mapping) else ()
    return bool(fields.keys() - {"f:metadata"}) or any(name not in _ASIDE for name in inner)

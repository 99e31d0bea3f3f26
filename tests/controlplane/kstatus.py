"""How Flux and `kubectl wait` read an object: kstatus' own rules, written from its description, as an oracle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, Literal

from testbed.api import Api

Verdict = Literal["Terminating", "InProgress", "Failed", "Current"]
Seen = Mapping[str, Any]


def kstatus(manifest: Seen) -> Verdict:
    """The verdict of kstatus on a custom resource."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    for condition in status.get("conditions") or ():
        if condition["type"] == "Reconciling" and condition["status"] == "True":
            return "InProgress"
        if condition["type"] == "Stalled" and condition["status"] == "True":
            return "Failed"
    ready = condition_of(manifest, "Ready")
    return "Current" if ready is None or ready["status"] == "True" else "InProgress"


def waits_for(manifest: Seen, kind: str) -> bool:
    """Whether `kubectl wait --for=condition=KIND` would go on waiting."""
    condition = condition_of(manifest, kind)
    if condition is None or condition["status"] != "True":
        return True
    observed = condition.get("observedGeneration") or (manifest.get("status") or {}).get("observedGeneration")
    return observed is not None and observed < manifest["metadata"]["generation"]


def condition_of(manifest: Seen, kind: str) -> Mapping[str, Any] | None:
    conditions = (manifest.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), None)


def history(api: Api, collection: str, since: str) -> dict[str, list[dict[str, Any]]]:
    """Every revision of every object after a resourceVersion, in order, by name: the API server's own record.

    Raises ApiError (410) when the record does not reach back that far: nothing is ever left out in silence.
    """
    revisions_by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in api.watch(collection, since, seconds=1):
        revisions_by_name[event["object"]["metadata"]["name"]].append(event["object"])
    return revisions_by_name


def revisions(api: Api, collection: str, since: str, name: str) -> list[dict[str, Any]]:
    """The history of one object."""
    return history(api, collection, since)[name]


def newest(api: Api, collection: str) -> str:
    """The resourceVersion of now."""
    version: str = api.get(collection)["metadata"]["resourceVersion"]
    return version


def contradictions(manifest: Seen) -> Iterator[str]:
    """What no revision may ever show."""
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    where = f"revision {metadata['resourceVersion']} of generation {metadata['generation']}"
    true = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    if {"Reconciling", "Stalled"} <= true:
        yield f"{where}: Reconciling and Stalled"
    if "Ready" in true and true & {"Reconciling", "Stalled"}:
        yield f"{where}: Ready and {true & {'Reconciling', 'Stalled'}}"
    if kstatus(manifest) == "Current" and status.get("observedGeneration") != metadata["generation"]:
        yield f"{where}: Current without having been looked at"
    ready = condition_of(manifest, "Ready")
    if ready is not None and ready["status"] != "True" and not true & {"Reconciling", "Stalled"}:
        yield f"{where}: not Ready, and neither on its way nor stuck"
    for condition in status.get("conditions") or ():
        if condition["observedGeneration"] != status["observedGeneration"]:
            yield f"{where}: {condition['type']} vouches for another generation than the status"


def course(revisions: list[dict[str, Any]]) -> list[Verdict]:
    """The verdicts in order, each said once until it changes."""
    return [verdict for verdict, _ in groupby(revisions, kstatus)]

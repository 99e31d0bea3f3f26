"""Plans of a deployment against a snapshot, and the snapshots that others changed."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.writes import Plan
from tests.scenarios import Manifest, a_share_model, changed
from tests.snapshots import (
    NOW,
    a_snapshot,
    children_of,
    owner_of,
    rendered,
    serving,
    spec_of,
)


def planned(manifest: Manifest, snapshot: ClusterSnapshot) -> Plan:
    return plan(spec_of(manifest), snapshot, NOW)


def written(decided: Plan) -> list[tuple[str, str]]:
    return [(change.manifest["kind"], change.why) for change in decided.apply]


def running(manifest: Manifest, pods: int = 1, **seen: Any) -> ClusterSnapshot:
    return serving(a_snapshot(owner_of(manifest), children=children_of(manifest), **seen), pods)


def edited(snapshot: ClusterSnapshot, kind: str, edit: Callable[[dict[str, Any]], Any]) -> ClusterSnapshot:
    children = copy.deepcopy(dict(snapshot.children))
    edit(next(child for child in children.values() if child["kind"] == kind))
    return replace(snapshot, children=children)


def without(snapshot: ClusterSnapshot, kind: str) -> ClusterSnapshot:
    return replace(snapshot, children={key: child for key, child in snapshot.children.items() if key[0] != kind})


def of_another_source() -> Manifest:
    files = a_share_model()["spec"]["weights"]["azureFiles"]
    return changed(a_share_model(), weights={"azureFiles": {**files, "folder": "another"}})


def a_pod(manifest: Manifest, **status: Any) -> Manifest:
    """A pod of the template that this deployment renders."""
    mark = rendered(manifest)["Deployment"]["spec"]["template"]["metadata"]["labels"][TEMPLATE_LABEL]
    name = f"llama-{mark}"
    return {"kind": "Pod", "metadata": {"name": name, "uid": name, "labels": {TEMPLATE_LABEL: mark}}, "status": status}

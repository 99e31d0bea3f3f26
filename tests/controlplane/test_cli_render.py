"""What `hermetic render` prints of a live ModelDeployment is what the operator applied: every field, and no other.

The API server keeps the book: metadata.managedFields names, for the manager `hermetic`, every field of its last apply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hermetic.api.quantities import parse_quantity
from hermetic.kinds import BY_KIND
from testbed.api import Api
from testbed.installation import OperatorProcess, wait_for
from testbed.kubectl import Kubectl
from tests.commandline import hermetic
from tests.controlplane.operator_fixtures import StartOperator
from tests.kubernetes_models import OF_KUBERNETES
from tests.renderings import RENDERINGS, SHARES
from tests.scenarios import Manifest, a_share_model, reporting

QUANTITIES = {"requests", "limits", "capacity", "sizeLimit"}
IDENTITY = {"": {"apiVersion", "kind"}, "metadata": {"name", "namespace"}}


@pytest.fixture
def operator(start_operator: StartOperator) -> OperatorProcess:
    return start_operator(shares=SHARES)


def test_rendered_objects_are_field_for_field_what_was_applied(
    operator: OperatorProcess, kubectl: Kubectl, api: Api, namespace: str
) -> None:
    within = kubectl.within(namespace)
    within.apply(*(reporting(manifest) for manifest in RENDERINGS.values()))
    names = [manifest["metadata"]["name"] for manifest in RENDERINGS.values()]
    for name in names:
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{name}"
        wait_for(f"Deployment {name}", lambda path=path: api.get(path), operator)

    shown = within("get", "modeldeployments.hermetic.dev", "--output", "yaml")
    ran = hermetic("render", "-f", "-", stdin=shown)

    assert ran.code == 0
    notes = ran.err.splitlines()
    assert all("`weights.imageVolume` needs Kubernetes 1.35" in note for note in notes), ran.err
    assert len(notes) == sum("imageVolume" in manifest["spec"]["weights"] for manifest in RENDERINGS.values())
    rendered = list(yaml.safe_load_all(ran.out))
    assert {manifest["metadata"]["name"] for manifest in rendered if manifest["kind"] == "Deployment"} == set(names)
    differences = [difference for manifest in rendered for difference in compared(manifest, live(api, manifest))]
    assert not differences, "\n".join(differences)
    assert all(list(compared(altered, live(api, altered))) for altered in altered_copies(rendered)), "sees nothing"
    assert applied_by_hermetic(api, namespace) == {
        (manifest["kind"], manifest["metadata"]["name"]) for manifest in rendered
    }


def altered_copies(rendered: list[Manifest]) -> Iterator[Manifest]:
    """A Deployment with one field more, one field less, another value, and an item less: each must be noticed."""
    deployment = next(manifest for manifest in rendered if manifest["kind"] == "Deployment")
    spec = deployment["spec"]
    pod = spec["template"]["spec"]
    yield {**deployment, "spec": {**spec, "minReadySeconds": 1}}
    yield {**deployment, "spec": {key: value for key, value in spec.items() if key != "replicas"}}
    yield {**deployment, "spec": {**spec, "revisionHistoryLimit": 3}}
    fewer = {**spec["template"], "spec": {**pod, "volumes": pod["volumes"][1:]}}
    yield {**deployment, "spec": {**spec, "template": fewer}}


def test_volumes_for_the_platform_team_bind_to_each_other(kubectl: Kubectl, api: Api, namespace: str) -> None:
    ran = hermetic("render", "--volumes", "-n", namespace, "-f", "-", stdin=json.dumps(a_share_model()))
    volume, claim = yaml.safe_load_all(ran.out)
    kubectl.within(namespace)("apply", "--filename=-", stdin=ran.out)
    path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim['metadata']['name']}"
    try:
        wait_for("claim bound", lambda: api.get(path)["status"].get("phase") == "Bound")
    finally:
        api.delete(f"/api/v1/persistentvolumes/{volume['metadata']['name']}")


def live(api: Api, rendered: Manifest) -> Manifest:
    metadata = rendered["metadata"]
    return api.get(BY_KIND[rendered["kind"]].path(metadata.get("namespace"), metadata["name"]))


def applied_by_hermetic(api: Api, namespace: str) -> set[tuple[str, str]]:
    """Every object of this namespace, or volume for it, that the operator has applied."""
    names_by_kind: set[tuple[str, str]] = set()
    for kind in OF_KUBERNETES:
        for item in api.get(kind.path(namespace))["items"]:
            of_us = kind.namespaced or (item["spec"].get("claimRef") or {}).get("namespace") == namespace
            if of_us and any(entry["manager"] == "hermetic" for entry in item["metadata"].get("managedFields", ())):
                names_by_kind.add((kind.kind, item["metadata"]["name"]))
    return names_by_kind


def compared(rendered: Manifest, live: Manifest) -> Iterator[str]:
    """What differs between a rendered object and the fields of the live one that `hermetic` owns."""
    (entry,) = (
        field_entry for field_entry in live["metadata"]["managedFields"] if field_entry["manager"] == "hermetic"
    )
    if entry["operation"] != "Apply" or entry.get("subresource"):
        yield f"{rendered['kind']}: {entry['operation']} of {entry.get('subresource') or 'the object'}"
    where = f"{rendered['kind']}/{rendered['metadata']['name']}"
    for difference in fields_differ(rendered, live, entry["fieldsV1"], ""):
        yield f"{where}{difference}"


def fields_differ(rendered: Manifest, live: Any, owned: Manifest, path: str) -> Iterator[str]:
    """`owned` is a node of fieldsV1: 'f:NAME' per field, '.' for the object itself."""
    keys = {key.removeprefix("f:") for key in owned if key != "."}
    expected = rendered.keys() - IDENTITY.get(path.lstrip("."), set())
    yield from (f"{path}.{key}: rendered, and not owned" for key in sorted(expected - keys))
    yield from (f"{path}.{key}: owned, and not rendered" for key in sorted(keys - expected))
    for key in sorted(expected & keys):
        yield from value_differs(rendered[key], (live or {}).get(key), owned[f"f:{key}"], f"{path}.{key}")


def value_differs(rendered: Any, live: Any, owned: Manifest, path: str) -> Iterator[str]:
    if not owned:  # a leaf, or a list or object that is one value to the API server
        if not same(rendered, live, path):
            yield f"{path}: rendered {rendered!r}, live {live!r}"
    elif isinstance(rendered, dict):
        yield from fields_differ(rendered, live, owned, path)
    else:
        yield from items_differ(rendered, live or [], owned, path)


def items_differ(rendered: list[Any], live: list[Any], owned: Manifest, path: str) -> Iterator[str]:
    """Items are told apart by their value ('v:…'), or by the fields that are their key ('k:{…}')."""
    left = dict(owned)
    left.pop(".", None)
    for item in rendered:
        mark = next((key for key in left if is_of(item, key)), None)
        if mark is None:
            yield f"{path}: item {item!r} rendered, and not owned"
            continue
        below = left.pop(mark)
        match = next((item for item in live if is_of(item, mark)), None)
        if match is None:
            yield f"{path}: {item!r} is not there"
        elif mark.startswith("k:"):
            yield from value_differs(item, match, below, f"{path}[{mark}]")
    yield from (f"{path}[{mark}]: owned, and not rendered" for mark in left)


def is_of(item: Any, mark: str) -> bool:
    sort, _, text = mark.partition(":")
    key = json.loads(text)
    if sort == "v":
        return bool(item == key)
    return isinstance(item, dict) and all(item.get(name) == value for name, value in key.items())


def same(rendered: Any, live: Any, path: str) -> bool:
    """Equal; or both empty, which the API server leaves out; or the same quantity, which it writes in its own form."""
    if rendered == live or (rendered in ([], "") and live is None):
        return True
    if isinstance(rendered, dict) and isinstance(live, dict):
        return rendered.keys() <= live.keys() and all(
            same(rendered[key], live[key], f"{path}.{key}") for key in rendered
        )
    if isinstance(rendered, list) and isinstance(live, list) and len(rendered) == len(live):
        return all(same(a, b, path) for a, b in zip(rendered, live, strict=True))
    if not QUANTITIES & set(path.split(".")):
        return False
    return parse_quantity(rendered) == parse_quantity(live)

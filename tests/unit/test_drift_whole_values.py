"""What the API server keeps as one value: an addition by others changes ours, and one more rule opens a policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.plan.tampering.drift import has_drifted
from tests.renderings import RENDERINGS
from tests.snapshots import living, rendered

CHILDREN = rendered(RENDERINGS["everything-said"])


def first_rule(policy: dict[str, Any]) -> dict[str, Any]:
    rule: dict[str, Any] = policy["spec"]["ingress"][0]
    return rule


def clients(policy: dict[str, Any]) -> list[dict[str, Any]]:
    sources: list[dict[str, Any]] = first_rule(policy)["from"]
    return sources


def pod(deployment: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return spec


EDITS: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "policy that selects other pods": (
        "NetworkPolicy", lambda live: live["spec"]["podSelector"]["matchLabels"].update(app="nobody"),
    ),
    "policy with an expression": (
        "NetworkPolicy",
        lambda live: live["spec"]["podSelector"].update(matchExpressions=[{"key": "x", "operator": "Exists"}]),
    ),
    "range of ports": ("NetworkPolicy", lambda live: first_rule(live)["ports"][0].update(endPort=65535)),
    "second port": ("NetworkPolicy", lambda live: first_rule(live)["ports"].append({"port": 22})),
    "clients of every namespace": ("NetworkPolicy", lambda live: clients(live)[-1].update(namespaceSelector={})),
    "another client": ("NetworkPolicy", lambda live: clients(live).append({"podSelector": {}})),
    "Service that selects nothing": ("Service", lambda live: live["spec"]["selector"].update(app="nobody")),
    "budget for other pods": (
        "PodDisruptionBudget", lambda live: live["spec"]["selector"]["matchLabels"].update(app="nobody"),
    ),
    "toleration of everything": (
        "Deployment", lambda live: pod(live)["tolerations"].append({"operator": "Exists"}),
    ),
    "capability": (
        "Deployment", lambda live: pod(live)["containers"][0]["securityContext"]["capabilities"]["drop"].clear(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "edit"), EDITS.values(), ids=list(EDITS))
def test_addition_to_a_whole_value_is_drift(kind: str, edit: Callable[[dict[str, Any]], object]) -> None:
    live = living(CHILDREN[kind])
    edit(live)
    assert has_drifted(CHILDREN[kind], live)


def test_second_owner_beside_us_is_not_our_business() -> None:
    live = living(CHILDREN["Service"])
    live["metadata"]["ownerReferences"].insert(0, {"kind": "Application", "name": "chat", "uid": "another"})
    assert not has_drifted(CHILDREN["Service"], live)


def test_owner_reference_of_ours_that_is_taken_away_is_drift() -> None:
    live = living(CHILDREN["Service"])
    live["metadata"]["ownerReferences"] = [{"kind": "Application", "name": "chat", "uid": "another"}]
    assert has_drifted(CHILDREN["Service"], live)

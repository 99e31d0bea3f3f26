"""What is rendered for a model of several nodes causes no finding of the audit; a wider rule in its place does."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from hermetic.audit.estate.kubernetes.nodes import Namespace
from hermetic.audit.model.findings import Verdict
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.names import Owner
from tests.kubernetes_estates import Manifest, findings, manifest, owned, pod, sealed_cluster
from tests.renderings import GROUP_RENDERINGS
from tests.snapshots import spec_of

TEAM = "team"
WIDER: dict[str, Callable[[dict[str, Any]], object]] = {
    "to every address": lambda rule: rule.update(to=[{"ipBlock": {"cidr": "0.0.0.0/0"}}]),
    "to a public range": lambda rule: rule["to"].append({"ipBlock": {"cidr": "203.0.113.0/24"}}),
    "without a destination": lambda rule: rule.pop("to"),
    "to no peer": lambda rule: rule.update(to=[]),
}


def _as_it_is(_: dict[str, Any]) -> None:
    """The rule as it is rendered."""


def cluster(shape: str, change: Callable[[dict[str, Any]], object] = _as_it_is) -> list[Manifest]:
    """The sealed cluster, and this model with a pod of each rank in a namespace that no other policy closes."""
    model = GROUP_RENDERINGS[shape]
    name, spec = model["metadata"]["name"], spec_of(model)
    platform = PlatformSettings(head_addresses=("10.0.0.7",) * spec.wanted_replicas)
    children = [copy.deepcopy(child) for child in render(Owner(TEAM, name, "u"), spec, platform)]
    for child in children:
        if child["kind"] == "NetworkPolicy" and "-group-" in child["metadata"]["name"]:
            change(child["spec"]["egress"][0])
    pods = [
        pod(
            f"{child['metadata']['name']}-{rank}",
            TEAM,
            labels=child["spec"]["template"]["metadata"]["labels"],
            ownerReferences=owned("StatefulSet", child["metadata"]["name"]),
        )
        for child in children
        if child["kind"] == "StatefulSet"
        for rank in range(spec.accelerator.nodes)
    ]
    return [*sealed_cluster(), manifest(Namespace, TEAM), *children, *pods]


@pytest.mark.parametrize("shape", GROUP_RENDERINGS)
@pytest.mark.parametrize(
    "check",
    ["k8s-default-deny-egress", "k8s-policy-allow-all", "k8s-proxy-env", "k8s-outside-endpoint", "k8s-public-lb"],
)
def test_model_of_several_nodes_as_it_is_rendered_causes_no_finding(check: str, shape: str) -> None:
    reached = findings(check, cluster(shape))
    assert {finding.verdict for finding in reached} == {Verdict.PASS}, reached


@pytest.mark.parametrize("change", WIDER.values(), ids=list(WIDER))
def test_policy_of_a_group_that_was_widened_is_found(change: Callable[[dict[str, Any]], object]) -> None:
    failed = [
        item for item in findings("k8s-policy-allow-all", cluster("group", change)) if item.verdict is Verdict.FAIL
    ]
    assert {item.resource.rpartition("/")[2] for item in failed} == {"wide-group-0", "wide-group-1"}


def test_pods_of_a_group_without_the_policy_of_the_model_are_open_if_their_own_is_gone() -> None:
    objects = [
        item for item in cluster("group") if item["kind"] != "NetworkPolicy" or item["metadata"]["name"] != "wide"
    ]
    assert {item.verdict for item in findings("k8s-default-deny-egress", objects)} == {Verdict.PASS}
    objects = [
        item for item in objects if not item["metadata"]["name"].startswith("wide-group-0") or item["kind"] == "Pod"
    ]
    failed = [item for item in findings("k8s-default-deny-egress", objects) if item.verdict is Verdict.FAIL]
    assert len(failed) == 1

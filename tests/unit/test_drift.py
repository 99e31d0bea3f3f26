"""Drift: every value of ours that was changed is seen, and nothing that others added or the API server filled in."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from hermetic.plan.tampering.drift import has_drifted, holds_template, is_of_another_intent
from tests.renderings import RENDERINGS
from tests.scenarios import a_share_model, changed
from tests.snapshots import living, rendered

EVERYTHING = rendered(RENDERINGS["everything-said"])
every_child = pytest.mark.parametrize("child", EVERYTHING.values(), ids=list(EVERYTHING))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every scalar."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in steps:
        if isinstance(inner, dict | list) and inner:
            yield from leaves(inner, (*path, key))
        else:
            yield (*path, key)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def with_another(child: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    live = living(child)
    *steps, last = path
    holder = at(live, tuple(steps))
    before = holder[last]
    holder[last] = not before if isinstance(before, bool) else before + 1 if isinstance(before, int) else f"x{before}"
    if before in ([], {}):
        holder[last] = [{"x": 1}]
    return live


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
def test_object_that_is_as_it_was_applied_has_not_drifted(manifest):
    for child in rendered(manifest).values():
        assert not has_drifted(child, living(child))
        assert not is_of_another_intent(child, living(child))


@every_child
def test_every_single_changed_value_of_ours_is_seen(child):
    for path in leaves(child):
        assert has_drifted(child, with_another(child, path)), path


@every_child
def test_every_single_removed_value_of_ours_is_seen(child):
    for path in leaves(child):
        live = living(child)
        *steps, last = path
        before = at(live, path)
        del at(live, tuple(steps))[last]
        # an empty value says what absence says
        assert has_drifted(child, live) == (before not in ("", [], {})), path


@every_child
def test_what_others_add_beside_ours_is_theirs(child):
    live = living(child)
    live["metadata"]["labels"]["team"] = "chat"
    live["metadata"].setdefault("annotations", {})["kubectl.kubernetes.io/restartedAt"] = "now"
    live["metadata"]["finalizers"] = ["somebody/else"]
    live["status"] = {"anything": 1}
    assert not has_drifted(child, live)


def test_what_the_api_server_fills_in_is_no_drift():
    deployment = EVERYTHING["Deployment"]
    live = living(deployment)
    pod = live["spec"]["template"]["spec"]
    pod |= {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
    pod["containers"][0] |= {"terminationMessagePath": "/dev/termination-log"}
    pod["containers"][0]["livenessProbe"] |= {"successThreshold": 1}
    pod["serviceAccount"] = pod["serviceAccountName"]
    assert not has_drifted(deployment, live)


def test_changed_image_behind_an_added_sidecar_is_drift():
    """The sidecar itself is found by plan/tampering/foreign_fields.py."""
    deployment = EVERYTHING["Deployment"]
    live = living(deployment)
    containers = live["spec"]["template"]["spec"]["containers"]
    containers.insert(0, {"name": "proxy", "image": "mesh@sha256:1"})
    assert not has_drifted(deployment, live)
    containers[1]["image"] = "another"
    assert has_drifted(deployment, live)


@pytest.mark.parametrize("field", ["args", "command"])
def test_order_and_number_of_arguments_count(field):
    deployment = EVERYTHING["Deployment"]
    for change in (
        lambda arguments: arguments.reverse(),
        lambda arguments: arguments.append("--x"),
        lambda arguments: arguments.pop(),
    ):
        live = living(deployment)
        change(live["spec"]["template"]["spec"]["containers"][0][field])
        assert has_drifted(deployment, live)


@pytest.mark.parametrize(
    ("path", "same", "other"),
    [
        (("requests", "memory"), "429496729600", "400G"),
        (("requests", "cpu"), "16000m", "16001m"),
        (("limits", "nvidia.com/gpu"), 4, 5),
    ],
    ids=["bytes", "cpus", "gpus"],
)
def test_quantity_is_the_same_however_it_is_written(path, same, other):
    deployment = EVERYTHING["Deployment"]
    for value, drifted in ((same, False), (other, True)):
        live = living(deployment)
        resources = live["spec"]["template"]["spec"]["containers"][0]["resources"]
        resources[path[0]][path[1]] = value
        assert has_drifted(deployment, live) == drifted


def test_size_limit_of_a_volume_is_a_quantity_too():
    deployment = EVERYTHING["Deployment"]
    live = living(deployment)
    shm = next(v for v in live["spec"]["template"]["spec"]["volumes"] if v["name"] == "shm")
    shm["emptyDir"]["sizeLimit"] = "16384Mi"
    assert not has_drifted(deployment, live)


def test_an_added_egress_rule_is_drift_and_an_omitted_empty_list_is_none():
    policy = EVERYTHING["NetworkPolicy"]
    opened, omitted = living(policy), living(policy)
    opened["spec"]["egress"] = [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]
    del omitted["spec"]["egress"]
    assert has_drifted(policy, opened)
    assert not has_drifted(policy, omitted)


def test_second_ingress_rule_is_drift():
    policy = EVERYTHING["NetworkPolicy"]
    live = living(policy)
    live["spec"]["ingress"].append({})
    assert has_drifted(policy, live)


def test_bound_volume_and_claim_have_not_drifted():
    volume = living(EVERYTHING["PersistentVolume"])
    volume["spec"]["claimRef"] |= {"uid": "u", "resourceVersion": "7"}
    assert not has_drifted(EVERYTHING["PersistentVolume"], volume)


def test_field_that_we_dropped_shows_as_another_intent():
    before = rendered(RENDERINGS["everything-said"])["Service"]
    after = rendered(changed(RENDERINGS["everything-said"], endpoint={"internalLoadBalancer": {}, "port": 8443}))
    assert is_of_another_intent(after["Service"], living(before))
    assert not has_drifted({**after["Service"], "metadata": before["metadata"]}, living(before)), (
        "the values alone would not have told"
    )


def test_object_without_our_mark_is_of_another_intent():
    service = rendered(a_share_model())["Service"]
    bare = copy.deepcopy(service)
    del bare["metadata"]["annotations"]
    assert is_of_another_intent(service, bare)


def test_template_is_held_apart_from_replicas_and_from_the_digest_that_others_could_forge():
    deployment = rendered(a_share_model())["Deployment"]
    scaled = rendered(a_share_model(replicas=7))["Deployment"]
    assert holds_template(deployment, living(scaled))
    forged = living(deployment)
    forged["spec"]["template"]["spec"]["containers"][0]["image"] = "another"
    assert not holds_template(deployment, forged)

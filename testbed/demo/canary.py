"""The part of the demo about a Gateway: two members of a group share its route, and weights move in the manifests."""

from __future__ import annotations

from functools import partial
from typing import Any

from testbed.demo.environment import DemoEnvironment
from testbed.demo.models import statuses
from testbed.demo.narration import chapter, show, watch_phases
from testbed.errors import BedError
from testbed.gateway.on_node import NAME, NAMESPACE
from testbed.gateway.traffic import Traffic, answered_by, weigh
from testbed.installation import wait_for

GROUP, STABLE, CANARY = "chat", "chat-stable", "chat-canary"
SERVED = "meta/llama-3.1-8b-instruct"
STEPS = (10, 50, 100)
LOAD_SECONDS, RATE = 900.0, 50
START_SECONDS = 400


def promote_a_canary(demo: DemoEnvironment) -> None:
    """Shows it on the real node of the demo, and removes both deployments again."""
    assert demo.node is not None
    chapter("Two deployments share one address: a Gateway, served by the real Envoy. The canary is promoted by edits")
    demo.kubectl.apply(*(_member(demo, name, weight) for name, weight in ((STABLE, 100), (CANARY, 0))))
    if not watch_phases(lambda: _members(demo), lambda phases: list(phases.values()) == ["Serving"] * 2, START_SECONDS):
        raise BedError("the members of the group do not serve; what was last seen is above")
    url = str(wait_for("a private endpoint", lambda: _url(demo), timeout=60))
    kubectl = demo.kubectl.within("inference")
    traffic = Traffic(demo.node, url, SERVED, seconds=LOAD_SECONDS, rate=RATE)
    for weight in STEPS:
        before = answered_by(demo.node, kubectl, CANARY) + 20
        weigh(kubectl, {CANARY: weight, STABLE: 100 - weight})
        wait_for("answers of the canary", partial(_has_answered, demo, before))
        show(f"{CANARY} has the weight {weight}, {STABLE} {100 - weight}")
    traffic.end()
    report = traffic.report()
    members = ", ".join(f"{name} {answered_by(demo.node, kubectl, name)}" for name in (STABLE, CANARY))
    lost = sum(report["lost"].values())
    show(f"{url}: sent {report['sent']}, lost {lost} {report['lost'] or ''}; answered by {members}")
    if lost:
        raise BedError("requests were lost in the promotion")
    kubectl("delete", "mdep", STABLE, CANARY, "--wait=true")


def _has_answered(demo: DemoEnvironment, number: int) -> bool:
    assert demo.node is not None
    return answered_by(demo.node, demo.kubectl.within("inference"), CANARY) > number


def _member(demo: DemoEnvironment, name: str, weight: int) -> dict[str, Any]:
    gateway = {"name": NAME, "namespace": NAMESPACE, "group": GROUP, "weight": weight}
    manifest = demo.estate.sample("baked-image", replicas=1, endpoint={"gateway": gateway}, model={"name": SERVED})
    manifest["metadata"]["name"] = name
    return manifest


def _members(demo: DemoEnvironment) -> list[dict[str, Any]]:
    return [item for item in statuses(demo) if item["metadata"]["name"] in (STABLE, CANARY)]


def _url(demo: DemoEnvironment) -> str | None:
    for member in _members(demo):
        conditions = {condition["type"]: condition["status"] for condition in member["status"]["conditions"]}
        if conditions.get("EndpointPrivate") != "True":
            return None
    return str(_members(demo)[0]["status"]["endpoint"]["url"])

"""Whatever happens to groups in any order: no mixed group, no start behind a closed gate, and all serve at last."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.groups import GroupWorld, Manifest, a_group_model, mark_of
from tests.snapshots import evidence

OF_PODS: dict[str, Callable[[GroupWorld, str], None]] = {
    "place": lambda world, name: world.placed(name),
    "begin": lambda world, name: world.begun(name),
    "ready": lambda world, name: world.ready(name),
    "fail": lambda world, name: world.failed(name),
    "delete": lambda world, name: world.deleted(name),
    "end": lambda world, name: world.ended(name),
    "vanish": lambda world, name: world.ended(name),
}
OF_THE_CLUSTER = (
    "reconcile", "control", "close", "open", "change", "replicas", "wait", "wait long", "scale by others",
    "delete by others", "create by others",
)  # fmt: skip
ACTIONS = ("reconcile", "reconcile", *OF_THE_CLUSTER, *OF_PODS)
EVENTS = 60


def judged(world: GroupWorld, manifest: Manifest) -> None:
    """What must hold of every write of a group, by what is there when it is written."""
    name, count = manifest["metadata"]["name"], manifest["spec"]["replicas"]
    live = world.snapshot.children.get(("StatefulSet", name))
    nodes = manifest["spec"]["template"]["spec"]["containers"][0]
    assert nodes["name"] == "engine"
    assert count in (0, world.manifest["spec"]["accelerator"]["nodes"])
    if live is not None and mark_of(live) != mark_of(manifest):
        assert not list(world.members(name)), "the template changed while pods of the group exist"
    starts = count > 0 and (live is None or live["spec"]["replicas"] == 0)
    if not starts:
        return
    assert world.evidence.verdict == "Pass", "a group starts behind a closed gate"
    assert not list(world.members(name)), "a group starts while pods of it are left"
    for other in world.sets():
        if other["metadata"]["name"] == name or not other["spec"]["replicas"]:
            continue
        placed = [pod for pod in world.members(other["metadata"]["name"]) if "nodeName" in pod["spec"]]
        assert len(placed) >= other["spec"]["replicas"], "a group starts while another one waits for nodes"


def acted(world: GroupWorld, action: str, number: int) -> None:
    names = sorted(world.pods)
    if action in OF_PODS and names:
        of_a_pod(world, action, names[number % len(names)])
    elif action not in OF_PODS:
        of_the_cluster(world, action, number)


def of_a_pod(world: GroupWorld, action: str, name: str) -> None:
    pod = world.pods[name]
    is_running = pod["status"]["phase"] == "Running"
    possible = {
        "place": "nodeName" not in pod["spec"],
        "begin": "nodeName" in pod["spec"] and not is_running,
        "ready": is_running,
        "fail": is_running,
        "delete": True,
        "end": "deletionTimestamp" in pod["metadata"],
        "vanish": True,
    }
    if possible[action]:
        OF_PODS[action](world, name)


def of_the_cluster(world: GroupWorld, action: str, number: int) -> None:
    match action:
        case "reconcile":
            world.reconciled()
        case "control":
            world.controlled()
        case "close" | "open":
            world.evidence = evidence("Fail" if action == "close" else "Pass")
        case "change":
            world.change(startupBudgetSeconds=600 + 60 * number)
        case "replicas":
            world.change(replicas=1 + number % 3)
        case "wait":
            world.passes(5 * (number + 1))
        case "wait long":
            world.passes(400)
        case _:
            by_others(world, action, number)


def by_others(world: GroupWorld, action: str, number: int) -> None:
    first = next(world.sets(), None)
    if action == "create by others" and ("NetworkPolicy", "llama") in world.snapshot.children:
        world.planted("Deployment", "llama", is_owned=number % 2 == 0)
    elif action == "delete by others" and first is not None:
        world.removed(first["metadata"]["name"])
    elif action == "scale by others" and first is not None:
        first["spec"]["replicas"] = number
        first["metadata"]["generation"] += 1


@given(st.integers(0, 2**32), st.sampled_from([2, 3]), st.integers(1, 3))
def test_no_order_of_events_mixes_a_group_or_starts_one_behind_a_closed_gate_and_all_serve_in_the_end(
    seed: int, nodes: int, replicas: int
) -> None:
    """By a generator of its own: most of the short lists that are drawn never bring a group to serve."""
    world, random = GroupWorld(a_group_model(nodes=nodes, replicas=replicas), on_write=judged), Random(seed)
    for _ in range(EVENTS):
        acted(world, random.choice(ACTIONS), random.randint(0, 5))
        for stateful_set in world.sets():
            members = world.members(stateful_set["metadata"]["name"])
            marks = {pod["metadata"]["labels"]["hermetic.dev/pod-template"] for pod in members}
            assert len(marks) <= 1, "pods of two templates in one group"
    world.evidence = evidence()
    world.settle(rounds=150, seconds=30)
    assert world.planned().apply == ()

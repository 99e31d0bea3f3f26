"""Groups stop and start as a whole: for each failure its behaviour, its reason, and the member that it names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.times import timestamp
from hermetic.objects.names import MEMORY_ANNOTATION
from hermetic.plan.groups.memory import GroupMemory, memory_of
from tests.groups import STATEFUL_SET, GroupWorld, a_group_model, a_serving_world, mark_of
from tests.snapshots import NOW, conditions, evidence

FAIL = evidence("Fail")


def seconds_until_a_start(world: GroupWorld) -> int:
    for seconds in range(400):
        if world.reconciled().apply:
            return seconds
        world.passes(1)
    raise AssertionError("no start within 400 s")


def test_group_starts_with_all_of_its_pods_in_one_write() -> None:
    world = GroupWorld(a_group_model(nodes=4))
    world.settle()
    assert [(name, count) for name, count, _ in world.writes] == [("llama-group-0", 4)]
    assert world.group() == {"name": "llama-group-0", "state": "Serving", "pods": "4/4", "restarts": 0}
    assert conditions(world.status())["Ready"]["status"] == "True"


def test_group_is_not_made_before_its_service_has_an_address() -> None:
    world = GroupWorld(a_group_model())
    world.reconciled()
    service = world.snapshot.children["Service", "llama-group-0"]
    service["spec"].pop("clusterIP")
    assert world.planned().apply == ()
    service["spec"]["clusterIP"] = "10.0.0.7"
    (change,) = world.planned().apply
    env = change.manifest["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "HERMETIC_HEAD_ADDRESS", "value": "10.0.0.7"} in env


def test_second_group_starts_once_the_first_has_its_nodes() -> None:
    world = GroupWorld(a_group_model(replicas=2))
    world.reconciled()
    world.reconciled()
    world.controlled()
    world.passes(20)
    assert world.planned().apply == ()
    assert world.group(0)["state"] == "Waiting"
    for name in list(world.pods):
        world.placed(name)
    (change,) = world.planned().apply
    assert change.manifest["metadata"]["name"] == "llama-group-1"


def test_of_groups_that_lose_all_of_their_nodes_at_once_one_waits_and_the_others_stop() -> None:
    """Their pods are made again before the operator looks: no member is left that could tell of a loss."""
    world = a_serving_world(replicas=3)
    for name in list(world.pods):
        world.ended(name)
    world.controlled()
    world.placed("llama-group-1-0")
    world.reconciled()
    assert [(name, count) for name, count, _ in world.writes] == [("llama-group-0", 0), ("llama-group-2", 0)]
    world.passes(15)
    assert [group["state"] for group in world.status()["groups"]] == ["Stopping", "Waiting", "Stopping"]
    world.settle()
    assert [group["restarts"] for group in world.status()["groups"]] == [0, 0, 0]


def test_no_group_stops_for_another_while_not_every_pod_is_read() -> None:
    world = a_serving_world(replicas=2)
    for name in list(world.pods):
        world.ended(name)
    world.controlled()
    world.snapshot = replace(world.snapshot, pods_truncated=True)
    assert [change for change in world.planned().apply if change.manifest["kind"] == STATEFUL_SET] == []


def test_group_that_serves_is_not_stopped_for_a_pod_that_is_not_read() -> None:
    world = a_serving_world(nodes=2)
    world.passes(700)
    del world.pods["llama-group-0-1"]
    assert [change.manifest["spec"]["replicas"] for change in world.planned().apply] == [0]
    world.snapshot = replace(world.snapshot, pods_truncated=True)
    assert world.planned().apply == ()


KILLS: dict[str, Callable[[GroupWorld, str], None]] = {
    "its engine ends": lambda world, name: world.failed(name, code=139),
    "it is deleted": lambda world, name: world.deleted(name),
    "it is gone": lambda world, name: world.ended(name),
}


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("kill", KILLS.values(), ids=list(KILLS))
def test_member_of_a_serving_group_that_dies_restarts_the_whole_group_once(
    kill: Callable[[GroupWorld, str], None], rank: int
) -> None:
    world = a_serving_world(nodes=3)
    world.passes(700)
    kill(world, f"llama-group-0-{rank}")
    world.settle(seconds=5)
    assert [(name, count) for name, count, _ in world.writes] == [("llama-group-0", 0), ("llama-group-0", 3)]
    assert world.group()["restarts"] == 1


@pytest.mark.parametrize("phase", ["no node", "placed", "engine started"])
@pytest.mark.parametrize("rank", [0, 1])
def test_member_that_is_deleted_while_its_group_starts_restarts_the_whole_group(phase: str, rank: int) -> None:
    world = GroupWorld(a_group_model())
    world.reconciled()
    world.reconciled()
    world.controlled()
    names = list(world.pods)
    if phase != "no node":
        for name in names:
            world.placed(name)
    if phase == "engine started":
        for name in names:
            world.begun(name)
    world.deleted(f"llama-group-0-{rank}")
    world.settle(seconds=5)
    assert [count for _, count, _ in world.writes] == [2, 0, 2]


@pytest.mark.parametrize("rank", [0, 1])
def test_pod_that_is_replaced_within_seconds_of_the_first_start_restarts_its_group(rank: int) -> None:
    """Its end may not be seen: a list shows what is there, and events are gathered."""
    world = GroupWorld(a_group_model())
    world.reconciled()
    world.reconciled()
    world.cluster_works()
    world.passes(2)
    world.ended(f"llama-group-0-{rank}")
    world.cluster_works()
    world.settle(seconds=5)
    assert [count for _, count, _ in world.writes] == [2, 0, 2]
    assert "was made after the engines of others had started" in str(list(world.sets()))


def test_pods_that_their_controller_makes_one_after_the_other_are_no_replacements() -> None:
    world = GroupWorld(a_group_model())
    world.reconciled()
    world.reconciled()
    world.controlled()
    del world.pods["llama-group-0-1"]
    world.placed("llama-group-0-0")
    world.begun("llama-group-0-0")
    world.passes(3)
    assert world.reconciled().apply == ()
    world.settle()
    assert [count for _, count, _ in world.writes] == [2]


def test_status_names_the_member_that_failed_its_node_and_why() -> None:
    world = a_serving_world()
    world.failed("llama-group-0-1", code=1, message="ValueError: No available memory for the cache blocks.")
    world.reconciled()
    world.cluster_works()
    ready = conditions(world.status())["Ready"]
    assert ready["reason"] == "GroupMemberFailed"
    for part in ("group 'llama-group-0'", "pod 'llama-group-0-1' (rank 1, node 'gpu-1')", "exit code 1", "memory"):
        assert part in ready["message"], part
    assert world.group()["state"] in ("Stopping", "BackingOff")


def test_first_failure_is_named_and_not_what_follows_from_it() -> None:
    world = a_serving_world()
    world.failed("llama-group-0-1", message="RuntimeError: the cause")
    world.passes(2)
    world.failed("llama-group-0-0", message="RuntimeError: what follows")
    world.reconciled()
    assert "rank 1" in world.group()["message"]


def test_back_off_doubles_to_five_minutes_and_is_short_again_after_long_service() -> None:
    world = a_serving_world()
    waits = []
    for _ in range(8):
        world.failed("llama-group-0-0")
        world.reconciled()
        world.cluster_works()
        world.cluster_works()
        waits.append(seconds_until_a_start(world))
        world.cluster_works()
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]
    world.settle()
    world.passes(600)
    world.failed("llama-group-0-0")
    world.reconciled()
    memory = memory_of(next(world.sets()), world.now)
    assert (memory.failures, memory.restarts) == (1, 9)


def test_group_without_nodes_gives_its_gpus_back_after_ten_minutes() -> None:
    world = GroupWorld(a_group_model())
    world.reconciled()
    world.reconciled()
    world.controlled()
    world.placed("llama-group-0-0")
    world.passes(599)
    assert world.reconciled().apply == ()
    assert world.group()["message"] == "rank 1 has no node"
    assert world.planned().requeue_at is not None
    world.passes(1)
    world.reconciled()
    assert world.writes[-1][1] == 0
    world.cluster_works(nodes=False)
    assert conditions(world.status())["Ready"]["reason"] == "GroupWaiting"
    assert "rank 1 had no node after 600 s" in world.group()["message"]
    world.settle()


def test_start_that_takes_longer_than_its_budget_names_the_ranks_that_are_not_ready() -> None:
    world = GroupWorld(a_group_model(startupBudgetSeconds=600))
    world.reconciled()
    world.reconciled()
    world.controlled()
    for name in list(world.pods):
        world.placed(name)
        world.begun(name)
    world.ready("llama-group-0-1")
    world.passes(659)
    assert world.reconciled().apply == ()
    world.passes(1)
    world.reconciled()
    world.cluster_works()
    assert "rank 0 not ready within `startupBudgetSeconds` 600" in world.group()["message"]


def test_rolling_update_moves_one_group_at_a_time_and_the_others_serve() -> None:
    world = a_serving_world(replicas=3)
    before = {mark_of(item) for item in world.sets()}
    world.change(startupBudgetSeconds=2000)
    least = 6
    for _ in range(60):
        world.reconciled()
        world.cluster_works()
        world.passes(15)
        least = min(least, sum(part.serving_pods for part in world.seen().workload.parts))
    assert world.serves()
    assert least == 4
    assert not before & {mark_of(item) for item in world.sets()}
    assert [count for _, count, _ in world.writes] == [0, 2] * 3


def ready_reasons(world: GroupWorld) -> list[str]:
    """The reasons of Ready, each once, from pass to pass of the operator until the model serves as its spec says."""
    reasons: list[str] = []
    for _ in range(60):
        world.reconciled()
        reason = str(conditions(world.status())["Ready"]["reason"])
        reasons += [reason] if reasons[-1:] != [reason] else []
        if reason == "Serving":
            return reasons
        world.cluster_works()
        world.passes(15)
    raise AssertionError(reasons)


@pytest.mark.parametrize("replicas", [1, 3])
def test_change_of_the_spec_says_that_it_is_rolled_out_while_pods_of_the_earlier_one_are_left(replicas: int) -> None:
    world = a_serving_world(replicas=replicas)
    world.change(startupBudgetSeconds=2000)
    assert ready_reasons(world) == ["RollingOut", "Starting", "Serving"]
    assert world.serves()


def test_group_of_a_change_that_fails_is_named_and_not_the_rollout() -> None:
    world = a_serving_world(replicas=2)
    world.change(startupBudgetSeconds=2000)
    for _ in range(3):
        world.reconciled()
        world.cluster_works()
    world.failed("llama-group-0-1")
    world.reconciled()
    assert conditions(world.status())["Ready"]["reason"] == "GroupMemberFailed"
    assert [item["spec"]["replicas"] for item in world.sets()] == [0, 2]


@pytest.mark.parametrize("change", [{"replicas": 3}, {"replicas": 1}])
def test_other_number_of_replicas_is_no_rollout(change: dict[str, int]) -> None:
    world = a_serving_world(replicas=2)
    world.change(**change)
    assert "RollingOut" not in ready_reasons(world)


def test_member_that_dies_is_no_rollout() -> None:
    world = a_serving_world(replicas=2)
    world.failed("llama-group-0-1")
    assert "RollingOut" not in ready_reasons(world)


def test_group_that_does_not_serve_is_updated_while_another_serves() -> None:
    world = a_serving_world(replicas=2)
    world.failed("llama-group-0-0")
    world.reconciled()
    world.change(startupBudgetSeconds=2000)
    world.settle()
    assert [name for name, _, _ in world.writes] == ["llama-group-0"] * 2 + ["llama-group-1"] * 2


def test_scale_down_stops_the_last_groups_and_scale_up_starts_them_again() -> None:
    world = a_serving_world(replicas=3)
    world.change(replicas=1)
    world.settle()
    assert {(name, count) for name, count, _ in world.writes} == {("llama-group-2", 0), ("llama-group-1", 0)}
    assert [group["name"] for group in world.status()["groups"]] == ["llama-group-0"]
    world.change(replicas=2)
    world.settle()
    assert world.writes[-1][:2] == ("llama-group-1", 2)


def test_model_scaled_to_zero_keeps_its_objects_without_pods() -> None:
    world = a_serving_world()
    world.change(replicas=0)
    world.settle()
    assert conditions(world.status())["Ready"]["reason"] == "ScaledToZero"
    assert [item["spec"]["replicas"] for item in world.sets()] == [0]


# ---------------------------------------------------------------------- the isolation gate


def test_nothing_starts_behind_a_closed_gate() -> None:
    world = GroupWorld(a_group_model(), evidence=FAIL)
    for _ in range(3):
        world.reconciled()
    assert world.writes == []


def test_gate_that_closes_stops_a_group_that_has_not_started_and_keeps_one_that_serves() -> None:
    world = a_serving_world(replicas=2)
    world.failed("llama-group-1-0")
    world.reconciled()
    world.cluster_works()
    world.passes(10)
    world.reconciled()
    world.cluster_works(nodes=False)
    world.evidence = FAIL
    world.reconciled()
    assert world.writes[-1][:2] == ("llama-group-1", 0)
    for _ in range(3):
        world.cluster_works()
        world.passes(60)
        assert world.reconciled().apply == ()
    assert [item["spec"]["replicas"] for item in world.sets()] == [2, 0]
    assert world.group(1)["state"] == "Waiting"
    world.evidence = evidence()
    world.settle()


def test_group_that_loses_a_member_behind_a_closed_gate_stops_and_does_not_start() -> None:
    world = a_serving_world()
    world.evidence = FAIL
    world.deleted("llama-group-0-1")
    for _ in range(4):
        world.reconciled()
        world.cluster_works()
        world.passes(60)
    assert [count for _, count, _ in world.writes] == [0]


def test_change_of_the_spec_behind_a_closed_gate_waits() -> None:
    world = a_serving_world()
    world.evidence = FAIL
    world.change(startupBudgetSeconds=2000)
    decided = world.reconciled()
    assert (world.writes, decided.held) == ([], True)


def test_scale_down_behind_a_closed_gate_is_carried_out() -> None:
    world = a_serving_world(replicas=2)
    world.evidence = FAIL
    world.change(replicas=1)
    world.reconciled()
    assert [(name, count) for name, count, _ in world.writes] == [("llama-group-1", 0)]


# ---------------------------------------------------------------------- what others change


def edit(world: GroupWorld, change: Callable[[dict[str, Any]], object], index: int = 0) -> None:
    live = world.snapshot.children[STATEFUL_SET, f"llama-group-{index}"]
    change(live)
    live["metadata"]["generation"] += 1


def test_more_pods_than_the_group_has_are_removed_in_place() -> None:
    world = a_serving_world()
    edit(world, lambda live: live["spec"].update(replicas=5))
    world.controlled()
    world.reconciled()
    assert [count for _, count, _ in world.writes] == [2]
    world.cluster_works()
    world.settle()
    assert world.group()["restarts"] == 0


def test_fewer_pods_than_the_group_has_stop_it() -> None:
    world = a_serving_world()
    edit(world, lambda live: live["spec"].update(replicas=1))
    world.settle()
    assert [count for _, count, _ in world.writes] == [0, 2]


def test_template_that_others_changed_is_corrected_through_a_stop() -> None:
    world = a_serving_world()
    edit(world, lambda live: live["spec"]["template"]["spec"]["containers"][0].update(image="evil@sha256:" + "0" * 64))
    world.settle()
    assert [count for _, count, _ in world.writes] == [0, 2]
    assert "evil" not in json.dumps(list(world.sets()))


def test_labels_and_strategy_that_others_changed_are_corrected_without_a_stop() -> None:
    world = a_serving_world()
    edit(world, lambda live: live["spec"].update(updateStrategy={"type": "RollingUpdate"}))
    world.reconciled()
    assert [count for _, count, _ in world.writes] == [2]
    assert next(world.sets())["spec"]["updateStrategy"] == {"type": "OnDelete"}


@pytest.mark.parametrize(
    "text",
    ["", "no json", "[]", '{"failures": -3}', '{"failures": "many", "restarts": true, "reason": ["x"]}',
     '{"failures": 99999999999999999999999, "stoppedAt": "2999-01-01T00:00:00Z"}',
     '{"failures": 3, "stoppedAt": "yesterday", "message": {"a": "\\u202e"}}', "[" * 1000],
)  # fmt: skip
def test_memory_that_others_wrote_holds_a_group_back_for_no_longer_than_the_longest_back_off(text: str) -> None:
    live = {"metadata": {"annotations": {MEMORY_ANNOTATION: text}}}
    memory = memory_of(live, NOW)
    assert memory.resumes_at is None or (memory.resumes_at - NOW).total_seconds() <= 300
    assert memory.restarts >= 0


def test_memory_survives_being_written_and_read() -> None:
    memory = GroupMemory(nodes=4, restarts=2, failures=1, started_at=NOW, stopped_at=NOW, message='a "quoted" \n text')
    read = memory_of({"metadata": {"annotations": {MEMORY_ANNOTATION: memory.annotation}}}, NOW)
    assert read == replace(memory, message=read.message)
    assert len(replace(memory, message='"' * 5000).annotation) < 1024


@pytest.mark.parametrize("is_owned", [True, False], ids=["with the owner", "without an owner"])
def test_deployment_of_others_with_the_name_of_the_model_changes_nothing(is_owned: bool) -> None:
    world = a_serving_world()
    before = world.status()
    world.planted("Deployment", "llama", is_owned=is_owned)
    assert (world.planned().blocked, world.planned().apply) == (None, ())
    assert world.status() == before

    world.failed("llama-group-0-1")
    world.reconciled()
    world.evidence = FAIL
    for _ in range(4):
        world.cluster_works(nodes=False)
        world.passes(60)
        world.reconciled()
    assert [count for _, count, _ in world.writes] == [0], "stopped for its member, and not started behind the gate"


@pytest.mark.parametrize("phase", ["no node", "placed"])
def test_deployment_of_others_keeps_no_waiting_group_behind_a_closed_gate(phase: str) -> None:
    world = GroupWorld(a_group_model())
    world.reconciled()
    world.reconciled()
    world.controlled()
    for name in list(world.pods) if phase == "placed" else ():
        world.placed(name)
    world.planted("Deployment", "llama", is_owned=True)
    world.evidence = FAIL
    world.reconciled()
    assert [count for _, count, _ in world.writes] == [2, 0]


def test_stateful_set_of_others_with_the_name_of_a_group_serves_for_none() -> None:
    world = a_serving_world(replicas=2)
    world.planted(STATEFUL_SET, "llama-group-9", is_owned=False)
    assert conditions(world.status())["Ready"]["status"] == "True"
    world.failed("llama-group-1-0")
    world.reconciled()
    assert world.snapshot.workload.serving_replicas < 2
    assert conditions(world.status())["Available"]["status"] == "False"


@pytest.mark.parametrize(
    "label", [{"hermetic.dev/group": "1"}, {"apps.kubernetes.io/pod-index": "0"}], ids=["group", "rank"]
)
def test_pod_that_others_labelled_as_another_member_is_named_and_restarts_its_group(label: dict[str, str]) -> None:
    """Clients, and the other members, find the head by its labels."""
    world = a_serving_world()
    world.writes.clear()
    world.pods["llama-group-0-1"]["metadata"]["labels"] |= label
    ready = conditions(world.status())["Ready"]
    assert ready["reason"] == "NotAsRendered"
    ((name, _),) = label.items()
    assert f"pod 'llama-group-0-1' does not have the label {name}=" in ready["message"]
    world.settle()
    assert [count for _, count, _ in world.writes] == [0, 2]


def test_object_that_lost_its_memory_before_it_had_pods_does_not_wait_for_ever() -> None:
    world = GroupWorld(a_group_model())
    world.reconciled()
    world.reconciled()
    (live,) = world.sets()
    live["metadata"]["creationTimestamp"] = timestamp(NOW)
    del live["metadata"]["annotations"][MEMORY_ANNOTATION]
    world.passes(599)
    assert world.reconciled().apply == ()
    world.passes(2)
    world.reconciled()
    assert [count for _, count, _ in world.writes] == [2, 0]


def test_group_whose_object_was_deleted_starts_once_its_pods_have_ended() -> None:
    """New pods would join a head that is ending, and be of another template than it where the spec changed too."""
    world = a_serving_world()
    world.writes.clear()
    names = list(world.pods)
    world.removed("llama-group-0")
    assert world.planned().apply == ()
    assert world.group() == {
        "name": "llama-group-0", "state": "Stopping", "pods": "0/2", "restarts": 0,
        "message": "its StatefulSet was deleted",
    }  # fmt: skip
    world.ended(names[0])
    assert world.planned().apply == ()
    world.ended(names[1])
    world.settle()
    assert [count for _, count, _ in world.writes] == [2]
    assert (world.group()["state"], world.group()["restarts"]) == ("Serving", 0)


def test_pod_of_another_controller_is_no_member() -> None:
    world = a_serving_world()
    stranger = json.loads(json.dumps(world.pods["llama-group-0-1"]))
    stranger["metadata"] |= {"name": "llama-group-0-7", "uid": "stranger", "labels": {}}
    stranger["metadata"]["deletionTimestamp"] = "2026-11-24T12:00:00Z"
    world.pods["llama-group-0-7"] = stranger
    assert [change for change in world.planned().apply if change.manifest["kind"] == STATEFUL_SET] == []


def test_at_rest_nothing_is_written() -> None:
    world = a_serving_world(replicas=2)
    for seconds in (1, 60, 3600):
        world.passes(seconds)
        assert world.planned().apply == ()
    assert world.planned().requeue_at is not None, "the evidence expires"

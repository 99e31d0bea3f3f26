"""Schedules of faults with replicas of several nodes: members die, nodes go and come, and the operator is killed.

Wrong is, at any moment:
    a group of pods of two templates.
Wrong is, where an operator has been undisturbed for a while (`SETTLED_SECONDS`) and requests are not disturbed:
    a head that answers clients for more than ten seconds after a member of its group died,
    a group that waits for nodes for longer than the bound, and two groups of one model that wait at once,
    a group that stays without pods for longer than its back-off, while no other group of its model waits for nodes.
And in the end: what a schedule of any kind must not leave, and a model that does not serve although there is room.
Some acts come after such a while, and last until a bound is reached. The clock does not jump here: a group's times are
compared with those that the API server stamps.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.controller.running import NAMESPACE
from tests.fakes.virtual_loop import virtually
from tests.scenarios import Manifest, a_baked_model, changed, reporting
from tests.schedules.group_cluster import REVISION, GroupCluster, Phase
from tests.schedules.schedule import (
    OPERATOR_ACTS,
    STEPS,
    Ended,
    ScheduleRun,
    Step,
    apply_models_of,
    befall,
    calm_down,
    differences,
    running_operator,
)

MODEL = "ModelDeployment"
NODES = 8
NAMES = ("llama", "mistral")
STOPPED_SECONDS = 10.0
"""So soon the head of a broken group must be stopped or no longer ready (the design's goal for its figures)."""
WAIT_SECONDS = 600.0
BACK_OFF_SECONDS = 300.0
SETTLED_SECONDS = 120.0
"""An operator sends a request again after a minute at most, where the API server asked it to wait."""
SLACK_SECONDS = 30.0
QUIET_SECONDS = 900.0
LONG_LOSS_SECONDS = 1500.0
"""So long a group without nodes gives up more than once."""


def a_group(name: str, replicas: int, length: int) -> Manifest:
    """A model of two nodes a replica."""
    manifest = changed(
        reporting(a_baked_model(name)),
        accelerator={"count": 1, "nodes": 2},
        replicas=replicas,
        endpoint={},
        drainSeconds=5,
    )
    manifest["spec"]["engine"]["vllm"]["maxModelLength"] = length
    manifest["metadata"]["namespace"] = NAMESPACE
    return manifest


@dataclass
class Bound:
    """How long a state may last. `complaint`: what the state is, for a name; `longest`: seconds that it lasted.

    Times before the operator had settled do not count.
    """

    complaint: str
    seconds: float
    longest: float = 0.0
    since: dict[str, float] = field(default_factory=dict)

    def exceeded(self, names: Iterable[str], now: float, settled_at: float) -> Iterator[str]:
        """A complaint for each name that is in the state for too long. `names`: those that are in it now."""
        self.since = {name: self.since.get(name, now) for name in names}
        for name, since in self.since.items():
            lasted = now - max(since, settled_at)
            self.longest = max(self.longest, lasted)
            if lasted > self.seconds:
                yield f"{name}: {self.complaint} for more than {self.seconds:.0f} s"


@dataclass(frozen=True)
class States:
    """Groups by name: whose head looks healthy without its members, that wait for nodes, and that have no pods."""

    half: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    stopped: frozenset[str] = frozenset()

    @property
    def crowded(self) -> frozenset[str]:
        """The models of which several groups wait at once."""
        models = Counter(map(_model_of, self.waiting))
        return frozenset(model for model, count in models.items() if count > 1)

    @property
    def due(self) -> frozenset[str]:
        """The groups without pods that no group of their model keeps from starting."""
        models = {_model_of(name) for name in self.waiting}
        return frozenset(name for name in self.stopped if _model_of(name) not in models)


@dataclass
class Watcher:
    """Looks at the cluster every second, and notes what is wrong."""

    cluster: GroupCluster
    disturbed_at: float = 0.0
    wrong: Counter[str] = field(default_factory=Counter)
    half: Bound = field(default_factory=lambda: Bound("the head looks healthy without its members", STOPPED_SECONDS))
    wait: Bound = field(default_factory=lambda: Bound("waits for nodes", WAIT_SECONDS + SLACK_SECONDS))
    crowd: Bound = field(default_factory=lambda: Bound("two groups wait at once", STOPPED_SECONDS))
    pause: Bound = field(default_factory=lambda: Bound("does not start again", BACK_OFF_SECONDS + SLACK_SECONDS))
    _changes: int = -1
    _states: States = field(default_factory=States)

    @property
    def longest(self) -> dict[str, float]:
        """Seconds that each state lasted at most while the operator was undisturbed."""
        return {
            "longestHalfSeconds": self.half.longest,
            "longestWaitSeconds": self.wait.longest,
            "longestPauseSeconds": self.pause.longest,
        }

    async def watch(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(1.0)
            self._look(asyncio.get_running_loop().time())

    def disturb(self) -> None:
        """From now on the operator needs its time again."""
        self.disturbed_at = asyncio.get_running_loop().time()

    def _look(self, now: float) -> None:
        if self.cluster.trouble or self.cluster.terminating:
            self.disturbed_at = now
        if self._changes != self.cluster.changes:
            self._changes = self.cluster.changes
            self._states = self._read()
        states, settled_at = self._states, self.disturbed_at + SETTLED_SECONDS
        self.wrong.update(self.half.exceeded(states.half, now, settled_at))
        self.wrong.update(self.wait.exceeded(states.waiting, now, settled_at))
        self.wrong.update(self.crowd.exceeded(states.crowded, now, settled_at))
        self.wrong.update(self.pause.exceeded(states.due, now, settled_at))

    def _read(self) -> States:
        half, waiting, stopped = set(), set(), set()
        groups = {model["metadata"]["name"]: model["spec"]["replicas"] for model in self.cluster.of_kind(MODEL)}
        for workload, pods in self.cluster.groups():
            name, replicas = workload["metadata"]["name"], workload["spec"]["replicas"]
            if len({pod["metadata"]["labels"].get(REVISION) for pod in pods}) > 1:
                self.wrong[f"{name} has pods of two templates"] += 1
            if self._is_half(pods):
                half.add(name)
            if replicas and any(not pod["spec"].get("nodeName") for pod in pods):
                waiting.add(name)
            if not replicas and not pods and int(name.rpartition("-")[2]) < groups.get(_model_of(name), 0):
                stopped.add(name)
        return States(frozenset(half), frozenset(waiting), frozenset(stopped))

    def _is_half(self, pods: list[Manifest]) -> bool:
        """Whether clients are sent to a head whose engine hangs."""
        head = next((pod for pod in pods if pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "0"), None)
        if head is None or "deletionTimestamp" in head["metadata"] or self.cluster.phase_of(head) is not Phase.HUNG:
            return False
        conditions = head["status"].get("conditions") or ()
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _model_of(group: str) -> str:
    return group.rpartition("-group-")[0]


# ---------------------------------------------------------------------- what happens


def _cluster(run: ScheduleRun) -> GroupCluster:
    assert isinstance(run.cluster, GroupCluster)
    return run.cluster


async def _kill_member(run: ScheduleRun) -> None:
    """A container of a group ends, in whatever phase its engine is."""
    cluster = _cluster(run)
    if pods := [pod for pod in cluster.pods() if pod["metadata"]["uid"] in cluster.engines]:
        cluster.kill_engine(cluster.chance.choice(pods))


async def _kill_two_members(run: ScheduleRun) -> None:
    await _kill_member(run)
    await asyncio.sleep(run.cluster.chance.uniform(0.0, 3.0))
    await _kill_member(run)


async def _evict(run: ScheduleRun) -> None:
    cluster = _cluster(run)
    if pods := cluster.pods():
        cluster.delete_pod(cluster.chance.choice(pods))


async def _lose_node(run: ScheduleRun) -> None:
    """Nodes go, with their pods; for a time that may be longer than a group waits for them."""
    cluster = _cluster(run)
    names = [node["metadata"]["name"] for node in cluster.of_kind("Node")]
    lost = cluster.chance.sample(names, cluster.chance.choice([1, 1, 2, 6]))
    for name in lost:
        cluster.remove_node(name)
    await asyncio.sleep(cluster.chance.choice([5.0, 60.0, 900.0]))
    for name in lost:
        cluster.add_node(int(name.rpartition("-")[2]))


async def _apply(run: ScheduleRun) -> None:
    """A user applies a model with other pods or another number of replicas, or deletes it."""
    cluster, chance = _cluster(run), run.cluster.chance
    desired = a_group(chance.choice(NAMES), chance.choice([0, 1, 2]), chance.choice([4096, 8192]))
    where = (MODEL, NAMESPACE, desired["metadata"]["name"])
    if where in cluster.objects and chance.random() < 0.2:
        cluster.remove(*where)
    elif where in cluster.objects:
        cluster.edit(where, lambda live: live.update(spec=desired["spec"]))
    else:
        cluster.put(desired)


async def _rival(run: ScheduleRun) -> None:
    """Somebody deletes a StatefulSet of a group, or asks for other pods of it."""
    cluster, chance = _cluster(run), run.cluster.chance
    workloads = [
        ("StatefulSet", NAMESPACE, workload["metadata"]["name"]) for workload in cluster.of_kind("StatefulSet")
    ]
    if not workloads:
        return
    where = chance.choice(workloads)
    if chance.random() < 0.4:
        cluster.remove(*where)
    else:
        cluster.edit(where, lambda live: live["spec"].update(replicas=chance.choice([0, 1, 3])))


async def _settle(run: ScheduleRun) -> None:
    """From now on requests go well, and what the operator has to do again because of those that did not, is done."""
    run.cluster.trouble = 0.0
    await asyncio.sleep(SETTLED_SECONDS)


async def _quiet(run: ScheduleRun) -> None:
    """Nothing, for as long as a group may take to give up and start again."""
    await _settle(run)
    await asyncio.sleep(QUIET_SECONDS)


async def _kill_in_the_calm(run: ScheduleRun) -> None:
    """Members die under an undisturbed operator, again and again, so that their groups back off for longer."""
    await _settle(run)
    for _ in range(run.cluster.chance.choice([1, 3, 12])):
        await _kill_member(run)
        await asyncio.sleep(run.cluster.chance.choice([5.0, 30.0, 200.0]))


async def _lose_nodes_in_the_calm(run: ScheduleRun) -> None:
    """Too few nodes are left for a group, for longer than it waits for them."""
    await _settle(run)
    cluster = _cluster(run)
    names = [node["metadata"]["name"] for node in cluster.of_kind("Node")]
    lost = cluster.chance.sample(names, len(names) - cluster.chance.choice([0, 1, 3]))
    for name in lost:
        cluster.remove_node(name)
    await asyncio.sleep(cluster.chance.choice([WAIT_SECONDS, LONG_LOSS_SECONDS]))
    for name in lost:
        cluster.add_node(int(name.rpartition("-")[2]))
    await asyncio.sleep(cluster.chance.choice([1.0, BACK_OFF_SECONDS]))


MEMBER_ACTS: dict[str, Step] = {
    "member killed": _kill_member,
    "member killed again": _kill_member,
    "two members killed": _kill_two_members,
    "pod evicted": _evict,
    "node lost": _lose_node,
    "model applied": _apply,
    "group changed by a rival": _rival,
    "quiet": _quiet,
    "members killed in the calm": _kill_in_the_calm,
    "nodes lost in the calm": _lose_nodes_in_the_calm,
}
DISTURBING = frozenset({*OPERATOR_ACTS, "group changed by a rival", "model applied"})


def group_schedule(seed: int) -> Ended:
    """Live through the schedule of this seed."""
    random.seed(seed)  # the product spreads its pauses by chance
    return virtually(lambda: _ended(seed))


async def _ended(seed: int) -> Ended:
    cluster = GroupCluster(seed, NODES)
    watcher = Watcher(cluster)
    async with running_operator(cluster) as run:
        looking = asyncio.ensure_future(watcher.watch())
        cluster.put(a_group(NAMES[0], 2, 4096))
        acts = {name: _noted(watcher, name, act) for name, act in {**OPERATOR_ACTS, **MEMBER_ACTS}.items()}
        for _ in range(cluster.chance.randint(3, STEPS)):
            await befall(run, acts)
        complaints = await calm_down(run)
        looking.cancel()
    wrong = [*complaints, *watcher.wrong, *_differences(cluster, await _undisturbed(cluster))]
    return Ended((*wrong, *dict.fromkeys(cluster.lies)), cluster.faults_injected, watcher.longest)


def _differences(cluster: GroupCluster, calm: GroupCluster) -> list[str]:
    """What differs in the end, but for the objects of groups that are no longer asked for.

    They stay until the model is deleted, for the operator may not delete such objects; but they ask for no pods.
    """
    surplus = {name for name, replicas in _surplus(cluster).items() if replicas == 0}
    lawful = {
        f"orphan or duplicate: {kind}/{name}"
        for kind in ("NetworkPolicy", "Service", "StatefulSet")
        for name in surplus
    }
    return [difference for difference in differences(cluster, calm) if difference not in lawful]


def _surplus(cluster: GroupCluster) -> dict[str, int]:
    """The groups beyond the replicas of their models, with the pods that they ask for."""
    replicas = {model["metadata"]["name"]: model["spec"]["replicas"] for model in cluster.of_kind(MODEL)}
    names = [service["metadata"]["name"] for service in cluster.of_kind("Service")]
    pods = {workload["metadata"]["name"]: workload["spec"]["replicas"] for workload in cluster.of_kind("StatefulSet")}
    groups = [(name, *name.rpartition("-group-")) for name in names if "-group-" in name]
    return {name: pods.get(name, 0) for name, model, _, index in groups if int(index) >= replicas.get(model, 0)}


def _noted(watcher: Watcher, name: str, act: Step) -> Step:
    """The act; around one that concerns the operator, the operator counts as disturbed."""
    if name not in DISTURBING:
        return act

    async def disturbing(run: ScheduleRun) -> None:
        watcher.disturb()
        await act(run)
        watcher.disturb()

    return disturbing


async def _undisturbed(cluster: GroupCluster) -> GroupCluster:
    """What an operator makes of the same models where nothing goes wrong, with the same nodes."""
    calm = GroupCluster(0, NODES)
    async with running_operator(calm):
        apply_models_of(cluster, calm)
        await asyncio.sleep(QUIET_SECONDS)
    return calm

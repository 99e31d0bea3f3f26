"""The cluster as the operator keeps seeing it: what changes, what does not, and what a broken watch means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.all_kinds import question
from hermetic.audit.estate.kubernetes.cilium_policies import CiliumNetworkPolicy
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.served import SERVED
from hermetic.audit.estate.kubernetes.services import Service
from hermetic.audit.estate.kubernetes.templates import Job
from hermetic.audit.model.findings import Verdict
from hermetic.audit.result.run import evaluate
from hermetic.collect.kube.answering import KubeAnswerer
from hermetic.collect.kube.cache import LIST_REQUESTS, ClusterObservations
from hermetic.collect.kube.cache_watches import CacheWatches
from hermetic.errors import ServerError, Unreachable
from hermetic.kinds import Kind
from tests.fakes.served_cluster import Manifest, Served, forbidden
from tests.kubernetes_estates import CLUSTER, POLICY, manifest, pod, sealed_cluster


@pytest.fixture
async def watching() -> AsyncIterator[Callable[[Served], Awaitable[tuple[ClusterObservations, list[int]]]]]:
    """`watching(api)`: observations that are complete and followed, and the revisions at which a change was told."""
    tasks: list[asyncio.Task[None]] = []

    async def start(api: Served) -> tuple[ClusterObservations, list[int]]:
        observations = ClusterObservations()
        recorded: list[int] = []
        observing = CacheWatches(api, observations, on_change=lambda: recorded.append(observations.revision))
        tasks.append(asyncio.create_task(observing.run()))
        await until(lambda: observations.is_complete)
        return observations, recorded

    yield start
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds, ten seconds at most."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for has no event of its own
            await asyncio.sleep(0.01)


def failing(observations: ClusterObservations) -> set[str]:
    findings = evaluate(Estate(CLUSTER, ("kube",), observations.answers()), POLICY)
    return {finding.check for finding in findings if finding.verdict is Verdict.FAIL}


def unknown(observations: ClusterObservations) -> set[str]:
    findings = evaluate(Estate(CLUSTER, ("kube",), observations.answers()), POLICY)
    return {finding.check for finding in findings if finding.verdict is Verdict.UNKNOWN}


def test_before_anything_was_listed_everything_is_unknown() -> None:
    observations = ClusterObservations()
    assert not observations.is_complete
    findings = evaluate(Estate(CLUSTER, ("kube",), observations.answers()), POLICY)
    assert {finding.verdict for finding in findings} == {Verdict.UNKNOWN}


async def test_the_same_cluster_gives_the_same_findings_and_digests_by_watching(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    listed = await KubeAnswerer(api).answers([SERVED, *(request.question for request in LIST_REQUESTS)])
    watched = observations.answers()
    assert watched.keys() == listed.keys()
    for asked_for, answer in watched.items():
        assert [body.value for body in answer.bodies] == [body.value for body in listed[asked_for].bodies]
        assert [evidence.sha256 for evidence in answer.evidence] == [
            evidence.sha256 for evidence in listed[asked_for].evidence
        ]
    assert {finding.verdict for finding in evaluate(Estate(CLUSTER, ("kube",), watched), POLICY)} == {Verdict.PASS}


async def test_an_egress_path_shows_and_goes_with_its_object(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, notified = await watching(api)
    before = observations.revision
    public = api.put(manifest(Service, "web", "inference", spec={"type": "LoadBalancer"}))
    await until(lambda: observations.changed_since(before))
    assert failing(observations) == {"k8s-public-lb"}
    assert notified[-1] == observations.revision
    api.drop(public)
    await until(lambda: not failing(observations))


async def test_what_no_check_reads_changes_nothing(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, notified = await watching(api)
    before, tellings = observations.revision, len(notified)
    node = next(item for item in sealed_cluster() if item["kind"] == "Node")
    api.put({**node, "status": {**node["status"], "allocatable": {"cpu": "7"}}})
    api.put(pod("app-1", labels={"app": "app"}, status={"phase": "Running", "conditions": [{"type": "Ready"}]}))
    marker = api.put(manifest(Service, "marker", "inference", spec={"type": "ClusterIP"}))
    await until(lambda: observations.changed_since(before))
    assert observations.revision == before + 1, marker
    assert len(notified) == tellings + 1


async def test_a_kind_that_may_not_be_listed_is_unknown_and_names_the_permission(watching: Any) -> None:
    api = Served(sealed_cluster())
    api.refuse("nodes", forbidden())
    observations, _ = await watching(api)
    assert unknown(observations) == {
        "k8s-node-externalip",
        "k8s-nodeport",
        "k8s-other-ways",
        "k8s-policy-engine-live",
    }
    problem = observations.answers()[question(Node, "")].problem
    assert problem is not None
    assert problem.permission == "list nodes"


async def test_a_watch_that_lost_its_place_lists_anew_and_misses_nothing(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    await until(lambda: api.watching["/api/v1/services"] > 0)
    api.put(manifest(Service, "web", "inference", spec={"type": "LoadBalancer"}), seen=False)
    api.interrupt("Service", ServerError("too old resource version", status=410))
    await until(lambda: failing(observations) == {"k8s-public-lb"})


async def test_an_event_of_an_unknown_form_is_evaluated_again(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    lists = api.lists["services"]
    api.interrupt("Service", ("MODIFIED", {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}}))
    await until(lambda: api.lists["services"] > lists)
    assert not failing(observations)


@pytest.mark.parametrize(
    ("case", "malformed"),
    [
        ("ADDED", {"apiVersion": "v1", "kind": "Node", "metadata": {"resourceVersion": "9"}}),
        ("MODIFIED", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "odd", "resourceVersion": 9}}),
        ("DELETED", {"apiVersion": "v1", "kind": "Node", "metadata": "odd"}),
        ("ADDED", {"apiVersion": "v2", "kind": "Node", "metadata": {"name": "odd", "resourceVersion": "9"}}),
        ("MODIFIED", {"metadata": {"name": "odd", "resourceVersion": "9"}}),
    ],
    ids=str,
)
async def test_a_malformed_object_of_a_watch_leaves_its_kind_unseen_until_it_is_listed(
    watching: Any, case: str, malformed: Manifest
) -> None:
    api = Served(sealed_cluster())
    observations, notified = await watching(api)
    api.refuse("nodes", Unreachable("connection refused"))
    api.interrupt("Node", (case, malformed))
    await until(lambda: "k8s-node-externalip" in unknown(observations))
    assert notified[-1] == observations.revision
    problem = observations.answers()[question(Node, "")].problem
    assert problem is not None
    assert "/api/v1/nodes: an object of the watch was not understood" in problem.detail
    api.refuse("nodes", None)
    await until(lambda: not unknown(observations))


async def test_a_defect_in_taking_an_event_leaves_the_kind_unseen_until_it_is_listed(
    watching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    api.refuse("nodes", Unreachable("connection refused"))
    monkeypatch.setattr("hermetic.collect.kube.cache.packed", lambda _: 1 // 0)
    api.put({**manifest(Node, "another"), "status": {"addresses": []}})
    await until(lambda: "k8s-node-externalip" in unknown(observations))
    monkeypatch.undo()
    api.refuse("nodes", None)
    await until(lambda: "k8s-node-externalip" not in unknown(observations))


async def test_a_short_break_is_no_trouble_and_a_long_one_is(watching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    await until(api.interrupt("Node", Unreachable("connection reset")).empty)
    assert not unknown(observations)
    monkeypatch.setattr("hermetic.collect.kube.cache_watches.GRACE_SECONDS", 0.0)
    api.refuse("nodes", Unreachable("connection refused"))
    api.interrupt("Node", Unreachable("connection reset"))
    await until(lambda: "k8s-node-externalip" in unknown(observations))
    api.refuse("nodes", None)
    await until(lambda: not unknown(observations))  # of machines that did not change, no watch would have told


async def test_a_kind_that_never_changes_is_listed_anew_and_no_trouble(
    watching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermetic.collect.kube.cache_watches.SILENT_SECONDS", 0.0)
    monkeypatch.setattr("hermetic.collect.kube.cache_watches.GRACE_SECONDS", 0.0)
    api = Served(sealed_cluster())
    observations, notified = await watching(api)
    revisions = list(notified)
    for listed in range(2, 5):
        api.interrupt("Node", Unreachable("no answer in time"))
        await until(lambda count=listed: api.lists["nodes"] == count)
    assert not unknown(observations)
    assert notified == revisions


async def test_controllers_with_pods_come_and_go_without_a_change(watching: Any) -> None:
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    before = observations.revision
    template = {"spec": {"hostNetwork": True, "containers": [{"name": "main", "image": "x"}]}}
    running = manifest(Job, "probe", "inference", spec={"template": template})
    api.drop(api.put(running))
    asleep = api.put(manifest(Job, "night", "inference", spec={"suspend": True, "template": template}))
    await until(lambda: observations.changed_since(before))
    assert observations.revision == before + 1
    assert failing(observations) >= {"k8s-hostnetwork"}
    api.put({**asleep, "spec": {"template": template}})
    await until(lambda: not failing(observations))


async def test_a_kind_that_is_not_installed_is_neither_listed_nor_watched(watching: Any) -> None:
    api = Served(sealed_cluster())
    await watching(api)
    required_plurals = {request.kind.plural for request in LIST_REQUESTS if not request.is_optional}
    assert set(api.lists) == required_plurals
    assert not [path for path in api.watching if "cilium.io" in path]
    assert api.documents.count("/apis") == 1


async def test_a_kind_that_is_installed_later_is_seen(watching: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermetic.collect.kube.cache_watches.UNAVAILABLE_SECONDS", 0.02)
    monkeypatch.setattr("hermetic.kube.reflector.UNAVAILABLE_SECONDS", 0.02)
    monkeypatch.setattr("hermetic.collect.kube.cache_watches.SERVED_SECONDS", 0.01)
    api = Served(sealed_cluster())
    observations, _ = await watching(api)
    api.groups = {**api.groups, "cilium.io": {"v2": ["ciliumnetworkpolicies"]}, "kuma.io": {"v1": ["zoneegresses"]}}
    spec = {"endpointSelector": {}, "egress": [{"toEntities": ["world"]}]}
    api.put(manifest(CiliumNetworkPolicy, "wide", "inference", spec=spec))
    await until(lambda: failing(observations) == {"k8s-policy-allow-all"})
    await until(lambda: unknown(observations) == {"k8s-unread-kinds"})


async def test_discovery_that_is_refused_leaves_the_served_kinds_unknown(watching: Any) -> None:
    class Mute(Served):
        async def discovered(self, path: str) -> Manifest:  # noqa: ARG002
            raise forbidden()

    observations, _ = await watching(Mute(sealed_cluster()))
    assert "k8s-unread-kinds" in unknown(observations)


@pytest.mark.parametrize("broken", ["gone", "malformed", "defect"])
async def test_a_kind_whose_watch_never_lasts_is_listed_at_a_bounded_rate(broken: str) -> None:
    """410 at once, an object that is not understood, or a defect of ours: no storm, and no end of the others."""

    listed_at: list[float] = []

    class Broken(Served):
        async def pages(self, kind: Kind, **narrowed: Any) -> AsyncIterator[tuple[list[Any], str]]:
            if kind.plural == "pods":
                listed_at.append(asyncio.get_running_loop().time())
            async for page in super().pages(kind, **narrowed):
                yield page

        async def watch(self, kind: Kind, **narrowed: Any) -> AsyncGenerator[tuple[str, Any], None]:
            if kind.plural == "pods":
                if broken == "gone":
                    raise ServerError("too old", status=410)
                if broken == "defect":
                    raise ZeroDivisionError
                yield "ADDED", {"metadata": {"resourceVersion": "9"}}
            async for event in super().watch(kind, **narrowed):
                yield event

    task = asyncio.create_task(CacheWatches(Broken(sealed_cluster()), ClusterObservations()).run())
    await until(lambda: len(listed_at) >= 3)
    assert not task.done()
    assert listed_at[1] - listed_at[0] >= 0.15
    assert listed_at[2] - listed_at[1] >= 0.75
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

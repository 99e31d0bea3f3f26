"""What the audit and the operator both read is watched once, and the operator misses nothing by that."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.collect.kube.cache import ClusterObservations
from hermetic.collect.kube.cache_watches import CacheWatches
from hermetic.errors import Forbidden
from hermetic.kinds import Kind
from hermetic.kube.owners import Key
from hermetic.kube.store import Store
from hermetic.kube.store_lists import relist
from hermetic.kube.store_watches import StoreWatches
from hermetic.kube.watch_specs import STORE_WATCHES, WatchSpec
from hermetic.plan.snapshot import ClusterSnapshot
from tests.controller.auditing import a_cluster, an_attestation, an_audit, condition
from tests.controller.running import NAMESPACE, RESYNC_SECONDS, a_model, rest, running, where, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest
from tests.fakes.virtual_loop import virtually
from tests.schedules.faulty_cluster import FaultyCluster

PODS, UNLABELLED = "/api/v1/pods", "/api/v1/pods unlabelled"
DEPLOYMENTS, STATEFUL_SETS = "/apis/apps/v1/deployments", "/apis/apps/v1/statefulsets"
INGRESSES = "/apis/networking.k8s.io/v1/ingresses"
GATEWAY_API = "/apis/gateway.networking.k8s.io"
OF_BOTH = frozenset({
    PODS, DEPLOYMENTS, STATEFUL_SETS, "/api/v1/nodes", "/api/v1/services", "/api/v1/persistentvolumes",
    "/apis/discovery.k8s.io/v1/endpointslices",
    INGRESSES, "/apis/networking.k8s.io/v1/networkpolicies",
    f"{GATEWAY_API}/v1/gateways", f"{GATEWAY_API}/v1/httproutes", f"{GATEWAY_API}/v1/grpcroutes",
    *(f"{GATEWAY_API}/{version}/{layer}routes" for version in ("v1alpha2", "v1") for layer in ("tls", "tcp", "udp")),
    f"{GATEWAY_API}/v1alpha2/grpcroutes", f"{GATEWAY_API}/v1alpha3/tlsroutes",
})  # fmt: skip
OF_THE_OPERATOR = frozenset({
    "/api/v1/serviceaccounts", "/api/v1/persistentvolumeclaims", "/api/v1/events",
    "/apis/policy/v1/poddisruptionbudgets", "/apis/autoscaling/v2/horizontalpodautoscalers",
    "/apis/hermetic.dev/v1alpha1/egressattestations",
})  # fmt: skip


def open_watches(cluster: ClusterInMemory) -> dict[str, int]:
    return {name: number for name, number in cluster.watching.items() if number}


def test_without_an_audit_each_selection_is_watched_once() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        async with running(cluster, reflectors=True):
            await rest(10)
            assert open_watches(cluster) == dict.fromkeys((*OF_BOTH, *OF_THE_OPERATOR, UNLABELLED), 1)

    virtually(scenario)


@pytest.mark.parametrize("namespaces", [(), (NAMESPACE, "team-b")], ids=["cluster", "namespaces"])
def test_with_an_audit_each_kind_is_watched_once_for_all(namespaces: tuple[str, ...]) -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        async with running(cluster, reflectors=True, namespaces=namespaces):
            await rest(10)
            assert cluster.watching[PODS] == (len(namespaces) or 1)
            cluster.put(an_audit())
            await rest(10)
            assert condition(cluster) == ("True", "IsolationProven")
            watches = open_watches(cluster)
            assert {path for path in OF_BOTH if watches[path] == 1} == OF_BOTH
            assert UNLABELLED not in watches
            alone = {path: len(namespaces) or 1 for path in OF_THE_OPERATOR if "hermetic.dev" not in path}
            assert {path: watches[path] for path in alone} == alone
            # The audit reads three ConfigMaps one by one, beside all of them.
            of_the_audit = {
                path: number for path, number in watches.items() if path not in OF_BOTH and path not in alone
            }
            assert {path for path, number in of_the_audit.items() if number > 1} == {"/api/v1/configmaps"}

    virtually(scenario)


@pytest.mark.parametrize("namespaces", [(), (NAMESPACE,)], ids=["cluster", "namespaces"])
def test_models_are_served_by_what_the_audit_watches(namespaces: tuple[str, ...]) -> None:
    """A pod in trouble, drift and a Service's address: nothing but the shared watches can show them."""

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_audit())
        async with running(cluster, reflectors=True, namespaces=namespaces):
            await rest(10)
            cluster.put(a_model())
            await rest(5)
            policy = cluster.objects[where("NetworkPolicy")]
            cluster.remove(*where("NetworkPolicy"))
            await rest(5)
            assert cluster.objects[where("NetworkPolicy")]["spec"] == policy["spec"]
            cluster.edit(where("Deployment"), lambda live: live["spec"].update(replicas=7))
            await rest(5)
            assert cluster.objects[where("Deployment")]["spec"]["replicas"] == 1
            assert written(cluster).count("NetworkPolicy") == 2

    virtually(scenario)


class Unreadable(ClusterInMemory):
    """The pods of the whole cluster may not be listed for a time."""

    refused = True

    async def pages(self, kind: Kind, **how: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
        if self.refused and kind.plural == "pods" and not how.get("label_selector"):
            raise Forbidden("pods is forbidden", status=403, reason="Forbidden")
        async for page in super().pages(kind, **how):
            yield page


def test_what_the_audit_may_not_read_the_operator_watches_by_itself() -> None:
    async def scenario() -> None:
        cluster = Unreadable(objects=a_cluster().objects)
        cluster.put(an_audit())
        async with running(cluster, reflectors=True):
            await rest(10)
            assert (cluster.watching[PODS], cluster.watching[UNLABELLED]) == (1, 1)
            cluster.refused = False
            await rest(120)
            assert (cluster.watching[PODS], cluster.watching[UNLABELLED]) == (1, 0)

    virtually(scenario)


@pytest.mark.parametrize("at", ["before the audit", "after it"])
def test_a_malformed_object_may_lead_to_the_pods_and_is_watched_once(at: str) -> None:
    """A definition with another schema may admit any; what the audit makes of it is its own affair."""
    malformed_ingress = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {"rules": "odd"}}

    def malformed(cluster: ClusterInMemory) -> None:
        cluster.put({**malformed_ingress, "metadata": {"name": "odd", "namespace": "team-b"}})

    def of_the_endpoint(cluster: ClusterInMemory) -> tuple[str, str]:
        conditions = cluster.of_kind("ModelDeployment")[0]["status"]["conditions"]
        return next(
            (model_condition["status"], model_condition["reason"])
            for model_condition in conditions
            if model_condition["type"] == "EndpointPrivate"
        )

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(a_model(endpoint={}))
        async with running(cluster, reflectors=True):
            await rest(10)
            if at == "before the audit":
                malformed(cluster)
            cluster.put(an_audit())
            await rest(130)
            malformed(cluster)
            await rest(RESYNC_SECONDS + 60)
            assert cluster.watching[INGRESSES] == 1
            assert of_the_endpoint(cluster) == ("Unknown", "PermissionLost")
            cluster.remove("Ingress", "team-b", "odd")
            await rest(RESYNC_SECONDS + 60)
            assert of_the_endpoint(cluster) == ("True", "ClusterInternal")
            assert cluster.watching[INGRESSES] == 1

    virtually(scenario)


def test_a_defect_of_the_audit_gives_the_operator_its_own_watches_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_audit())
        cluster.put(a_model())
        async with running(cluster, reflectors=True):
            await rest(10)
            assert cluster.watching[DEPLOYMENTS] == 1
            with monkeypatch.context() as patched:
                patched.setattr(ClusterObservations, "see", _defect)
                patched.setattr(ClusterObservations, "take", _defect)
                cluster.put(_labelled("Deployment", "others", {}))
                await rest(60)
                cluster.edit(where("Deployment"), lambda live: live["spec"].update(replicas=7))
                await rest(5)
                assert cluster.objects[where("Deployment")]["spec"]["replicas"] == 1
            await rest(60)
            assert cluster.watching[DEPLOYMENTS] == 1

    virtually(scenario)


def _defect(*_: object, **__: object) -> None:
    raise KeyError("a defect")


# ---------------------------------------------------------------------- the same store as by watches of its own

KEYS: tuple[Key, ...] = ((NAMESPACE, "llama"), (NAMESPACE, "qwen"))
MANAGED = {"app.kubernetes.io/managed-by": "hermetic"}
KINDS = ("NetworkPolicy", "Deployment", "PersistentVolume", "Service", "Pod", "Pod", "Pod")


def _ignored(_concerned: frozenset[Key]) -> None:
    """Nothing is reconciled here."""


class Followed:
    """A store that is kept up to date by reflectors, with a feed of the audit's watches or without."""

    def __init__(self, cluster: FaultyCluster, *, fed: bool) -> None:
        self._cluster = cluster
        self.store = Store(Configuration())
        self._following = StoreWatches(
            cluster, self.store, see=self.see, relist=self._relist, listed=lambda _kind, _keys: None
        )
        self._audit = CacheWatches(cluster, ClusterObservations(), feeds=self._following.feed) if fed else None

    def see(self, manifest: Manifest, *, gone: bool) -> None:
        (self.store.drop if gone else self.store.put)(manifest)

    async def _relist(self, watched: WatchSpec) -> None:
        await relist(self._cluster, self.store, watched, listed=_ignored)

    async def prime(self) -> None:
        for model in self._cluster.of_kind("ModelDeployment"):
            self.see(model, gone=False)
        for watched in STORE_WATCHES:
            await self._relist(watched)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._following.run())
            if self._audit is not None:
                group.create_task(self._audit.run())

    def snapshots(self) -> list[ClusterSnapshot | None]:
        return [self.store.snapshot(key) for key in KEYS]

    def counts(self) -> Counter[str]:
        return Counter(
            {
                f"{watch.kind.plural}.{watch.kind.version} {watch.kind.part}": self.store.count(watch.kind)
                for watch in STORE_WATCHES
            }
        )


def _labelled(kind: str, name: str, labels: dict[str, str], **fields: Any) -> Manifest:
    versions = {"NetworkPolicy": "networking.k8s.io/v1", "Deployment": "apps/v1"}
    metadata = {"name": name, "labels": labels} | ({} if kind == "PersistentVolume" else {"namespace": NAMESPACE})
    return {"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata, "spec": {}, **fields}


def act(cluster: FaultyCluster) -> None:
    """Create, change or delete an object of ours or of others, labels and states included."""
    chance = cluster.chance
    kind, of = chance.choice(KINDS), chance.choice(KEYS)[1]
    labels = chance.choice([{}, {**MANAGED, "hermetic.dev/modeldeployment": of, "hermetic.dev/namespace": NAMESPACE}])
    at = (
        kind,
        "" if kind == "PersistentVolume" else NAMESPACE,
        f"{of}-{chance.randint(0, 2)}" if kind == "Pod" else of,
    )
    if at in cluster.objects and chance.random() < 0.25:
        cluster.remove(*at)
        return
    workload = _labelled(kind, at[2], labels)
    if kind == "Deployment":
        workload["spec"] = {"replicas": chance.randint(0, 3), "template": {"metadata": {}, "spec": {}}}
    if kind == "Pod":
        before = cluster.objects.get(at)
        account = (
            before["spec"]["serviceAccountName"] if before else chance.choice(["default", *(key[1] for key in KEYS)])
        )
        workload["spec"] = {"serviceAccountName": account, "containers": [{"name": "engine", "image": "x"}]}
        workload["status"] = {"phase": chance.choice(["Pending", "Running", "Succeeded", "Failed"])}
    cluster.put(workload)


# the clusters are those of the schedules: how late a watch is follows from the seed
@pytest.mark.parametrize("late", [0.0], ids=["seeded"], indirect=True)
@pytest.mark.parametrize("seed", range(24))
def test_a_store_that_is_fed_is_the_store_that_watches_for_itself(seed: int) -> None:
    """Through refusals, stale lists, watches that are cut, forgotten or silent."""

    random.seed(seed)  # the product spreads its pauses by chance

    async def scenario() -> None:
        cluster = FaultyCluster(seed)
        for key in KEYS:
            cluster.put(a_model(key[1]))
        by_feed, by_itself = Followed(cluster, fed=True), Followed(cluster, fed=False)
        for reader in (by_feed, by_itself):
            await reader.prime()
        tasks = [asyncio.ensure_future(reader.run()) for reader in (by_feed, by_itself)]
        try:
            for _ in range(8):
                for _ in range(15):
                    cluster.trouble = cluster.chance.choice([0.0, 0.1, 0.3])
                    act(cluster)
                    if cluster.chance.random() < 0.1:
                        cluster.cut_watches(forgets=cluster.chance.random() < 0.5)
                    await asyncio.sleep(cluster.chance.choice([0.0, 0.01, 0.5, 30.0]))
                cluster.trouble = 0.0
                await asyncio.sleep(130)  # longer than any back-off
                for _ in range(10):  # what follows comes by watches alone
                    act(cluster)
                    await asyncio.sleep(1)
                    assert by_feed.counts() == by_itself.counts()
                    assert by_feed.snapshots() == by_itself.snapshots()
                assert (cluster.watching[PODS], cluster.watching[UNLABELLED]) == (2, 1), "one of them is fed"
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    virtually(scenario)


def test_the_audit_ends_with_its_watches_and_the_operator_goes_on() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        store = Store(Configuration())

        async def list_anew(watched: WatchSpec) -> None:
            await relist(cluster, store, watched, listed=_ignored)

        following = StoreWatches(
            cluster,
            store,
            see=lambda manifest, *, gone: (store.drop if gone else store.put)(manifest),
            relist=list_anew,
            listed=lambda _kind, _keys: None,
        )
        for watched in STORE_WATCHES:
            await list_anew(watched)
        lists = cluster.lists["pods"]
        own = asyncio.ensure_future(following.run())
        audit = asyncio.ensure_future(CacheWatches(cluster, ClusterObservations(), feeds=following.feed).run())
        await rest(10)
        assert (cluster.watching[PODS], cluster.watching[UNLABELLED]) == (1, 0)
        audit.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await audit
        await rest(10)
        assert (cluster.watching[PODS], cluster.watching[UNLABELLED]) == (1, 1)
        assert cluster.lists["pods"] == lists + 1, "it goes on where the feed ended, without a list"
        own.cancel()

    virtually(scenario)

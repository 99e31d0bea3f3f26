"""Kinds that may lead to the pods and may not be listed: said so, and only where there could be any."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.errors import Forbidden, NotFound
from hermetic.kinds import ENDPOINT_SLICE, GATEWAY, INGRESS, ROUTES, SERVICE, Kind
from hermetic.kube.store import Store
from hermetic.kube.store_lists import StoreList
from hermetic.kube.watch_specs import STORE_WATCHES
from tests.controller.auditing import a_cluster, an_audit
from tests.controller.running import RESYNC_SECONDS, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.virtual_loop import virtually
from tests.scenarios import a_baked_model, reporting

EXPOSING_KINDS = (ENDPOINT_SLICE, INGRESS, GATEWAY, ROUTES[0], ROUTES[-1])


def refusing(kind: Kind, error: Exception) -> Any:
    async def fault(verb: str, where: Coordinates) -> None:
        if (verb, where[0]) == ("list", kind.kind):
            raise error

    return fault


def forbidden(kind: Kind) -> Any:
    return refusing(kind, Forbidden(f"may not list {kind.plural}", status=403, reason="Forbidden"))


def endpoint(cluster: ClusterInMemory) -> tuple[str, str, str]:
    model = cluster.of_kind("ModelDeployment")[0]
    (condition,) = (candidate for candidate in model["status"]["conditions"] if candidate["type"] == "EndpointPrivate")
    return condition["status"], condition["reason"], condition["message"]


def a_model() -> dict[str, Any]:
    manifest = reporting(a_baked_model("llama", endpoint={}))
    manifest["metadata"]["namespace"] = "team-a"
    return manifest


@pytest.mark.parametrize("kind", EXPOSING_KINDS, ids=lambda kind: f"{kind.kind} {kind.version}")
def test_a_kind_that_may_not_be_listed_leaves_the_endpoint_unknown_until_it_may(kind: Kind) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory(fault=forbidden(kind))
        cluster.put(a_model())
        async with running(cluster):
            await rest()
            status, reason, message = endpoint(cluster)
            assert (status, reason) == ("Unknown", "PermissionLost")
            assert f"the operator may not list {kind.plural}," in message

            cluster.fault = ClusterInMemory().fault
            await rest(RESYNC_SECONDS + 60)
            assert endpoint(cluster)[:2] == ("True", "ClusterInternal")

            cluster.fault = forbidden(kind)
            await rest(RESYNC_SECONDS + 60)
            assert endpoint(cluster)[:2] == ("Unknown", "PermissionLost")

    virtually(scenario)


@pytest.mark.parametrize("kind", [SERVICE, *EXPOSING_KINDS], ids=lambda kind: f"{kind.kind} {kind.version}")
def test_a_malformed_object_ends_no_list_and_may_lead_to_the_pods(kind: Kind) -> None:
    """A definition with another schema may admit any; the operator would neither start nor get past its next list."""
    malformed_object: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "spec": "odd",
        "endpoints": "odd",
    }

    async def scenario() -> None:
        cluster = ClusterInMemory()
        cluster.put({**malformed_object, "metadata": {"name": "odd", "namespace": "team-b"}})
        cluster.put(a_model())
        async with running(cluster):
            await rest()
            assert endpoint(cluster)[:2] == ("Unknown", "PermissionLost")
            await rest(RESYNC_SECONDS + 60)
            cluster.put(a_model() | {"metadata": {"name": "second", "namespace": "team-a"}})
            await rest()
            assert len(cluster.of_kind("Deployment")) == 2
            cluster.remove(kind.kind, "team-b", "odd", seen=False)
            await rest(RESYNC_SECONDS + 60)
            assert endpoint(cluster)[:2] == ("True", "ClusterInternal")

    virtually(scenario)


@pytest.mark.parametrize("fed", [False, True], ids=["own watches", "fed by the audit"])
@pytest.mark.parametrize("before", ["nothing", "well-formed"])
@pytest.mark.parametrize("kind", [SERVICE, *EXPOSING_KINDS], ids=lambda kind: f"{kind.kind} {kind.version}")
def test_a_malformed_object_of_a_watch_may_lead_to_the_pods_at_once(kind: Kind, before: str, fed: bool) -> None:
    exposing_object: dict[str, Any] = {
        "apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "odd", "namespace": "team-b"},
    }  # fmt: skip

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(a_model())
        if fed:
            cluster.put(an_audit())
        async with running(cluster, reflectors=True):
            await rest(130)
            if before == "well-formed":
                cluster.put({**exposing_object, "spec": {}, "endpoints": []})
                await rest(5)
            assert endpoint(cluster)[:2] == ("True", "ClusterInternal")

            cluster.put({**exposing_object, "spec": "odd", "endpoints": "odd"})
            await rest(5)
            status, reason, message = endpoint(cluster)
            assert (status, reason) == ("Unknown", "PermissionLost")
            assert f"an object among {kind.plural} is not understood" in message
            await rest(RESYNC_SECONDS + 60)
            assert endpoint(cluster)[:2] == ("Unknown", "PermissionLost")

            cluster.remove(kind.kind, "team-b", "odd")
            await rest(RESYNC_SECONDS + 60)
            assert endpoint(cluster)[:2] == ("True", "ClusterInternal")

    virtually(scenario)


def test_a_list_that_began_before_a_malformed_object_came_does_not_hide_it() -> None:
    store, watched = (
        Store(Configuration()),
        next(store_watch for store_watch in STORE_WATCHES if store_watch.kind is GATEWAY),
    )

    def list_at(version: int, *, meanwhile: int | None = None) -> None:
        listed = StoreList(store, watched, None, lambda _keys: None)
        listed.begin(str(version))
        if meanwhile is not None:
            store.note_malformed(GATEWAY, meanwhile)
        listed.complete()

    def is_unseen() -> bool:
        return store.note_malformed(GATEWAY, 0) == frozenset()

    store.put({**a_model(), "metadata": {**a_model()["metadata"], "uid": "u", "resourceVersion": "1"}})
    list_at(5, meanwhile=7)
    assert is_unseen()
    list_at(7)
    assert not is_unseen()


@pytest.mark.parametrize("kind", [GATEWAY, ROUTES[0]], ids=lambda kind: kind.kind)
def test_a_kind_with_a_malformed_object_that_is_no_longer_served_leads_nowhere(kind: Kind) -> None:
    malformed_object = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": "odd"}

    async def scenario() -> None:
        cluster = ClusterInMemory()
        cluster.put(a_model())
        async with running(cluster, reflectors=True):
            cluster.put({**malformed_object, "metadata": {"name": "odd", "namespace": "team-b"}})
            await rest(5)
            assert endpoint(cluster)[0] == "Unknown"
            cluster.fault = refusing(kind, NotFound("not found", status=404, reason="NotFound"))
            await rest(RESYNC_SECONDS + 60)
            assert endpoint(cluster)[:2] == ("True", "ClusterInternal")

    virtually(scenario)


@pytest.mark.parametrize("kind", [GATEWAY, ROUTES[0]], ids=lambda kind: kind.kind)
@pytest.mark.parametrize("refused", ["forbidden", "not found"])
def test_a_kind_that_is_not_served_leads_nowhere(kind: Kind, refused: str) -> None:
    async def scenario() -> None:
        missing = refusing(kind, NotFound("not found", status=404, reason="NotFound"))
        fault = forbidden(kind) if refused == "forbidden" else missing
        cluster = ClusterInMemory(fault=fault, unserved=frozenset({kind}))
        cluster.put(a_model())
        async with running(cluster):
            await rest()
            assert endpoint(cluster)[:2] == ("True", "ClusterInternal")

    virtually(scenario)

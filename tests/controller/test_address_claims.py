"""Whose a load balancer address is: who holds it, then who was accepted with it first, in whatever order news comes."""

from __future__ import annotations

import asyncio
import itertools
import random
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.kube.store import Store
from tests.controller.running import a_model, ready, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.virtual_loop import virtually
from tests.scenarios import DIGEST, a_baked_model

Manifest = dict[str, Any]
ADDRESS = "10.13.76.40"
_VERSIONS = itertools.count(1)


def asking(
    namespace: str,
    *,
    created: int,
    address: str | None = ADDRESS,
    stalled: str = "",
    port: int = 8000,
    ranges: tuple[str, ...] = (),
    **metadata: Any,
) -> Manifest:
    balancer = {**({"address": address} if address else {}), **({"allowedSourceRanges": ranges} if ranges else {})}
    manifest = a_baked_model("m", endpoint={"internalLoadBalancer": balancer, "servicePort": port})
    manifest["metadata"] |= {
        "namespace": namespace,
        "uid": f"uid-{namespace}",
        "resourceVersion": str(next(_VERSIONS)),
        "generation": 1,
        "creationTimestamp": f"2026-11-21T12:00:{created:02}Z",
        **metadata,
    }
    if stalled:
        manifest["status"] = {"conditions": [{"type": "Stalled", "status": "True", "reason": stalled}]}
    return manifest


def service(
    namespace: str, *, created: int, asks: str = ADDRESS, has: str = "", port: int = 8000, ranges: tuple[str, ...] = ()
) -> Manifest:
    owner = {"kind": "ModelDeployment", "name": "m", "uid": f"uid-{namespace}", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "m",
            "namespace": namespace,
            "uid": f"service-{namespace}",
            "resourceVersion": str(next(_VERSIONS)),
            "creationTimestamp": f"2026-11-21T13:00:{created:02}Z",
            "labels": {"app.kubernetes.io/managed-by": "hermetic", "hermetic.dev/modeldeployment": "m"},
            "ownerReferences": [owner],
            "annotations": {"service.beta.kubernetes.io/azure-load-balancer-ipv4": asks},
        },
        "spec": {
            "type": "LoadBalancer",
            "ports": [{"port": port}],
            **({"loadBalancerSourceRanges": list(ranges)} if ranges else {}),
        },
        "status": {"loadBalancer": {"ingress": [{"ip": has}]} if has else {}},
    }


def holders(store: Store, *namespaces: str) -> dict[str, str]:
    holder_of = {}
    for namespace in namespaces:
        snapshot = store.snapshot((namespace, "m"))
        assert snapshot is not None
        holder_of[namespace] = snapshot.address_holder
    return holder_of


def a_store(*manifests: Manifest, **policy: Any) -> Store:
    store = Store(Configuration.model_validate(policy))
    for manifest in manifests:
        store.put(manifest)
    return store


BOB = (asking("bob", created=9), service("bob", created=9, has=ADDRESS))


@pytest.mark.parametrize(
    "alice",
    [
        (asking("alice", created=1),),
        (asking("alice", created=1), service("alice", created=1)),
        (asking("alice", created=1, stalled="RegistryNotAllowed"),),
        (asking("alice", created=1, deletionTimestamp="2026-11-21T14:00:00Z", finalizers=["x/y"]),),
    ],
    ids=["older", "older and accepted", "never to be served", "deleted and held by a finalizer"],
)
def test_an_address_is_taken_from_no_deployment_that_holds_it(alice):
    assert holders(a_store(*alice, *BOB), "alice", "bob") == {"alice": "bob/m", "bob": ""}
    assert holders(a_store(*BOB, *alice), "alice", "bob") == {"alice": "bob/m", "bob": ""}


def test_the_first_accepted_goes_before_the_older():
    """Alice's object is old, and its address was changed to what bob was accepted with while his was still pending."""
    store = a_store(asking("alice", created=1), asking("bob", created=9), service("bob", created=9))
    assert holders(store, "alice", "bob") == {"alice": "bob/m", "bob": ""}


def test_a_service_that_asks_for_something_else_is_no_claim():
    store = a_store(asking("alice", created=1), service("alice", created=1, asks="10.13.76.41"), *BOB)
    assert holders(store, "alice", "bob") == {"alice": "bob/m", "bob": ""}


@pytest.mark.parametrize(
    "alice",
    [
        asking("alice", created=1, stalled="RegistryNotAllowed"),
        asking("alice", created=1, stalled="EngineSettingNotAllowed"),
        asking("alice", created=1, deletionTimestamp="2026-11-21T14:00:00Z", finalizers=["x/y"]),
        asking("alice", created=1, address=None),
    ],
)
def test_a_deployment_that_can_never_have_it_blocks_no_other(alice):
    assert holders(a_store(alice, asking("bob", created=9)), "bob") == {"bob": ""}


def test_of_those_who_wait_the_first_created_is_next():
    waiting = [
        asking(name, created=position, stalled="EndpointConflict") for position, name in enumerate(("b", "c", "d"))
    ]
    assert holders(a_store(*waiting), "b", "c", "d") == {"b": "", "c": "b/m", "d": "b/m"}


def test_a_namespace_that_may_not_ask_for_it_blocks_no_other():
    lines = [{"ranges": ["10.13.76.32/28"], "namespaces": ["bob"]}]
    store = a_store(asking("alice", created=1), asking("bob", created=9), addresses=lines)
    assert holders(store, "bob") == {"bob": ""}


def test_every_waiting_model_is_reconciled_when_a_service_releases_the_address():
    store = a_store(*BOB, asking("alice", created=1), asking("carol", created=2))
    gone = service("bob", created=9, has=ADDRESS)
    assert {("alice", "m"), ("carol", "m")} <= store.drop(gone)
    store.put(service("bob", created=9, has=ADDRESS))
    assert {("alice", "m"), ("carol", "m")} <= store.put(service("bob", created=9, asks="10.13.76.41"))
    assert {("alice", "m"), ("carol", "m")} <= store.drop(asking("bob", created=9))


# ---------------------------------------------------------------------- several models at one address

RANGES = ("10.0.0.0/8",)


@pytest.mark.parametrize("order", [1, -1], ids=["oldest first", "oldest last"])
def test_different_ports_of_one_address_belong_to_different_deployments(order: int) -> None:
    alice, bob, carol = (asking(name, created=at, port=port) for name, at, port in (
        ("alice", 1, 443), ("bob", 2, 8000), ("carol", 3, 443),
    ))  # fmt: skip
    store = a_store(*[alice, bob, carol][::order])
    assert holders(store, "alice", "bob", "carol") == {"alice": "", "bob": "", "carol": "alice/m"}


@pytest.mark.parametrize("limited", ["alice", "bob"])
def test_address_is_not_shared_where_one_limits_its_clients(limited: str) -> None:
    """The rule that denies all others is for the whole address."""
    store = a_store(
        asking("alice", created=1, port=443, ranges=RANGES if limited == "alice" else ()),
        asking("bob", created=2, port=8000, ranges=RANGES if limited == "bob" else ()),
    )
    assert holders(store, "alice", "bob") == {"alice": "", "bob": "alice/m"}


def test_deployment_that_limits_its_clients_later_takes_the_address_from_no_other() -> None:
    served = (service("alice", created=1, has=ADDRESS, port=443), service("bob", created=2, has=ADDRESS))
    store = a_store(asking("alice", created=1, port=443, ranges=RANGES), asking("bob", created=2), *served)
    assert holders(store, "alice", "bob") == {"alice": "bob/m", "bob": ""}


def test_deployment_that_moves_to_the_port_of_another_waits_for_it() -> None:
    served = (service("alice", created=1, has=ADDRESS, port=443), service("bob", created=2, has=ADDRESS))
    store = a_store(asking("alice", created=1), asking("bob", created=2), *served)
    assert holders(store, "alice", "bob") == {"alice": "bob/m", "bob": ""}


def test_port_is_free_once_the_service_has_left_it() -> None:
    store = a_store(
        asking("alice", created=1, port=443), asking("bob", created=2), service("alice", created=1, has=ADDRESS)
    )
    assert holders(store, "alice", "bob") == {"alice": "", "bob": "alice/m"}
    assert ("bob", "m") in store.put(service("alice", created=1, has=ADDRESS, port=443))
    assert holders(store, "alice", "bob") == {"alice": "", "bob": ""}


@pytest.mark.sampled(40)
@pytest.mark.parametrize("seed", range(200))
def test_in_any_order_of_news_exactly_one_has_it_and_who_holds_it_keeps_it(seed):
    chosen = random.Random(seed)
    names = ["a", "b", "c", "d"]
    store, live, holding = Store(Configuration()), dict[str, Manifest](), ""
    for _ in range(30):
        name = chosen.choice(names)
        step = chosen.choice(["ask", "ask", "delete", "give", "take", "stall"])
        if step in ("ask", "stall"):
            live[name] = asking(
                name, created=names.index(name), stalled="RegistryNotAllowed" if step == "stall" else ""
            )
            store.put(live[name])
        elif step == "delete" and name in live:
            last = live.pop(name)
            store.drop({**last, "metadata": {**last["metadata"], "resourceVersion": str(next(_VERSIONS))}})
            store.drop(service(name, created=1))
            holding = "" if holding == name else holding
        elif step == "give" and name in live and not holding:
            snapshot = store.snapshot((name, "m"))
            assert snapshot is not None
            if not snapshot.address_holder:  # what the operator does: it applies the Service of whose the address is
                store.put(service(name, created=1, has=ADDRESS))
                holding = name
        elif step == "take" and name == holding:
            store.drop(service(name, created=1))
            holding = ""
        holder_of = holders(store, *live)
        assert len([holder for holder in holder_of.values() if holder]) <= max(0, len(live) - 1), (
            "at least one must be free to have it"
        )
        if holding:
            assert holder_of == {namespace: "" if namespace == holding else f"{holding}/m" for namespace in live}


# ---------------------------------------------------------------------- the operator itself

FOREIGN = {"vllm": {"image": f"evil.example/x@sha256:{DIGEST}", "version": "0.32.0"}}


def at(address: str) -> Manifest:
    return {"internalLoadBalancer": {"address": address}}


def test_who_waits_has_the_address_once_the_status_of_the_older_says_that_it_is_refused():
    """The answer to the status write is in the store before the watch brings it."""

    async def scenario() -> None:
        async def slow(verb: str, where_: Coordinates) -> None:
            if verb == "patch status" and where_ == where("ModelDeployment", "a"):
                await asyncio.sleep(5)

        cluster = ClusterInMemory(fault=slow)
        cluster.put(a_model("a", endpoint=at(ADDRESS), engine=FOREIGN))
        cluster.put(a_model("b", endpoint=at(ADDRESS)))
        async with running(cluster):
            await rest(3)
            assert ready(cluster, "b")["reason"] == "EndpointConflict"
            await rest(30)
            assert ready(cluster, "a")["reason"] == "RegistryNotAllowed"
            assert ready(cluster, "b")["reason"] == "Starting"

    virtually(scenario)

"""Models that share one route: one writer at a time, weights that follow what serves, and no write at rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hermetic.errors import Forbidden
from tests.controller.running import a_model, condition, ready, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.virtual_loop import virtually
from tests.gateways import ALLOWED, a_gateway, a_report
from tests.scenarios import Manifest

POLICY = {"gateways": [ALLOWED]}
ROUTE = where("HTTPRoute", "group.chat")


def a_member(name: str, weight: int, **gateway: Any) -> Manifest:
    route = {"name": "models", "namespace": "gateways", "group": "chat", "weight": weight, **gateway}
    return a_model(name, endpoint={"gateway": route})


def a_cluster(*members: Manifest) -> ClusterInMemory:
    cluster = ClusterInMemory()
    cluster.put(a_gateway())
    for member in members:
        cluster.put(member)
    return cluster


def serve(cluster: ClusterInMemory, name: str, pods: int = 1) -> None:
    """As the Deployment controller reports it."""
    status = {
        "observedGeneration": 99, "replicas": 1, "updatedReplicas": 1, "readyReplicas": pods, "availableReplicas": pods,
    }  # fmt: skip
    cluster.edit(where("Deployment", name), lambda live: live.update(status=status))


def weigh(cluster: ClusterInMemory, name: str, weight: int) -> None:
    cluster.edit(where("ModelDeployment", name), lambda live: live["spec"]["endpoint"]["gateway"].update(weight=weight))


def weights(cluster: ClusterInMemory) -> dict[str, int]:
    """Of the live route, by Service; the same in both rules."""
    route = cluster.objects[ROUTE]
    per_rule = [
        {backend["name"]: backend["weight"] for backend in rule["backendRefs"]} for rule in route["spec"]["rules"]
    ]
    assert per_rule[0] == per_rule[-1]
    return per_rule[0]


def owners(cluster: ClusterInMemory) -> list[str]:
    return [owner["name"] for owner in cluster.objects[ROUTE]["metadata"]["ownerReferences"]]


def writes_of_the_route(cluster: ClusterInMemory) -> int:
    return sum(coordinates == ROUTE for _, coordinates in cluster.writes)


def leave(cluster: ClusterInMemory, name: str) -> None:
    """The model keeps its gateway and leaves the group."""
    cluster.edit(
        where("ModelDeployment", name),
        lambda live: [live["spec"]["endpoint"]["gateway"].pop(field) for field in ("group", "weight")],
    )


def delete(cluster: ClusterInMemory, name: str) -> None:
    """The model is deleted, and the garbage collector does its part."""
    gone = cluster.objects[where("ModelDeployment", name)]["metadata"]["uid"]
    cluster.remove(*where("ModelDeployment", name))
    for coordinates, live in list(cluster.objects.items()):
        references = live["metadata"].get("ownerReferences") or []
        left = [reference for reference in references if reference["uid"] != gone]
        if references and not left:
            cluster.remove(*coordinates)
        elif left != references:
            cluster.edit(coordinates, lambda manifest, left=left: manifest["metadata"].update(ownerReferences=left))


def test_canary_is_promoted_by_its_weight_and_gets_no_request_before_it_serves() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 100))
        async with running(cluster, policy=POLICY):
            await rest()
            serve(cluster, "v1")
            await rest()
            assert weights(cluster) == {"v1": 100}
            assert cluster.objects[ROUTE]["spec"]["rules"][0]["matches"][0]["path"]["value"] == "/team-a/chat"

            cluster.put(a_member("v2", 10))
            await rest()
            assert weights(cluster) == {"v1": 100, "v2": 0}
            serve(cluster, "v2")
            await rest()
            assert weights(cluster) == {"v1": 100, "v2": 10}
            assert owners(cluster) == ["v1", "v2"]

            for old, new in ((50, 50), (0, 100)):
                weigh(cluster, "v1", old)
                weigh(cluster, "v2", new)
                await rest()
                assert weights(cluster) == {"v1": old, "v2": new}
            await _is_at_rest(cluster)

    virtually(scenario)


async def _is_at_rest(cluster: ClusterInMemory) -> None:
    before = writes_of_the_route(cluster)
    for name in ("v1", "v2"):
        if where("ModelDeployment", name) in cluster.objects:
            cluster.edit(where("ModelDeployment", name), lambda live: live["metadata"].update(labels={"seen": "yes"}))
    await rest(700)  # a full list of everything, too
    assert writes_of_the_route(cluster) == before


def test_every_member_says_what_leads_to_it() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 90), a_member("v2", 10))
        async with running(cluster, policy=POLICY):
            await rest()
            serve(cluster, "v1")
            await rest()
            cluster.edit(ROUTE, lambda live: live.update(status={"parents": [a_report()]}))
            await rest()
            served = condition(cluster, "RouteServed", "v2")
            assert served["status"] == "True"
            assert (
                "serves HTTPRoute 'group.chat' with the weight 0 of 90; `weight` 10 counts once it serves"
                in served["message"]
            )
            assert "with the weight 90 of 90" in condition(cluster, "RouteServed", "v1")["message"]
            assert condition(cluster, "EndpointPrivate", "v2")["reason"] == "PrivateAddress"
            status = cluster.objects[where("ModelDeployment", "v2")]["status"]
            assert status["endpoint"]["url"] == "http://10.224.0.9/team-a/chat/v1"

    virtually(scenario)


def test_member_that_no_longer_serves_gets_no_request_while_another_does() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 90), a_member("v2", 10))
        async with running(cluster, policy=POLICY):
            await rest()
            assert weights(cluster) == {"v1": 90, "v2": 10}, "none serves: the gateway answers for both"
            for name in ("v1", "v2"):
                serve(cluster, name)
            await rest()
            serve(cluster, "v1", pods=0)
            await rest()
            assert weights(cluster) == {"v1": 0, "v2": 10}
            serve(cluster, "v2", pods=0)
            await rest()
            assert weights(cluster) == {"v1": 90, "v2": 10}

    virtually(scenario)


@pytest.mark.parametrize("go", [delete, leave], ids=["deleted", "leaves"])
@pytest.mark.parametrize("first", ["v1", "v2"])
def test_route_stays_when_a_member_goes_and_goes_with_the_last(
    go: Callable[[ClusterInMemory, str], None], first: str
) -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 50), a_member("v2", 50))
        async with running(cluster, policy=POLICY):
            await rest()
            for name in ("v1", "v2"):
                serve(cluster, name)
            await rest()
            uid = cluster.objects[ROUTE]["metadata"]["uid"]
            second = "v2" if first == "v1" else "v1"

            go(cluster, first)
            await rest()
            assert cluster.objects[ROUTE]["metadata"]["uid"] == uid
            assert (weights(cluster), owners(cluster)) == ({second: 50}, [second])
            await _is_at_rest(cluster)

            go(cluster, second)
            await rest()
            assert ROUTE not in cluster.objects

    virtually(scenario)


def test_both_leave_at_once_and_the_route_goes() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 50), a_member("v2", 50))
        async with running(cluster, policy=POLICY):
            await rest()
            leave(cluster, "v1")
            leave(cluster, "v2")
            await rest()
            assert ROUTE not in cluster.objects
            assert {where("HTTPRoute", name) in cluster.objects for name in ("v1", "v2")} == {True}

    virtually(scenario)


def test_next_member_writes_while_the_oldest_is_blocked() -> None:
    """The spec of the oldest is broken after it served: its pods serve on, and its weight counts."""

    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 100), a_member("v2", 0))
        async with running(cluster, policy=POLICY):
            await rest()
            for name in ("v1", "v2"):
                serve(cluster, name)
            await rest()
            limits = {"memory": "1Gi", "sharedMemory": "2Gi"}
            cluster.edit(where("ModelDeployment", "v1"), lambda live: live["spec"].update(resources=limits))
            await rest()
            assert ready(cluster, "v1")["reason"] == "MemoryTooSmall"
            weigh(cluster, "v2", 60)
            await rest()
            assert weights(cluster) == {"v1": 100, "v2": 60}
            cluster.edit(where("ModelDeployment", "v1"), lambda live: live["spec"].pop("resources"))
            await rest()
            await _is_at_rest(cluster)

    virtually(scenario)


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [("hostname", "other.internal", "hostname"), ("path", "/team-a/other", "path"), ("namespace", "other", "gateway")],
)
def test_member_that_asks_for_something_else_is_refused_and_the_others_are_served(
    field: str, value: str, name: str
) -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 50))
        another = {**ALLOWED, "namespace": "other"}
        async with running(cluster, policy={"gateways": [ALLOWED, another]}):
            await rest()
            cluster.put(a_member("v2", 50, **{field: value}))
            await rest()
            not_ready = ready(cluster, "v2")
            assert not_ready["reason"] == "RouteGroupMismatch"
            assert f"{name} is '" in not_ready["message"]
            assert "in the ModelDeployment 'v1' of the same group 'chat'" in not_ready["message"]
            assert weights(cluster) == {"v1": 50}

    virtually(scenario)


def test_seventeenth_member_is_refused() -> None:
    async def scenario() -> None:
        cluster = a_cluster(*(a_member(f"v{number:02}", 1) for number in range(17)))
        async with running(cluster, policy=POLICY):
            await rest(5)
            assert ready(cluster, "v16")["reason"] == "RouteGroupMismatch"
            assert len(weights(cluster)) == 16

    virtually(scenario)


def test_route_of_a_group_is_removed_when_the_gateway_is_public_and_comes_back() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 50), a_member("v2", 50))
        async with running(cluster, policy=POLICY):
            await rest()
            cluster.put(a_gateway(addresses=("20.1.2.3",)))
            await rest()
            assert ROUTE not in cluster.objects
            assert condition(cluster, "EndpointPrivate", "v2")["reason"] == "GatewayNotPrivate"
            assert sum(verb == "delete" and coordinates == ROUTE for verb, coordinates in cluster.writes) == 1
            cluster.put(a_gateway())
            await rest()
            assert weights(cluster) == {"v1": 50, "v2": 50}

    virtually(scenario)


def test_route_that_others_change_is_corrected_once() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 50), a_member("v2", 50))
        async with running(cluster, policy=POLICY):
            await rest()
            before = writes_of_the_route(cluster)
            cluster.edit(ROUTE, lambda live: live["spec"]["rules"][0]["backendRefs"].pop())
            await rest()
            assert weights(cluster) == {"v1": 50, "v2": 50}
            assert writes_of_the_route(cluster) == before + 1

    virtually(scenario)


def test_route_of_that_name_without_an_owner_is_not_taken_over() -> None:
    async def scenario() -> None:
        cluster = a_cluster(a_member("v1", 50))
        metadata = {"name": "group.chat", "namespace": "team-a"}
        route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": metadata, "spec": {}}
        cluster.put(route)
        async with running(cluster, policy=POLICY):
            await rest(30)
            assert cluster.objects[ROUTE]["spec"] == {}
            assert ready(cluster, "v1")["reason"] == "ChildNotOwned"

    virtually(scenario)


def test_refused_write_of_the_route_is_told_by_the_writer_and_serves_on() -> None:
    async def scenario() -> None:
        async def refuse(verb: str, coordinates: Coordinates) -> None:
            if coordinates == ROUTE and verb == "patch":
                message = 'httproutes is forbidden: User "x" cannot patch resource "httproutes" in API group'
                raise Forbidden(message, status=403)

        cluster = a_cluster(a_member("v1", 50))
        cluster.fault = refuse
        async with running(cluster, policy=POLICY):
            await rest(30)
            assert ready(cluster, "v1")["reason"] == "PermissionLost"
            assert where("Deployment", "v1") in cluster.objects

    virtually(scenario)

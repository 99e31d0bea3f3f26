"""An endpoint for Events that answers late, or never, holds up nothing else."""

from __future__ import annotations

import asyncio

from hermetic.errors import Unreachable
from hermetic.kube.recorder import MOST_WAITING
from tests.controller.running import a_model, reason, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually
from tests.scenarios import BAKED_IMAGE

LATE_SECONDS = 30.0
MANY = MOST_WAITING + 100


def a_refused_model(name: str) -> Manifest:
    """One whose registry is not allowed, which is said in an Event."""
    image = BAKED_IMAGE.replace("contoso.azurecr.io", "docker.io")
    return a_model(name, engine={"vllm": {"image": image, "version": "0.32.0"}})


def test_a_late_endpoint_holds_up_no_reconcile_and_the_events_come_after_all() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory(fault=_late)
        async with running(cluster, workers=1):
            for name in ("llama", "mistral", "phi"):
                cluster.put(a_refused_model(name))
            await rest(LATE_SECONDS / 2)
            assert {reason(cluster, name) for name in ("llama", "mistral", "phi")} == {"RegistryNotAllowed"}
            assert not cluster.events
            await rest(4 * LATE_SECONDS)
            assert {event["regarding"]["name"] for event in cluster.events} == {"llama", "mistral", "phi"}

    virtually(scenario)


def test_of_more_events_than_wait_the_rest_is_dropped_counted_and_no_storm_follows() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory(fault=_never)
        async with running(cluster) as operator:
            for number in range(MANY):
                cluster.put(a_refused_model(f"m{number}"))
            await rest(LATE_SECONDS)
            assert {reason(cluster, f"m{number}") for number in range(MANY)} == {"RegistryNotAllowed"}
            metrics = operator.telemetry.render().decode()
            assert f'hermetic_events_lost_total{{reason="QueueFull"}} {MANY - MOST_WAITING - 1}.0' in metrics

    virtually(scenario)


def test_an_endpoint_that_is_away_costs_no_write_and_no_look() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory(fault=_away)
        async with running(cluster):
            cluster.put(a_refused_model("llama"))
            await rest()
            before = len(cluster.writes)
            await rest(LATE_SECONDS)
            assert (len(cluster.writes), cluster.events) == (before, [])

    virtually(scenario)


def _is_event(verb: str, where: Coordinates) -> bool:
    return (verb, where[0]) == ("create", "Event")


async def _late(verb: str, where: Coordinates) -> None:
    if _is_event(verb, where):
        await asyncio.sleep(LATE_SECONDS)


async def _never(verb: str, where: Coordinates) -> None:
    if _is_event(verb, where):
        await asyncio.Event().wait()


async def _away(verb: str, where: Coordinates) -> None:
    if _is_event(verb, where):
        raise Unreachable("away")

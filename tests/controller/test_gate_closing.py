"""When the gate closes, the Lease is written before the status: an operator may die between the two writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hermetic.controller.pod_gate import CLOSING_SECONDS
from hermetic.errors import ServerError, Unreachable
from hermetic.plan.pod_gate import PODS_UNTIL
from tests.attestations import a_finding
from tests.controller.auditing import AUDIT, PUBLIC, a_cluster, an_attestation, an_audit, status
from tests.controller.running import rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.lease_in_memory import LeaseInMemory
from tests.fakes.virtual_loop import VirtualClock, virtually

Change = Callable[[ClusterInMemory], None]
Scenario = Callable[[ClusterInMemory, LeaseInMemory], Awaitable[None]]


def import_fail(cluster: ClusterInMemory) -> None:
    says = {"verdict": "Fail"}
    cluster.put(an_attestation(a_finding("Fail", "natgw-inventory"), observed=VirtualClock().now(), says=says))


def withdraw_attestation(cluster: ClusterInMemory) -> None:
    (attestation,) = cluster.of_kind("EgressAttestation")
    cluster.remove("EgressAttestation", "", attestation["metadata"]["name"])


def trust_no_readable_key(cluster: ClusterInMemory) -> None:
    keys = [{"name": "platform", "publicKey": "no PEM"}]
    cluster.edit(AUDIT, lambda live: live["spec"].update(trustedKeys=keys))


CHANGES: dict[str, Change] = {
    "Fail imported": import_fail,
    "egress path in the cluster": lambda cluster: cluster.put(PUBLIC),
    "attestation withdrawn": withdraw_attestation,
    "spec unreadable": trust_no_readable_key,
}


def with_open_gate(scenario: Scenario) -> None:
    """Run the scenario where the audit says Pass and the Lease admits pods."""

    async def run() -> None:
        cluster, lease = a_cluster(), LeaseInMemory()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster, lease=lease):
            await rest(5)
            assert status(cluster)["verdict"] == "Pass"
            assert lease.annotations[PODS_UNTIL] > f"{VirtualClock().now():%Y-%m-%dT%H:%M:%SZ}"
            await scenario(cluster, lease)

    virtually(run)


def record_until_at_status(cluster: ClusterInMemory, lease: LeaseInMemory) -> list[str]:
    """The moment in the Lease at each write of the audit's status, as an operator that dies then leaves it."""
    moments: list[str] = []

    async def record(verb: str, about: Coordinates) -> None:
        if (verb, about) == ("patch status", AUDIT):
            moments.append(lease.annotations[PODS_UNTIL])

    cluster.fault = record
    return moments


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_operator_that_dies_before_the_status_is_written_leaves_a_closed_lease(change: Change) -> None:
    async def scenario(cluster: ClusterInMemory, lease: LeaseInMemory) -> None:
        moments = record_until_at_status(cluster, lease)
        lease.seconds = CLOSING_SECONDS / 2
        change(cluster)
        await rest(10)
        assert status(cluster)["verdict"] != "Pass"
        assert moments
        assert set(moments) == {""}

    with_open_gate(scenario)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_status_is_held_back_while_the_lease_is_being_written(change: Change) -> None:
    async def scenario(cluster: ClusterInMemory, lease: LeaseInMemory) -> None:
        lease.hangs = True
        before = status(cluster)
        change(cluster)
        await rest(CLOSING_SECONDS * 0.9)
        assert status(cluster) == before
        assert lease.annotations[PODS_UNTIL]

    with_open_gate(scenario)


@pytest.mark.parametrize("trouble", ["no answer", "refused", "refused once"])
def test_status_is_written_in_time_where_the_lease_cannot_be(trouble: str) -> None:
    async def scenario(cluster: ClusterInMemory, lease: LeaseInMemory) -> None:
        refusals = [Unreachable("gone")] if trouble == "refused once" else [ServerError("away", status=500)] * 1000
        lease.hangs = trouble == "no answer"
        lease.trouble = lambda: refusals.pop() if refusals else None
        import_fail(cluster)
        await rest(2 * CLOSING_SECONDS)
        assert status(cluster)["verdict"] == "Fail"
        if trouble == "refused once":
            await rest(CLOSING_SECONDS)
            assert lease.annotations[PODS_UNTIL] == ""

    with_open_gate(scenario)


def test_lease_that_was_not_written_in_time_is_waited_for_by_the_next_evaluation() -> None:
    async def scenario(cluster: ClusterInMemory, lease: LeaseInMemory) -> None:
        lease.hangs = True
        import_fail(cluster)
        await rest(4 * CLOSING_SECONDS)  # the probe round that the import began has ended
        assert lease.annotations[PODS_UNTIL]
        began = asyncio.get_running_loop().time()
        written: list[float] = []

        async def record(verb: str, about: Coordinates) -> None:
            if (verb, about) == ("patch status", AUDIT):
                written.append(asyncio.get_running_loop().time() - began)

        cluster.fault = record
        cluster.put(PUBLIC)
        await rest(5)
        assert written
        assert written[0] >= CLOSING_SECONDS

    with_open_gate(scenario)


def test_deleted_audit_closes_the_lease_at_once() -> None:
    async def scenario(cluster: ClusterInMemory, lease: LeaseInMemory) -> None:
        cluster.remove(*AUDIT)
        await rest(1)
        assert lease.annotations[PODS_UNTIL] == ""

    with_open_gate(scenario)


def test_gate_that_stays_closed_costs_no_further_renewal() -> None:
    async def scenario(cluster: ClusterInMemory, lease: LeaseInMemory) -> None:
        import_fail(cluster)
        await rest(30)
        before = lease.writes
        for number in range(5):
            cluster.put(an_open_service(number))
            await rest(10)
        assert lease.writes - before <= 6  # one every ten seconds

    with_open_gate(scenario)


def an_open_service(number: int) -> dict[str, Any]:
    return {**PUBLIC, "metadata": {**PUBLIC["metadata"], "name": f"shop-{number}"}}

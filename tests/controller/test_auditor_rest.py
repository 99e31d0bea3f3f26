"""When the EgressAudit says something: at the moments that were announced, and else as seldom as there is news."""

from __future__ import annotations

import asyncio

from tests.controller.auditing import (
    AUDIT,
    PUBLIC,
    a_cluster,
    an_attestation,
    an_audit,
    announced,
    condition,
    passing,
    rounds,
    status,
    without_rounds,
    writes,
)
from tests.controller.running import rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest
from tests.fakes.virtual_loop import virtually

HOUR, DAY = 3600.0, 86400.0


def test_expiry_is_announced_twice_and_happens_once() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        transitions = [(0.76, "EvidenceAging", "Pass"), (0.91, "EvidenceExpiring", "Pass")]
        for share, reason, verdict in [*transitions, (1.001, "IsolationEvidenceStale", "Unknown")]:
            await rest(share * DAY - asyncio.get_running_loop().time())
            assert condition(cluster, "EvidenceFresh")[1] == reason
            assert status(cluster)["verdict"] == verdict
        assert condition(cluster) == ("False", "IsolationEvidenceStale")
        assert status(cluster)["message"] == "the evidence expired at 2026-11-22T12:00:00Z"
        warning_events = [
            announcement
            for announcement in announced(cluster)
            if announcement[1].startswith(("Evidence", "IsolationEvidence"))
        ]
        expected = ["EvidenceAging", "EvidenceExpiring", "IsolationEvidenceStale"]
        assert warning_events == [("Warning", reason) for reason in expected]

    passing(scenario)


def test_an_exception_ends_with_its_last_day_although_nothing_happens() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(PUBLIC)
        accepted = [
            {
                "check": check,
                "resource": "*shop*",
                "reason": "until the edge moves",
                "owner": "a",
                "expires": "2026-11-21",
            }
            for check in ("k8s-public-lb", "k8s-lb-status-ip", "k8s-nodeport")
        ]
        cluster.put(an_attestation())
        cluster.put(an_audit(exceptions=accepted))
        async with running(cluster):
            await rest(10)
            assert status(cluster)["verdict"] == "Pass"
            assert status(cluster)["counts"]["excepted"] >= 1
            await rest(12 * HOUR - 20)
            assert status(cluster)["verdict"] == "Pass"
            await rest(30)
            assert status(cluster)["verdict"] == "Fail"

    virtually(scenario)


# ---------------------------------------------------------------------- writes


def test_an_hour_of_rest_costs_at_most_one_write_for_the_hour_and_one_for_the_probe() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        before, events, began = writes(cluster), len(cluster.events), len(rounds(cluster))
        await rest(HOUR)
        assert writes(cluster) - before <= 2
        assert len(rounds(cluster)) - began <= 1
        await rest(5 * HOUR)
        assert writes(cluster) - before <= 12
        assert len(cluster.events) == events

    passing(scenario)


def test_a_restart_writes_nothing_and_probes_nothing_while_the_evidence_counts() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(600)
        before, events = len(cluster.writes), len(cluster.events)
        async with running(cluster):
            await rest(600)
            assert cluster.writes[before:] == []
            assert len(cluster.events) == events
            assert status(cluster)["verdict"] == "Pass"

    virtually(scenario)


def test_a_restart_after_the_answers_were_removed_says_nothing_until_there_are_new_ones() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(600)
        without_rounds(cluster)
        before = status(cluster)["conditions"]
        async with running(cluster):
            await rest(60)
            assert status(cluster)["conditions"] == before
            assert status(cluster)["evidence"]["probe"]["observedAt"] > "2026-11-21T12:10"

    virtually(scenario)


def test_a_foreign_write_to_the_status_is_corrected() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        cluster.put(PUBLIC)
        await rest(3)
        truth = status(cluster)

        def flatter(live: Manifest) -> None:
            live["status"] = {**live["status"], "verdict": "Pass", "message": "all is well"}

        cluster.edit(AUDIT, flatter)
        await rest()
        assert status(cluster) == truth

    passing(scenario)

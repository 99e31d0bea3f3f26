"""The status of the EgressAudit around a cluster in memory: each observation, evidence that counts, what does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from hermetic.api.egressaudit import EgressAuditStatus
from hermetic.errors import Forbidden
from tests.attestations import OTHER_CLUSTER, a_finding, a_report, an_ed25519_key, provenance
from tests.controller.auditing import (
    AUDIT,
    PUBLIC,
    a_cluster,
    an_attestation,
    an_audit,
    announced,
    condition,
    passing,
    public_pem,
    status,
    writes,
)
from tests.controller.running import a_model, reason, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.virtual_loop import START, virtually


def test_three_looks_make_a_pass_and_each_is_named_with_its_age() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        EgressAuditStatus.model_validate(status(cluster))
        evidence = status(cluster)["evidence"]
        assert evidence["azure"]["observedAt"] == "2026-11-21T12:00:00Z"
        assert evidence["azure"]["expiresAt"] == "2026-11-22T12:00:00Z"
        assert evidence["probe"]["nodes"] == 1
        assert evidence["kubernetes"]["observedAt"].startswith("2026-11-21T12:00:0")
        assert status(cluster)["counts"]["pass"] > 30
        assert status(cluster)["counts"]["unknown"] == 0

    passing(scenario)


def test_the_look_that_is_missing_is_the_one_that_is_named() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        async with running(cluster):
            cluster.put(an_audit(probe=None))
            await rest(10)
            assert condition(cluster) == ("False", "AttestationMissing")
            assert "hermetic audit --azure /subscriptions/" in status(cluster)["message"]
            cluster.put(an_attestation())
            await rest()
            assert condition(cluster) == ("False", "ProbeNotConfigured")
            cluster.edit(AUDIT, lambda live: live.update(spec=an_audit()["spec"]))
            await rest(10)
            assert status(cluster)["verdict"] == "Pass"
            assert status(cluster)["observedGeneration"] == 2

    virtually(scenario)


def test_a_foreign_public_load_balancer_is_seen_within_seconds_and_so_is_its_end() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        cluster.put(PUBLIC)
        await rest(3)
        assert condition(cluster) == ("False", "IsolationBroken")
        assert condition(cluster, "Stalled") == ("True", "IsolationBroken")
        assert "v1/Service inference/shop" in status(cluster)["message"]
        cluster.remove("Service", "inference", "shop")
        await rest(3)
        assert condition(cluster) == ("True", "IsolationProven")
        assert [announcement for announcement in announced(cluster) if announcement[1] == "IsolationBroken"] == [
            ("Warning", "IsolationBroken")
        ]

    passing(scenario)


def test_deployments_hear_of_every_verdict_although_the_watch_brings_it_late() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        at_once = cluster.see
        cluster.see = lambda manifest, gone: later(lambda: at_once(manifest, gone=gone))
        model = a_model()
        model["spec"]["isolation"] = {"enforcement": "Enforce"}
        cluster.put(model)
        await rest()
        assert reason(cluster) == "Starting"
        for _ in range(3):
            cluster.put(PUBLIC)
            await rest(3)
            assert reason(cluster) == "IsolationBroken"
            cluster.remove("Service", "inference", "shop")
            await rest(3)
            assert reason(cluster) == "Starting"

    passing(scenario)


def test_a_finding_of_the_attestation_closes_until_a_newer_one_has_none() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        attested_finding = a_finding(
            "Fail", message="NAT gateway attached", paths=["node subnet -> nat gateway -> internet"]
        )
        later = START + timedelta(seconds=5)
        cluster.put(an_attestation(attested_finding, observed=later, says={"verdict": "Fail"}))
        await rest()
        assert condition(cluster) == ("False", "IsolationBroken")
        assert status(cluster)["message"].startswith("node subnet -> nat gateway -> internet: NAT gateway attached")
        cluster.put(an_attestation(observed=later + timedelta(seconds=2)))
        await rest()
        assert status(cluster)["verdict"] == "Pass"

    passing(scenario)


def test_what_a_jump_box_said_of_the_cluster_s_own_objects_is_history() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        gone = a_finding("Fail", "k8s-public-lb", resource="v1/Service inference/gone", message="public")
        report_fields = {"verdict": "Fail", "sources": ["azure", "kube"], "notAsked": {}}
        cluster.put(an_attestation(gone, a_finding(), observed=START + timedelta(seconds=5), says=report_fields))
        await rest()
        assert condition(cluster, "AttestationAccepted")[0] == "True"
        assert status(cluster)["verdict"] == "Pass"

    passing(scenario)


def test_a_kind_that_may_not_be_listed_is_exactly_unknown_and_named() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())

        async def role(verb: str, where: Coordinates) -> None:
            if (verb, where[0]) == ("list", "EndpointSlice"):
                raise Forbidden("endpointslices is forbidden", status=403, reason="Forbidden")

        cluster.fault = role
        async with running(cluster):
            await rest(90)
            assert condition(cluster) == ("False", "IsolationUnknown")
            assert "list endpointslices.discovery.k8s.io" in status(cluster)["message"]
            unknown = {finding["check"] for finding in status(cluster)["findings"] if finding["verdict"] == "Unknown"}
            assert unknown == {"k8s-endpoints-external", "k8s-gateway-routes"}
            assert status(cluster)["counts"]["unknown"] == 2

    virtually(scenario)


# ---------------------------------------------------------------------- attestations that do not count

REFUSED = {
    "another cluster": (
        {"about": provenance(cluster=OTHER_CLUSTER), "report": a_report(cluster=OTHER_CLUSTER, observed=START)},
        "OtherCluster",
    ),
    "another api server": ({"about": provenance(ca="sha256:" + "bb" * 32)}, "OtherCluster"),
    "a cluster of the same name": ({"about": provenance(uid="3f1c2d4e-0000-4000-8000-00000000dead")}, "OtherCluster"),
    "a stranger's key": ({"key": an_ed25519_key(9, "stranger")}, "UnknownKey"),
    "from tomorrow": ({"observed": START + timedelta(days=1)}, "FromTheFuture"),
    "of last week": ({"observed": START - timedelta(days=2)}, "Expired"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_count_is_refused_with_its_reason(case: str) -> None:
    how, refusal = REFUSED[case]

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_audit())
        cluster.put(an_attestation(**how))
        async with running(cluster):
            await rest(10)
            assert status(cluster)["verdict"] == "Unknown"
            accepted = next(c for c in status(cluster)["conditions"] if c["type"] == "AttestationAccepted")
            expected = "IsolationEvidenceStale" if refusal == "Expired" else "AttestationRefused"
            assert (accepted["status"], accepted["reason"]) == ("False", expected)
            assert ("expired at" if refusal == "Expired" else f"is refused: {refusal}:") in accepted["message"]
            before = writes(cluster)
            await rest(1800)
            assert writes(cluster) == before, "no message may say what time it is"

    virtually(scenario)


def test_an_older_one_is_a_replay_once_the_newest_is_gone() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_audit())
        older, newer = an_attestation(observed=START - timedelta(hours=3)), an_attestation()
        cluster.put(newer)
        async with running(cluster):
            await rest(10)
            cluster.put(older)
            await rest()
            assert status(cluster)["verdict"] == "Pass"
            cluster.remove("EgressAttestation", "", newer["metadata"]["name"])
            await rest()
            assert condition(cluster) == ("False", "AttestationRefused")
            assert "is refused: Replayed:" in status(cluster)["message"]
            cluster.put(newer)
            await rest()
            assert status(cluster)["verdict"] == "Pass"

    virtually(scenario)


def test_a_key_that_is_no_longer_trusted_takes_its_attestations_with_it() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        other = an_ed25519_key(7, "platform-2027")
        keys = [{"name": "platform-2027", "publicKey": public_pem(other)}]
        cluster.edit(AUDIT, lambda live: live["spec"].update(trustedKeys=keys))
        await rest()
        assert condition(cluster) == ("False", "AttestationRefused")
        cluster.put(an_attestation(key=other, observed=START + timedelta(seconds=8)))
        await rest()
        assert status(cluster)["evidence"]["azure"]["signedBy"] == "platform-2027"

    passing(scenario)


def test_a_refused_statement_is_announced_once_for_its_reason_also_while_another_counts() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        def refusals() -> list[str]:
            return [event["note"] for event in cluster.events if event["reason"] == "AttestationRefused"]

        unscoped = an_attestation(observed=START + timedelta(minutes=1), about=provenance(uid=None))
        name = unscoped["metadata"]["name"]
        cluster.put(unscoped)
        await rest(120)
        assert status(cluster)["verdict"] == "Pass"
        assert name in next(
            audit_condition["message"]
            for audit_condition in status(cluster)["conditions"]
            if audit_condition["type"] == "AttestationAccepted"
        )
        (note,) = refusals()
        assert note.startswith(f"{name} is refused: ScopeIncomplete:")
        await rest(3600)
        assert len(refusals()) == 1, "not again while it is unchanged"

        cluster.edit(AUDIT, lambda live: live["spec"].update(policyDigests=["sha256:" + "0a" * 32]))
        await rest()
        assert status(cluster)["verdict"] == "Unknown"
        assert any("OtherPolicy" in note for note in refusals()), "another statement, another reason"

    passing(scenario)


def later(tell: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(0.05, tell)

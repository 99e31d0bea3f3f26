"""What must not keep an old verdict standing: keys, rights, defects, and readers of what it says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.egressaudit import EgressAuditStatus
from hermetic.errors import Forbidden, HermeticError, NotFound, Rejected, ServerError
from tests.attestations import a_finding, an_ed25519_key
from tests.controller.auditing import (
    AUDIT,
    PUBLIC,
    a_cluster,
    an_attestation,
    an_audit,
    condition,
    open_way,
    passing,
    status,
)
from tests.controller.running import PROBES, rest, running
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates
from tests.fakes.virtual_loop import START, virtually

HOUR = 3600.0


@pytest.mark.parametrize("pem", ["-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_key_that_cannot_be_read_is_an_invalid_spec(pem: str) -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        keys = [{"name": "torn", "publicKey": pem}]
        cluster.edit(AUDIT, lambda live: live["spec"].update(trustedKeys=keys))
        await rest()
        assert (status(cluster)["verdict"], condition(cluster)) == ("Unknown", ("False", "SpecInvalid"))
        assert status(cluster)["message"].startswith("torn: ")
        assert status(cluster)["newestAccepted"]["observedAt"] == "2026-11-21T12:00:00Z"

    passing(scenario)


def test_targets_that_no_probe_can_call_are_an_invalid_spec() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        cluster.edit(AUDIT, lambda live: live["spec"]["probe"].update(targets={"storageAddresses": ["1.2.3.4.5"]}))
        await rest()
        assert condition(cluster) == ("False", "SpecInvalid")

    passing(scenario)


def test_an_audit_that_is_deleted_is_forgotten_with_what_it_said() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        cluster.remove(*AUDIT)
        await rest(10)
        written = len(cluster.writes)
        await rest(2 * HOUR)
        assert len(cluster.writes) == written, "a probe is no longer wanted"
        cluster.put(an_audit())
        await rest(10)
        assert status(cluster)["verdict"] == "Pass"

    passing(scenario)


@pytest.mark.parametrize("error", [Forbidden, NotFound], ids=["forbidden", "gone"])
def test_jobs_that_may_not_be_made_leave_the_probe_stale_and_everything_else_judged(error: type[Any]) -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        async def role(_verb: str, where: Coordinates) -> None:
            if where[0] == "Job":
                raise error("jobs are not for you", status=403, reason="")

        cluster.fault = role
        await rest(2 * HOUR + 60)
        assert condition(cluster) == ("False", "ProbeStale")
        assert "jobs are not for you" in status(cluster)["message"]
        assert status(cluster)["verdict"] == "Unknown"
        cluster.put(PUBLIC)
        await rest(3)
        assert status(cluster)["verdict"] == "Fail"

    passing(scenario)


def test_an_api_server_that_is_away_for_the_probe_alone_is_no_reason_to_be_silent() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(PUBLIC)
        cluster.put(an_attestation())
        cluster.put(an_audit())

        async def trouble(verb: str, where: Coordinates) -> None:
            if (verb, where[:2]) == ("list", ("Job", PROBES)):
                raise ServerError("etcd cannot list this", status=500)

        cluster.fault = trouble
        async with running(cluster):
            await rest(10)
            assert status(cluster)["verdict"] == "Fail"
            assert condition(cluster, "ProbeCurrent") == ("Unknown", "ProbePending")

    virtually(scenario)


def test_a_defect_in_a_check_ends_in_unknown_and_not_in_the_last_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        def broken(*_: object) -> None:
            raise KeyError("a defect")

        monkeypatch.setattr("hermetic.controller.audit.evaluation_case.evaluate", broken)
        cluster.put(PUBLIC)
        await rest(5)
        assert (status(cluster)["verdict"], condition(cluster)) == ("Unknown", ("False", "IsolationUnknown"))
        assert "the audit is broken: KeyError" in status(cluster)["message"]
        monkeypatch.undo()
        await rest(60)
        assert status(cluster)["verdict"] == "Fail"

    passing(scenario)


@pytest.mark.parametrize("error", [Forbidden, Rejected], ids=["forbidden", "rejected"])
def test_a_report_that_cannot_be_published_delays_no_verdict(error: type[HermeticError]) -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())

        async def role(_verb: str, where: Coordinates) -> None:
            if where[0] == "ClusterReport":
                raise error("not for you", status=403)  # type: ignore[call-arg]

        cluster.fault = role
        async with running(cluster):
            await rest(10)
            assert status(cluster)["verdict"] == "Pass"
            listed = cluster.lists["clusterreports"]
            await rest(600)
            assert cluster.lists["clusterreports"] == listed

    virtually(scenario)


def test_however_much_is_wrong_the_status_fits() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        long = "x" * 900
        for number in range(40):
            findings = [a_finding("Unknown", resource=f"r-{number}-{n}", message=long) for n in range(3)]
            key = an_ed25519_key(number % 5 + 20, "n" * 63)
            when = START - timedelta(seconds=number)
            cluster.put(an_attestation(*findings, observed=when, key=key, says={"verdict": "Unknown"}))
            labels = {"agentpool": "p" * 60 + str(number), "kubernetes.azure.com/network-subnet": "s" * 60}
            cluster.put(
                {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}-{'y' * 200}", "labels": labels}}
            )
        cluster.done = ClusterInMemory().done  # no kubelet: no pod answers
        cluster.put(an_audit())
        async with running(cluster):
            await rest(600)
            EgressAuditStatus.model_validate(status(cluster))
            assert condition(cluster, "ProbeCurrent") == ("False", "ProbeIncomplete")
            assert max(len(condition["message"]) for condition in status(cluster)["conditions"]) == 2048

    virtually(scenario)


# ---------------------------------------------------------------------- metrics and reports


def test_metrics_follow_the_verdict() -> None:
    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster) as operator:
            await rest(10)
            assert verdicts(operator) == {"Pass": 1.0, "Fail": 0.0, "Unknown": 0.0}
            assert b"hermetic_isolation_evidence_expiry_timestamp_seconds 1.7953" in operator.telemetry.render()
            assert b"hermetic_isolation_evidence_observed_timestamp_seconds 1.7952" in operator.telemetry.render()
            cluster.put(PUBLIC)
            await rest(3)
            assert verdicts(operator) == {"Pass": 0.0, "Fail": 1.0, "Unknown": 0.0}
            assert b'hermetic_audit_findings{severity="critical",verdict="Fail"} ' in operator.telemetry.render()
            cluster.edit(AUDIT, lambda live: live["spec"].update(trustedKeys=[{"name": "x", "publicKey": "?"}]))
            await rest()
            assert verdicts(operator) == {"Pass": 0.0, "Fail": 0.0, "Unknown": 1.0}
            cluster.remove(*AUDIT)
            await rest()
            assert verdicts(operator) == {"Pass": 0.0, "Fail": 0.0, "Unknown": 0.0}

    virtually(scenario)


def test_the_report_is_written_when_its_findings_change_and_is_owned_by_the_audit() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        (report,) = cluster.of_kind("ClusterReport")
        assert report["metadata"]["ownerReferences"][0]["uid"] == cluster.objects[AUDIT]["metadata"]["uid"]
        await rest(3 * HOUR)
        assert [where[0] for _, where in cluster.writes].count("ClusterReport") == 1
        cluster.put(PUBLIC)
        await rest(3)
        (report,) = cluster.of_kind("ClusterReport")
        assert report["summary"]["fail"] >= 1

    passing(scenario)


def test_a_path_that_the_probe_found_keeps_the_gate_closed_until_a_later_round_finds_none() -> None:
    async def scenario() -> None:
        is_open = True
        cluster = a_cluster(lambda pod, answers: open_way(pod, answers) if is_open else answers)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster):
            await rest(10)
            assert condition(cluster) == ("False", "IsolationBroken")
            assert "probe-internet" in status(cluster)["message"]
            is_open = False
            await rest(HOUR - 60)
            assert status(cluster)["verdict"] == "Fail"
        async with running(cluster):
            await rest(20)
            assert status(cluster)["verdict"] == "Fail", "a restart clears nothing"
            await rest(120)
            assert status(cluster)["verdict"] == "Pass"

    virtually(scenario)


def verdicts(operator: Any) -> dict[str, float]:
    samples = operator.telemetry.isolation.collect()[0].samples
    return {sample.labels["verdict"]: sample.value for sample in samples}

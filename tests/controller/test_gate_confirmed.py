"""A Pass opens the gate only while this process computes it: after a restart, and with a status that others wrote."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from hermetic.errors import Forbidden, ServerError
from hermetic.plan.pod_gate import ENFORCED
from tests.controller.auditing import (
    AUDIT,
    PUBLIC,
    a_cluster,
    an_attestation,
    an_audit,
    condition,
    passing,
    rounds,
    status,
    without_rounds,
)
from tests.controller.running import NAMESPACE, rest, running, where
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually
from tests.scenarios import a_baked_model, reporting

HOUR = 3600.0
Change = Callable[[ClusterInMemory], None]


def a_gated_model(name: str = "llama") -> Manifest:
    """One that starts nothing without proof."""
    manifest = a_baked_model(name)
    manifest["metadata"]["namespace"] = NAMESPACE
    return manifest


def is_there(cluster: ClusterInMemory, kind: str = "Deployment") -> bool:
    return where(kind) in cluster.objects


def reason_of(cluster: ClusterInMemory) -> str:
    """Of the model's condition Ready."""
    conditions = cluster.objects[where("ModelDeployment")]["status"]["conditions"]
    return str(next(model_condition["reason"] for model_condition in conditions if model_condition["type"] == "Ready"))


def away(
    meanwhile: Change, then: Callable[[ClusterInMemory], Awaitable[None]], *, hours: float = 20, **spec: object
) -> None:
    """A Pass, an outage in which a model is asked for and something else changes, and an operator that comes back."""

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit(**spec))
        async with running(cluster):
            await rest(60)
            assert status(cluster)["verdict"] == "Pass"
        await rest(hours * HOUR)
        meanwhile(cluster)
        cluster.put(a_gated_model())
        async with running(cluster):
            await then(cluster)

    virtually(scenario)


def refusing(cluster: ClusterInMemory, kind: str, error: Exception) -> None:
    """Lists of a kind fail from now on."""

    async def fault(verb: str, about: Coordinates) -> None:
        if verb == "list" and about[0] == kind:
            raise error

    cluster.fault = fault


def test_what_came_up_during_an_outage_is_found_before_anything_starts() -> None:
    async def then(cluster: ClusterInMemory) -> None:
        for _ in range(60):
            await rest()
            assert not is_there(cluster)
        assert status(cluster)["verdict"] == "Fail"
        assert reason_of(cluster) == "IsolationBroken"

    away(lambda cluster: cluster.put(PUBLIC), then)


def test_an_attestation_that_was_taken_away_during_an_outage_opens_nothing() -> None:
    def meanwhile(cluster: ClusterInMemory) -> None:
        (attestation,) = cluster.of_kind("EgressAttestation")
        cluster.remove("EgressAttestation", "", attestation["metadata"]["name"])

    async def then(cluster: ClusterInMemory) -> None:
        for _ in range(60):
            await rest()
            assert not is_there(cluster)
        assert condition(cluster) == ("False", "AttestationMissing")

    away(meanwhile, then, hours=1)


def test_what_may_no_longer_be_listed_is_unknown_although_the_probe_is_still_on_its_way() -> None:
    def meanwhile(cluster: ClusterInMemory) -> None:
        without_rounds(cluster)
        refusing(cluster, "EndpointSlice", Forbidden("not for you", status=403, reason="Forbidden"))

    async def then(cluster: ClusterInMemory) -> None:
        for _ in range(60):
            await rest()
            assert not is_there(cluster)
        assert status(cluster)["verdict"] == "Unknown"

    away(meanwhile, then, hours=0.5)


def test_a_verdict_that_cannot_be_written_closes_all_the_same_and_opens_once_it_can() -> None:
    async def refuse(verb: str, about: Coordinates) -> None:
        if (verb, about) == ("patch status", AUDIT):
            raise ServerError("a webhook is away", status=500)

    def meanwhile(cluster: ClusterInMemory) -> None:
        cluster.put(PUBLIC)
        cluster.fault = refuse

    async def then(cluster: ClusterInMemory) -> None:
        await rest(2 * HOUR)
        assert status(cluster)["verdict"] == "Pass", "it could not be put right"
        assert not is_there(cluster)
        assert reason_of(cluster) == "IsolationEvidencePending"
        cluster.remove("Service", PUBLIC["metadata"]["namespace"], PUBLIC["metadata"]["name"])
        cluster.fault = no_fault
        await rest(700)
        assert is_there(cluster)

    away(meanwhile, then, hours=1)


async def no_fault(_verb: str, _about: Coordinates) -> None:
    """The API server is well again."""


def test_a_restart_with_nothing_new_starts_what_was_asked_for() -> None:
    async def then(cluster: ClusterInMemory) -> None:
        await rest(10)
        assert is_there(cluster)

    away(lambda _: None, then, hours=0.5)


def test_a_pass_written_by_another_process_opens_nothing() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        cluster.put(PUBLIC)
        await rest(10)
        cluster.put(a_gated_model())
        await rest(10)
        truth = status(cluster)

        def flatter(live: Manifest) -> None:
            live["status"] = {**live["status"], "verdict": "Pass", "message": "all is well"}

        for _ in range(5):
            cluster.edit(AUDIT, flatter)
            await rest(0.3)
            assert not is_there(cluster)
        await rest(10)
        assert (status(cluster)["verdict"], status(cluster)["message"]) == ("Fail", truth["message"])

    passing(scenario)


def test_targets_that_were_never_called_are_no_pass() -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        began, rounds_seen = len(rounds(cluster)), set()
        targets = {"storageAddresses": ["198.51.100.30"], "forbidden": [{"address": "10.200.0.4", "port": 443}]}
        cluster.edit(AUDIT, lambda live: live["spec"]["probe"].update(targets=targets))
        for _ in range(100):
            await rest(0.1)
            current = status(cluster)
            rounds_seen.add((current["observedGeneration"], len(rounds(cluster)) > began, current["verdict"]))
        generation = cluster.objects[AUDIT]["metadata"]["generation"]
        assert (generation, False, "Pass") not in rounds_seen
        assert len(rounds(cluster)) == began + 1

    passing(scenario)


@pytest.mark.parametrize("change", [{"expires": "2026-11-31"}, {"reason": "        "}, {"owner": " "}])
def test_an_exception_that_cannot_be_read_is_an_invalid_spec(change: dict[str, str]) -> None:
    async def scenario(cluster: ClusterInMemory) -> None:
        good = {
            "check": "k8s-nodeport",
            "resource": "*",
            "reason": "until it moves",
            "owner": "a",
            "expires": "2026-12-01",
        }
        cluster.edit(AUDIT, lambda live: live["spec"].update(exceptions=[good | change]))
        await rest(3)
        assert (status(cluster)["verdict"], condition(cluster)) == ("Unknown", ("False", "SpecInvalid"))
        assert f"`spec.exceptions.0.{next(iter(change))}`" in status(cluster)["message"]

    passing(scenario)


def test_models_that_are_created_together_are_named_to_the_api_server_in_one_renewal_within_a_second() -> None:
    async def scenario() -> None:
        cluster, renewals = ClusterInMemory(), list[str]()
        names = ("llama", "phi", "qwen")
        async with running(cluster, renew=lambda gate: renewals.append(gate.annotations()[ENFORCED])):
            for name in names:
                cluster.put(a_gated_model(name))
            await rest(1.0)
            assert renewals == ["", ",".join(f"{NAMESPACE}/{name}" for name in names)]
            cluster.edit(where("ModelDeployment"), lambda live: live["spec"].update(drainSeconds=9))
            cluster.put(reporting(a_gated_model("loose")))
            await rest(5.0)
            assert len(renewals) == 2

    virtually(scenario)

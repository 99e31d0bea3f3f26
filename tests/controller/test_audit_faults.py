"""A defect in any part of the audit ends no serving, closes the gate, and is reported: condition, metric, one Event."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hermetic.collect.kube.cache import ClusterObservations
from hermetic.controller.manager import Manager
from tests.attestations import an_ed25519_key
from tests.controller.auditing import (
    AUDIT,
    a_cluster,
    an_attestation,
    an_audit,
    announced,
    condition,
    status,
    writes,
)
from tests.controller.running import a_model, rest, running, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Manifest
from tests.fakes.virtual_loop import virtually

HOUR = 3600.0
LATER = 1200.0
TOUCHED: Manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "touched"}}


def broken(*_: object, **__: object) -> Any:
    raise KeyError("a defect")


async def broken_later(*_: object, **__: object) -> Any:
    raise KeyError("a defect")


PLACES: dict[str, tuple[str, Callable[..., Any], str]] = {
    "check": ("hermetic.controller.audit.evaluation_case.evaluate", broken, "Unknown"),
    "standing": ("hermetic.controller.audit.auditor.standing_of", broken, "Unknown"),
    "status": ("hermetic.controller.audit.auditor.status_of", broken, "Unknown"),
    "spec": ("hermetic.controller.audit.auditor.trusted", broken, "Unknown"),
    "signature": ("hermetic.controller.audit.attestation_cache.authenticated", broken, "Unknown"),
    "probe": ("hermetic.controller.audit.probe_scheduler.Prober.advance", broken_later, "Pass"),
    "cause": ("hermetic.controller.audit.cluster_cache.ClusterCache.cause", broken_later, "Unknown"),
    "report": ("hermetic.controller.audit.report_publisher.cluster_report", broken, "Pass"),
}


def faulty(broken_part: str, scenario: Callable[[ClusterInMemory, Manager], Awaitable[None]]) -> None:
    """Run the scenario where the audit said Pass, and then had this defect for a minute."""
    target, defect, _ = PLACES[broken_part]

    async def scenario_run() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        async with running(cluster) as operator:
            await rest(10)
            assert status(cluster)["verdict"] == "Pass"
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(target, defect)
                cluster.put(TOUCHED)
                # Another finding, for the report; another attestation, whose signature is checked.
                cluster.put(an_attestation(key=an_ed25519_key(99)))
                cluster.put(
                    {**_shop(), "metadata": {"name": "open", "namespace": "default"}}
                ) if broken_part == "report" else None
                await rest(60)
                await scenario(cluster, operator)
            await rest(LATER)
            assert condition(cluster, "AuditFaulty") == ("", ""), "it is over"

    virtually(scenario_run)


def _shop() -> Manifest:
    spec = {"type": "NodePort", "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "open", "namespace": "default"}, "spec": spec}


def _counted(operator: Manager) -> float:
    counted = operator.telemetry.audit_faults.collect()[0].samples
    return sum(sample.value for sample in counted if sample.name.endswith("_total"))


@pytest.mark.parametrize("broken_part", PLACES)
def test_a_defect_is_a_condition_a_metric_and_one_event_and_serving_goes_on(broken_part: str) -> None:
    async def scenario(cluster: ClusterInMemory, operator: Manager) -> None:
        cluster.put(a_model())
        await rest(5)
        assert "ServiceAccount" in written(cluster), "a deployment is served all the same"
        assert condition(cluster, "AuditFaulty") == ("True", "AuditFault")
        if broken_part != "report":
            assert status(cluster)["verdict"] in {
                PLACES[broken_part][2],
                "Pass" if broken_part == "signature" else "Unknown",
            }
        assert _counted(operator) >= 1
        assert announced(cluster).count(("Warning", "AuditFault")) == 1
        before = writes(cluster)
        await rest(HOUR)
        assert writes(cluster) - before <= 6, "a defect that lasts is not written again and again"
        assert announced(cluster).count(("Warning", "AuditFault")) <= 1 + HOUR / 600

    faulty(broken_part, scenario)


def test_a_defect_at_every_other_look_makes_no_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    from hermetic.controller.audit import evaluation_case

    evaluate, calls = evaluation_case.evaluate, 0

    def now_and_then(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return broken() if calls % 2 else evaluate(*given)

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        monkeypatch.setattr(evaluation_case, "evaluate", now_and_then)
        async with running(cluster):
            for number in range(600):
                cluster.put({**TOUCHED, "metadata": {"name": "touched", "labels": {"n": str(number)}}})
                await rest(1)
            assert writes(cluster) < 60

    virtually(scenario)


def test_one_kind_whose_list_breaks_the_collector_is_told_and_the_others_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take = ClusterObservations.take

    def breaks_at_nodes(self: ClusterObservations, request: Any, listed: Any) -> None:
        if request.kind.kind == "Node":
            raise RuntimeError("a defect")
        take(self, request, listed)

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        cluster.put(a_model())
        monkeypatch.setattr(ClusterObservations, "take", breaks_at_nodes)
        async with running(cluster) as operator:
            await rest(120)
            assert "ServiceAccount" in written(cluster)
            assert condition(cluster, "AuditFaulty") == ("True", "AuditFault")
            assert status(cluster)["verdict"] == "Unknown"
            assert _counted(operator) >= 1

    virtually(scenario)


def test_a_collector_that_ends_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from hermetic.collect.kube.cache_watches import CacheWatches

    run, ends = CacheWatches.run, 0

    async def ends_twice(self: CacheWatches) -> None:
        nonlocal ends
        ends += 1
        if ends <= 2:
            raise RuntimeError("a defect")
        await run(self)

    async def scenario() -> None:
        cluster = a_cluster()
        cluster.put(an_attestation())
        cluster.put(an_audit())
        cluster.put(a_model())
        monkeypatch.setattr(CacheWatches, "run", ends_twice)
        async with running(cluster):
            await rest(120)
            assert "ServiceAccount" in written(cluster)
            assert status(cluster)["verdict"] == "Pass"
            assert ends == 3

    virtually(scenario)


def test_one_attestation_that_breaks_its_reader_keeps_no_other_from_counting() -> None:
    from hermetic.controller.audit import attestation_cache

    authenticated = attestation_cache.authenticated

    def breaks_at_one(manifest: Any, trusted: Any) -> Any:
        return broken() if manifest["metadata"]["name"] == "poison" else authenticated(manifest, trusted)

    async def scenario() -> None:
        cluster = a_cluster()
        poison = an_attestation(key=an_ed25519_key(99))
        poison["metadata"]["name"] = "poison"
        cluster.put(poison)
        cluster.put(an_attestation())
        cluster.put(an_audit())
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(attestation_cache, "authenticated", breaks_at_one)
            async with running(cluster):
                await rest(20)
                assert status(cluster)["verdict"] == "Pass"
                assert condition(cluster, "AuditFaulty") == ("True", "AuditFault")
                assert cluster.objects[AUDIT]["status"]["newestAccepted"]

    virtually(scenario)

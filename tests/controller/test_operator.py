"""The whole of it around a cluster in memory: fairness, repair of what was missed, patience, and when to give up."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from hermetic.controller.manager import RELIST_KEYS, Manager
from hermetic.controller.workqueue import WorkQueue
from hermetic.errors import Forbidden, HermeticError, ServerError, Throttled, Unreachable
from hermetic.kinds import DEPLOYMENT, SERVICE, Kind
from hermetic.kube.owners import Key
from hermetic.kube.watch_specs import ALL_WATCHES
from tests.controller.running import RESYNC_SECONDS, a_model, reason, rest, running, where, written
from tests.fakes.cluster_in_memory import ClusterInMemory, Coordinates, Manifest
from tests.fakes.virtual_loop import virtually
from tests.scenarios import an_image_volume_model


def test_one_poisoned_object_among_200_backs_off_and_delays_no_other() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        attempts: list[float] = []

        async def poisoned(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch", where("Deployment", "model-100")):
                attempts.append(asyncio.get_running_loop().time())
                raise ServerError("etcd cannot take this one", status=500)

        cluster.fault = poisoned
        async with running(cluster):
            for number in range(200):
                cluster.put(a_model(f"model-{number}"))
            await rest(5)
            settled = [number for number in range(200) if reason(cluster, f"model-{number}") == "Starting"]
            assert settled == [number for number in range(200) if number != 100]
            await rest(3600)
            pauses = [later - earlier for earlier, later in itertools.pairwise(attempts)]
            assert max(pauses) == pytest.approx(300, abs=1), "five minutes is the longest pause"
            assert len(attempts) < 30
            cluster.fault = ClusterInMemory().fault
            await rest(301)
            assert reason(cluster, "model-100") == "Starting"

    virtually(scenario)


def test_what_a_watch_never_told_is_repaired_by_the_next_full_look() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster):
            cluster.put(a_model())
            await rest()
            cluster.remove(*where("Service"), seen=False)
            cluster.edit(where("NetworkPolicy"), lambda manifest: manifest["spec"].update(egress=[{}]), seen=False)
            cluster.put(a_model("unseen"), seen=False)
            await rest(RESYNC_SECONDS + 5)
            assert where("Service") in cluster.objects
            assert cluster.objects[where("NetworkPolicy")]["spec"]["egress"] == []
            assert reason(cluster, "unseen") == "Starting"

    virtually(scenario)


def test_events_twice_late_and_out_of_order_change_nothing() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        recorded: list[object] = []
        async with running(cluster) as operator:

            def recording(manifest: dict[str, object], *, gone: bool) -> None:
                recorded.append(manifest)
                operator.see(manifest, gone=gone)

            cluster.see = recording
            cluster.put(a_model())
            await rest()
            cluster.edit(where("ModelDeployment"), lambda manifest: manifest["spec"].update(replicas=2))
            await rest()
            writes = len(cluster.writes)
            for manifest in [*reversed(recorded), *recorded]:
                operator.see(manifest, gone=False)  # type: ignore[arg-type]
            await rest(60)
            assert len(cluster.writes) == writes
            assert cluster.objects[where("Deployment")]["spec"]["replicas"] == 2

    virtually(scenario)


def throttling(cluster: ClusterInMemory, *names: str, retry_after: float) -> dict[str, list[float]]:
    """The first write of each of these deployments is answered with 429. Returns when each was written, by name."""
    request_times: dict[str, list[float]] = {}

    async def fault(verb: str, at: Coordinates) -> None:
        if verb == "list":
            return
        request_times.setdefault(at[2], []).append(asyncio.get_running_loop().time())
        if at[2] in names and len(request_times[at[2]]) == 1:
            raise Throttled("too many requests", retry_after=retry_after)

    cluster.fault = fault
    return request_times


def test_one_answer_of_429_parks_one_deployment_to_the_second() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster, workers=1):
            request_times = throttling(cluster, "model-0", retry_after=100)
            for number in range(3):
                cluster.put(a_model(f"model-{number}"))
            await rest(10)
            assert [reason(cluster, f"model-{number}") for number in (1, 2)] == ["Starting"] * 2
            await rest(200)
            again = [at for at in request_times["model-0"] if at > request_times["model-0"][0] + 0.1]
            assert again[0] == pytest.approx(request_times["model-0"][0] + 100, abs=0.01)
            assert reason(cluster, "model-0") == "Starting"

    virtually(scenario)


def test_answers_of_429_to_two_deployments_hold_up_all_of_them_for_half_a_minute_at_most() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster, workers=1):
            request_times = throttling(cluster, "model-0", "model-1", retry_after=600)
            for number in range(3):
                cluster.put(a_model(f"model-{number}"))
            await rest(60)
            second = max(request_times["model-0"][0], request_times["model-1"][0])
            later = [at for times in request_times.values() for at in times if at > second + 0.1]
            assert min(later) == pytest.approx(second + 30, abs=0.1)
            assert reason(cluster, "model-2") == "Starting"

    virtually(scenario)


@pytest.mark.parametrize(
    "outage", [lambda: Unreachable("refused"), lambda: ServerError("no leader", status=503)], ids=["refused", "503"]
)
def test_an_outage_of_ten_minutes_is_over_for_every_model_within_half_a_minute(
    outage: Callable[[], HermeticError],
) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def away(verb: str, _at: Coordinates) -> None:
            if verb != "list":
                raise outage()

        async with running(cluster):
            cluster.fault = away
            for number in range(20):
                cluster.put(a_model(f"model-{number}"))
            await rest(600)
            cluster.fault = ClusterInMemory().fault
            await rest(31)
            assert {reason(cluster, f"model-{number}") for number in range(20)} == {"Starting"}

    virtually(scenario)


@pytest.mark.parametrize(
    ("kind", "times", "error"),
    [("", 5, ServerError("starting", status=503)), ("Deployment", 3, KeyError("a bug"))],
    ids=["API server away", "bug in the list of one kind"],
)
def test_it_waits_at_its_start_for_what_cannot_be_listed(kind: str, times: int, error: Exception) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        failures = iter(range(times))

        async def failing(verb: str, at: Coordinates) -> None:
            if verb == "list" and kind in ("", at[0]) and next(failures, None) is not None:
                raise error

        cluster.fault = failing
        cluster.put(a_model())
        async with running(cluster) as operator:
            assert operator.primed
            await rest()
            assert reason(cluster) == "Starting"

    virtually(scenario)


def test_it_asks_to_be_restarted_when_it_can_no_longer_look() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def away(_verb: str, _at: Coordinates) -> None:
            raise ServerError("gone", status=503)

        async with running(cluster) as operator:
            assert operator.failure() == ""
            cluster.fault = away
            await rest(3 * RESYNC_SECONDS)
            assert operator.failure() == ""
            await rest(RESYNC_SECONDS)
            assert "everything was last listed" in operator.failure()

    virtually(scenario)


def unlisted(kind: str) -> Callable[[str, Coordinates], Awaitable[None]]:
    """A cluster in which this kind cannot be listed."""

    async def refused(verb: str, at: Coordinates) -> None:
        if (verb, at[0]) == ("list", kind):
            raise Forbidden(f"cannot list {kind}", status=403, reason="Forbidden")

    return refused


def test_a_kind_that_cannot_be_listed_keeps_no_other_from_being_looked_at_and_is_named() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest(5)
            cluster.fault = unlisted("ServiceAccount")
            cluster.remove(*where("NetworkPolicy"), seen=False)
            await rest(RESYNC_SECONDS + 5)
            assert where("NetworkPolicy") in cluster.objects
            assert operator.failure() == ""
            await rest(3 * RESYNC_SECONDS)
            assert "serviceaccounts: cannot list ServiceAccount" in operator.failure()
            cluster.fault = unlisted("nothing")
            await rest(RESYNC_SECONDS)
            assert operator.failure() == ""

    virtually(scenario)


def test_an_api_server_that_is_upgraded_is_seen() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        cluster.version = (1, 34)
        async with running(cluster):
            cluster.put(a_model(weights=an_image_volume_model()["spec"]["weights"]))
            await rest(RESYNC_SECONDS + 5)
            assert reason(cluster) == "ImageVolumeUnsupported"
            cluster.version = (1, 36)
            await rest(RESYNC_SECONDS + 5)
            assert reason(cluster) != "ImageVolumeUnsupported"

    virtually(scenario)


def test_what_is_refused_beside_a_fault_is_logged() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def broken(verb: str, at: Coordinates) -> None:
            if (verb, at[0]) == ("patch", "Service"):
                raise ServerError("internal error", status=500)
            if (verb, at[0]) == ("patch", "NetworkPolicy"):
                raise Forbidden("not for you", status=403, reason="Forbidden")

        cluster.fault = broken
        async with running(cluster):
            cluster.put(a_model())
            await rest(5)

    with capture_logs() as logs:
        virtually(scenario)
    assert any(log["event"] == "refused" and "NetworkPolicy" in log["because"] for log in logs)


@pytest.mark.parametrize("kind", ["Node", "Event"])
def test_it_starts_and_works_without_what_only_explains(kind: str) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        cluster.fault = unlisted(kind)
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest(5 * RESYNC_SECONDS)
            assert reason(cluster) == "Starting"
            assert operator.failure() == ""

    virtually(scenario)


def test_it_does_not_start_without_what_a_decision_rests_on() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        cluster.fault = unlisted("PersistentVolumeClaim")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3600), running(cluster):
                raise AssertionError("it was primed")
        assert not cluster.writes

    virtually(scenario)


def test_conditions_are_counted_at_each_scrape() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest(5)
            assert ready_counts(operator) == {"False": 1.0}
            cluster.remove(*where("ModelDeployment"))
            await rest(5)
            assert ready_counts(operator) == {}

    virtually(scenario)


def ready_counts(operator: Manager) -> dict[str, float]:
    """How many deployments say what of Ready, as a scrape would see it."""
    lines = operator.telemetry.render().decode().splitlines()
    pairs = (
        re.fullmatch(r'hermetic_model_condition\{condition="Ready",status="(\w+)"\} (\S+)', line) for line in lines
    )
    return {pair[1]: float(pair[2]) for pair in pairs if pair and float(pair[2])}


def test_it_asks_to_be_restarted_when_a_write_never_ends() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def silence(verb: str, _at: Coordinates) -> None:
            if verb == "patch":
                await asyncio.Event().wait()

        cluster.fault = silence
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest(200)
            assert operator.failure() == ""
            await rest(200)
            assert "the oldest piece of work is" in operator.failure()

    virtually(scenario)


def test_a_bug_in_one_reconcile_is_retried_and_stops_no_worker() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def broken(verb: str, at: Coordinates) -> None:
            if (verb, at) == ("patch", where("Service", "broken")):
                raise KeyError("a bug")

        cluster.fault = broken
        async with running(cluster):
            cluster.put(a_model("broken"))
            cluster.put(a_model("sound"))
            await rest(60)
            assert reason(cluster, "sound") == "Starting"
            assert 3 < written(cluster, "broken").count("Service") < 15
            cluster.fault = ClusterInMemory().fault
            await rest(300)
            assert reason(cluster, "broken") == "Starting"

    virtually(scenario)


def bugs(kind: str) -> Callable[[str, Coordinates], Awaitable[None]]:
    """A cluster whose lists of this kind meet a defect of the operator."""

    async def broken(verb: str, at: Coordinates) -> None:
        if (verb, at[0]) == ("list", kind):
            raise KeyError("a bug")

    return broken


@pytest.mark.parametrize("kind", ["Deployment", "Gateway", "Node"])
def test_a_bug_in_the_resync_of_one_kind_stops_nothing_and_is_tried_again(kind: str) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest(RESYNC_SECONDS - 60)
            cluster.fault = bugs(kind)
            before, name = Counter(cluster.lists), f"{kind.lower()}s"
            cluster.remove(*where("NetworkPolicy"), seen=False)
            await rest(120)
            assert where("NetworkPolicy") in cluster.objects
            cluster.put(a_model("second"))
            await rest()
            assert reason(cluster, "second") == "Starting"
            assert 3 < cluster.lists[name] - before[name] < 15
            assert operator.failure() == ""

            cluster.fault = ClusterInMemory().fault
            await rest(300)
            healed = cluster.lists[name]
            await rest(200)
            assert cluster.lists[name] == healed, "it is listed by the resync alone again"
            await rest(3 * RESYNC_SECONDS)
            assert operator.failure() == ""

    with capture_logs() as logs:
        virtually(scenario)
    failures = [log for log in logs if log["event"] == "reconcile failed"]
    assert {(log["ns"], log["name"]) for log in failures} == {("", f"list {kind.lower()}s")}
    assert all(isinstance(log["exc_info"], KeyError) for log in failures)
    assert any(
        log["event"] == "reconcile" and log["because"] == "KeyError('a bug')" for log in logs if "because" in log
    )


def test_every_list_of_a_resync_is_a_task_of_its_own() -> None:
    assert len(RELIST_KEYS) == len(ALL_WATCHES)


@pytest.mark.parametrize(("kind", "status"), [("Gateway", "Unknown"), ("Node", "True")])
def test_a_kind_whose_list_meets_a_bug_may_lead_to_the_pods(kind: str, status: str) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory(fault=bugs(kind))
        cluster.put(a_model(endpoint={}))
        async with running(cluster):
            await rest(5)
            assert endpoint_private(cluster) == status
            cluster.fault = ClusterInMemory().fault
            await rest(300)
            assert endpoint_private(cluster) == "True"

    virtually(scenario)


def endpoint_private(cluster: ClusterInMemory) -> str:
    conditions = cluster.of_kind("ModelDeployment")[0]["status"]["conditions"]
    return next(str(condition["status"]) for condition in conditions if condition["type"] == "EndpointPrivate")


def test_a_bug_beside_the_lists_of_a_resync_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def broken(_: object) -> tuple[int, int]:
            raise KeyError("a bug")

        async with running(cluster) as operator:
            with monkeypatch.context() as patched:
                patched.setattr(ClusterInMemory, "server_version", broken)
                await rest(RESYNC_SECONDS + 5)
                cluster.put(a_model())
                await rest()
                assert reason(cluster) == "Starting"
            await rest(3 * RESYNC_SECONDS)
            assert operator.failure() == ""

    virtually(scenario)


def test_a_bug_after_a_reconcile_stops_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    bugs_left = iter(range(3))

    def forgets(queue: WorkQueue[Key], key: Key) -> None:
        if next(bugs_left, None) is not None:
            raise KeyError("a bug")
        forget(queue, key)

    forget = WorkQueue.forget_failures
    monkeypatch.setattr(WorkQueue, "forget_failures", forgets)

    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster, workers=1):
            cluster.put(a_model())
            await rest(60)
            assert reason(cluster) == "Starting"

    virtually(scenario)
    assert next(bugs_left, None) is None


def test_a_child_that_talks_much_is_looked_at_once() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest()
            before = observations(operator)
            for generation in range(10):
                cluster.edit(where("Deployment"), lambda d, g=generation: d.update(status={"observedGeneration": g}))
                await rest(0.005)
            await rest()
            assert observations(operator) == before + 1

    virtually(scenario)


def observations(operator: Manager) -> float:
    """How often it reconciled a deployment, with any result."""
    return sum(
        sample.value
        for metric in operator.telemetry.reconciles.collect()
        for sample in metric.samples
        if sample.name == "hermetic_reconcile_total"
    )


def test_an_event_that_cannot_be_posted_costs_no_reconcile() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()

        async def mute(verb: str, _at: Coordinates) -> None:
            if verb == "create":
                raise HermeticError("events are full")

        cluster.fault = mute
        async with running(cluster):
            cluster.put(a_model())
            await rest(60)
            assert reason(cluster) == "Starting"
            assert written(cluster).count("status") == 1

    virtually(scenario)


class BreaksOff(ClusterInMemory):
    """Lists of Deployments break off after their last object."""

    breaks_off = False

    async def pages(self, kind: Kind, **how: Any) -> AsyncIterator[tuple[list[Manifest], str]]:
        async for page in super().pages(kind, **how):
            yield page
        if self.breaks_off and kind is DEPLOYMENT:
            raise Unreachable("the list broke off")


def test_what_a_list_brought_before_it_broke_off_is_reconciled() -> None:
    """The next list finds it in the store already, and so concerns no model."""

    async def scenario() -> None:
        cluster = BreaksOff()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest()
            cluster.edit(where("Deployment"), lambda live: live["spec"].update(replicas=7), seen=False)
            cluster.breaks_off = True
            operator.started_over(DEPLOYMENT)
            await rest()
            assert cluster.objects[where("Deployment")]["spec"]["replicas"] == 1

    virtually(scenario)


def test_a_watch_that_lost_its_place_hides_no_deletion() -> None:
    async def scenario() -> None:
        cluster = ClusterInMemory()
        async with running(cluster) as operator:
            cluster.put(a_model())
            await rest()
            cluster.remove(*where("Service"), seen=False)
            operator.started_over(SERVICE)
            await rest()
            assert where("Service") in cluster.objects
            assert cluster.lists["services"] == 2
            assert cluster.lists["deployments"] == 1

    virtually(scenario)

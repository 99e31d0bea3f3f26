"""The Lease and the Events that a real API server accepts, stores and shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermetic.controller.clock import SystemClock
from hermetic.kinds import LEASE
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import from_kubeconfig
from hermetic.kube.lease import LeaderLease, LeaseTiming
from hermetic.kube.recorder import EventRecorder
from testbed.api import Api
from testbed.kubectl import Kubectl
from testbed.processes import wait_until

QUICK = LeaseTiming(duration=5.0, renew_every=0.3, deadline=4.0, poll_every=0.1, release_within=5.0)


@pytest.fixture
async def kube(cluster: Path) -> AsyncIterator[KubernetesApi]:
    async with KubernetesApi(await from_kubeconfig(str(cluster))) as client:
        yield client


def candidate(kube: KubernetesApi, namespace: str, identity: str) -> LeaderLease:
    return LeaderLease(kube, namespace=namespace, identity=identity, clock=SystemClock(), timing=QUICK)


async def test_a_lease_is_taken_renewed_released_and_taken_over(kube: KubernetesApi, api: Api, namespace: str) -> None:
    first, second = (candidate(kube, namespace, identity) for identity in ("one", "two"))
    await first.acquire()
    keeper, waiting = asyncio.create_task(first.keep()), asyncio.create_task(second.acquire())
    path = LEASE.path(namespace, "hermetic")
    acquired = api.get(path)["spec"]

    def renewed() -> bool:
        return bool(api.get(path)["spec"]["renewTime"] != acquired["renewTime"])

    await asyncio.to_thread(wait_until, "renewal", renewed, ())
    assert (first.held, second.held) == (True, False)
    keeper.cancel()
    await first.release()
    await asyncio.wait_for(waiting, 30)
    assert (first.held, second.held) == (False, True)
    spec = api.get(path)["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("two", 1, 5)
    assert spec["acquireTime"] > acquired["acquireTime"]


async def test_a_holder_that_went_silent_is_followed_and_finds_out(
    kube: KubernetesApi, api: Api, namespace: str
) -> None:
    first, second = (candidate(kube, namespace, identity) for identity in ("one", "two"))
    await first.acquire()  # and never renews
    await asyncio.wait_for(second.acquire(), 30)
    assert (first.held, second.held) == (False, True)
    await first.keep()
    assert first.lost.is_set()
    assert api.get(LEASE.path(namespace, "hermetic"))["spec"]["holderIdentity"] == "two"


async def test_a_lease_that_is_taken_by_hand_is_lost_to_its_holder(
    kube: KubernetesApi, api: Api, namespace: str
) -> None:
    first = candidate(kube, namespace, "one")
    await first.acquire()
    keeper = asyncio.create_task(first.keep())
    api.merge(LEASE.path(namespace, "hermetic"), {"spec": {"holderIdentity": "by-hand"}})
    await asyncio.wait_for(keeper, 30)
    assert first.lost.is_set()
    assert not first.held


@pytest.mark.parametrize("note", ["7 objects applied", "🚦" * 400], ids=["short", "too-long"])
async def test_an_event_is_accepted_and_kubectl_shows_it_with_its_object(
    kube: KubernetesApi, api: Api, kubectl: Kubectl, namespace: str, note: str
) -> None:
    account = api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    failures: list[str] = []
    recorder = EventRecorder(kube, instance="p" * 253, clock=SystemClock(), on_loss=failures.append)
    regarding = account | {"apiVersion": "v1", "kind": "ServiceAccount"}
    recorder.record(regarding, severity="Warning", reason="Gated", action="Gate", note=note)
    await posted(recorder)
    assert failures == []
    (event,) = events_of(api, namespace)
    assert event["regarding"]["uid"] == account["metadata"]["uid"]
    assert event["note"] in (note, "🚦" * 255 + "…")
    described = kubectl.within(namespace)("describe", "serviceaccount", "default")
    assert "hermetic.dev/operator" in described
    assert "Gated" in described


async def test_an_event_the_server_refuses_is_counted_and_raises_nothing(
    kube: KubernetesApi, api: Api, namespace: str
) -> None:
    account = api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
    failures: list[str] = []
    recorder = EventRecorder(kube, instance="pod", clock=SystemClock(), on_loss=failures.append)
    regarding = account | {"apiVersion": "v1", "kind": "ServiceAccount"}
    recorder.record(regarding, severity="Warning", reason="R" * 129, action="Gate", note="x")
    await posted(recorder)
    assert failures == ["HRM-KUB-422"]
    assert events_of(api, namespace) == []


async def test_an_event_about_a_cluster_scoped_object_is_accepted(
    kube: KubernetesApi, api: Api, namespace: str
) -> None:
    itself = api.get(f"/api/v1/namespaces/{namespace}")
    failures: list[str] = []
    recorder = EventRecorder(kube, instance="pod", clock=SystemClock(), on_loss=failures.append)
    regarding = itself | {"apiVersion": "v1", "kind": "Namespace"}
    recorder.record(regarding, severity="Normal", reason="Audited", action="Audit", note="all closed")
    await posted(recorder)
    assert failures == []


async def posted(recorder: EventRecorder) -> None:
    """Post what was recorded, as the operator's own task does."""
    task = asyncio.create_task(recorder.run())
    await recorder.flushed(60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def events_of(api: Api, namespace: str) -> list[dict[str, Any]]:
    events = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return [event for event in events if event["reportingController"] == "hermetic.dev/operator"]

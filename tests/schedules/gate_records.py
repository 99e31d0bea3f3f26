"""What happened around a gate that closed, as watches past the operator saw it, and what of it breaks a promise.

Times are seconds since the epoch, of the API server and of kwok, which run on this machine: whole seconds, cut off.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hermetic.objects.workloads.workload_kind import HOLD
from testbed.api import Api
from testbed.errors import ApiError
from tests.scenarios import Manifest

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"
LEASES = LEASE.rpartition("/")[0]
UNTIL = "hermetic.dev/pods-until"
MODEL = "hermetic.dev/modeldeployment"
PROMISED_SECONDS = 10.0
"""After so many seconds of a closed gate with a running operator no pod starts (docs/security.md)."""
IN_FLIGHT_SECONDS = 3.0
"""From the moment at which the API server admits a request until the time that it writes into the object."""

SAMPLE_SECONDS, PAUSE_SECONDS = 0.002, 0.5


@dataclass(frozen=True)
class PodRecord:
    """One pod of a model; None: that has not happened. leaving_at: when it was seen to be deleted.

    is_held: no scheduler places it. The controller makes it in a rolling update whose other pods have to go, where the
    moment in the Lease is not over yet.
    """

    name: str
    created_at: float
    node_at: float | None = None
    started_at: float | None = None
    leaving_at: float | None = None
    is_held: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether it is there, has not started, and would start with a node."""
        return self.started_at is None and self.leaving_at is None and not self.is_held

    @property
    def is_started(self) -> bool:
        """Whether it is there and has started."""
        return self.started_at is not None and self.leaving_at is None


@dataclass(frozen=True)
class ClosedTime:
    """One time for which the gate is closed.

    closed_at: the Fail, or the end of the evidence. opened_at: before anything opened it again.
    ends_at: the latest moment that any Lease may have named, the end of the evidence; None where it lasts for longer.
    healthy: when an operator ran that nothing disturbed, as (start, end).
    between: seconds from one time to another, as `Pace.seconds` counts them.
    """

    closed_at: float
    opened_at: float
    ends_at: float | None
    healthy: tuple[tuple[float, float], ...]
    between: Callable[[float, float], float] = lambda start, end: end - start


def broken_promises(
    pods: Iterable[PodRecord], moments: Iterable[tuple[float, str]], closed: ClosedTime
) -> Iterator[str]:
    """One sentence for each pod that is made, given a node, or started although it may not.

    moments: what the Lease says, with the time from which on it says so.
    """
    closings = [at for at, until in moments if not until and closed.closed_at <= at < closed.opened_at]
    ends = [end for end in (*closings[:1], closed.ends_at) if end is not None]
    refused_from = min(ends) + IN_FLIGHT_SECONDS if ends else None
    for pod in pods:
        for act, at in (("made", pod.created_at), ("given a node", pod.node_at)):
            if refused_from is not None and at is not None and refused_from < at < closed.opened_at:
                late = at - refused_from + IN_FLIGHT_SECONDS
                yield f"{pod.name} was {act} {late:.0f} s after the moment in the Lease"
        if pod.started_at is not None and pod.started_at < closed.opened_at:
            healthy = healthy_seconds(closed, pod.started_at)
            if healthy >= PROMISED_SECONDS:
                yield f"{pod.name} started after {healthy:.0f} s of a closed gate with an operator"


def healthy_seconds(closed: ClosedTime, at: float) -> float:
    """For how long the gate had been closed with an undisturbed operator."""
    undisturbed = [max(start, closed.closed_at) for start, end in closed.healthy if start <= at <= end]
    return max((closed.between(start, at) for start in undisturbed), default=0.0)


def seconds_until_removed(pods: Iterable[PodRecord], closed: ClosedTime) -> float:
    """The longest time for which a pod still waited behind the gate although an undisturbed operator ran."""
    removed = (pod.leaving_at for pod in pods if pod.started_at is None and pod.leaving_at is not None)
    return max((healthy_seconds(closed, at) for at in removed), default=0.0)


@dataclass
class Pace:
    """How slow this machine is, as others use it as well: a second in which it gives a process a half counts as a half.

    A thread spends SAMPLE_SECONDS of processor time again and again; what that takes by the clock is the slowness.
    """

    samples: list[tuple[float, float]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._measure, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.ended.set()
        self._thread.join()

    def seconds(self, start: float, end: float) -> float:
        """Seconds between two times, each divided by how slow the machine was then."""
        passed, since = 0.0, start
        for at, slowness in tuple(self.samples):
            if at > since:
                until = min(at, end)
                passed, since = passed + (until - since) / slowness, until
            if since >= end:
                break
        return passed + max(0.0, end - since)

    def _measure(self) -> None:
        while not self.ended.wait(PAUSE_SECONDS):
            began, spent = time.perf_counter(), time.thread_time()
            while time.thread_time() - spent < SAMPLE_SECONDS:
                pass
            self.samples.append((time.time(), max(1.0, (time.perf_counter() - began) / SAMPLE_SECONDS)))


@dataclass
class Records:
    """Watches of pods of models, of the Lease and of the verdict, from the start to the end of a cluster."""

    api: Api
    pods: dict[str, PodRecord] = field(default_factory=dict)
    moments: list[tuple[float, str]] = field(default_factory=list)
    verdicts: list[tuple[float, str]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        audits = "/apis/hermetic.dev/v1alpha1/egressaudits"
        watched = (("/api/v1/pods", self._see_pod), (LEASES, self._see_lease), (audits, self._see_audit))
        self._threads = [threading.Thread(target=self._watch, args=arguments, daemon=True) for arguments in watched]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self.ended.set()
        for thread in self._threads:
            thread.join()

    def of(self, namespaces: Iterable[str]) -> list[PodRecord]:
        """Of the pods in these namespaces, those that are gone among them."""
        prefixes = tuple(f"{namespace}/" for namespace in namespaces)
        return [pod for pod in tuple(self.pods.values()) if pod.name.startswith(prefixes)]

    def shows_a_pass(self) -> bool:
        """Whether the newest verdict is Pass. On a busy machine a watch follows what a read shows already."""
        return bool(self.verdicts) and self.verdicts[-1][1] == "Pass"

    def _watch(self, path: str, see: Any) -> None:
        while not self.ended.is_set():
            try:
                listed = self.api.get(path)
                if see == self._see_pod:
                    self._forget_others({item["metadata"]["uid"] for item in listed["items"]})
                for item in listed["items"]:
                    see("ADDED", item)
                for event in self.api.watch(path, listed["metadata"]["resourceVersion"], seconds=5):
                    see(event["type"], event["object"])
            except (ApiError, OSError):
                time.sleep(0.2)

    def _forget_others(self, uids: set[str]) -> None:
        """Those that went between two watches are gone."""
        for uid, pod in tuple(self.pods.items()):
            if uid not in uids and pod.leaving_at is None:
                self.pods[uid] = replace(pod, leaving_at=time.time())

    def _see_pod(self, kind: str, pod: Manifest) -> None:
        metadata = pod["metadata"]
        if MODEL not in metadata.get("labels", {}):
            return
        uid, name = metadata["uid"], f"{metadata['namespace']}/{metadata['name']}"
        is_held = pod["spec"].get("schedulerName") == HOLD
        record = self.pods.get(uid) or PodRecord(name, seconds_of(metadata["creationTimestamp"]), is_held=is_held)
        node_at = record.node_at if record.node_at is not None else _node_at(pod)
        started_at = record.started_at if record.started_at is not None else _started_at(pod)
        is_leaving = kind == "DELETED" or "deletionTimestamp" in metadata
        leaving_at = time.time() if is_leaving and record.leaving_at is None else record.leaving_at
        self.pods[uid] = replace(record, node_at=node_at, started_at=started_at, leaving_at=leaving_at)

    def _see_lease(self, _kind: str, lease: Manifest) -> None:
        if lease["metadata"]["name"] == LEASE.rpartition("/")[2]:
            self._append(self.moments, (lease["metadata"].get("annotations") or {}).get(UNTIL, ""))

    def _see_audit(self, _kind: str, audit: Manifest) -> None:
        self._append(self.verdicts, str((audit.get("status") or {}).get("verdict", "")))

    @staticmethod
    def _append(history: list[tuple[float, str]], value: str) -> None:
        if not history or history[-1][1] != value:
            history.append((time.time(), value))


def seconds_of(stamp: str) -> float:
    """The seconds since the epoch of a time in an object."""
    return datetime.fromisoformat(stamp).timestamp()


def _node_at(pod: Manifest) -> float | None:
    conditions = pod.get("status", {}).get("conditions") or ()
    scheduled = [
        condition for condition in conditions if condition["type"] == "PodScheduled" and condition["status"] == "True"
    ]
    return seconds_of(scheduled[0]["lastTransitionTime"]) if scheduled else None


def _started_at(pod: Manifest) -> float | None:
    statuses = pod.get("status", {}).get("containerStatuses") or ()
    running = [status["state"]["running"]["startedAt"] for status in statuses if "running" in status.get("state", {})]
    return min(map(seconds_of, running)) if running else None

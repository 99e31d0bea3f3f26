"""The schedule of one namespace on a real API server: what people, rivals and policies do in it, by its seed."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from testbed.errors import ApiError
from testbed.faults import Answer, Delay, DropAfter, DropBefore, Fault
from tests.kubernetes_models import OF_KUBERNETES
from tests.scenarios import Manifest
from tests.schedules.real_cluster import (
    DRAINS,
    MODELS_IN,
    REFUSED_LABEL,
    SHARES,
    RealCluster,
    Wanted,
    gone_namespace,
    insistently,
    made_namespace,
    manifests_of,
)

STEPS = 8
OWNED = {kind.kind: kind.path("{}") for kind in OF_KUBERNETES if kind.namespaced}
THEIRS: dict[str, Manifest] = {"Deployment": {"spec": {"replicas": 7}}, "Service": {"spec": {"type": "NodePort"}}}
TROUBLES = (
    Answer(409), Answer(429, retry_after=1), Answer(429, retry_after=5), Answer(500), Answer(503), DropBefore(),
    DropAfter(), Delay(2.0), Delay(12.0),
)  # fmt: skip


@dataclass
class NamespaceSchedule:
    """One namespace, and what is wanted in it."""

    cluster: RealCluster
    seed: int
    wanted: Wanted = ("", "")

    def __post_init__(self) -> None:
        # A name that is no part of any other: it is masked before two namespaces are compared.
        self.namespace = f"schedule-{self.seed}"
        self.chance = random.Random(self.seed)

    def live(self) -> None:
        """The whole schedule; leaves the namespace without faults."""
        made_namespace(self.cluster.api, self.namespace)
        self.apply(str(DRAINS[0]), SHARES[0])
        for _ in range(self.chance.randint(3, STEPS)):
            faults = [self._fault() for _ in range(self.chance.choice((0, 1, 2)))]
            name = self.chance.choice(sorted(ACTS))
            self.cluster.faults_injected[name] += 1
            try:
                ACTS[name](self)
                time.sleep(self.chance.choice((0.01, 0.2, 2.0, 5.0)))
            finally:
                if faults:  # `lift()` takes those of other namespaces away too
                    self.cluster.proxy.lift(*faults)

    def _fault(self) -> Fault:
        action = self.chance.choice(TROUBLES)
        methods = ("PATCH", "POST", "PUT", "DELETE", *(("GET",) if not isinstance(action, DropAfter) else ()))
        fault = Fault(action, methods, f"{self.namespace}(/|-|$)", probability=self.chance.choice((0.1, 0.3, 0.6)))
        self.cluster.faults_injected[_named(action)] += 1
        return self.cluster.proxy.inject(fault)

    def apply(self, drain: str, folder: str) -> None:
        """Apply what is wanted, delete what is not."""
        self.wanted = (drain, folder)
        manifests = manifests_of(self.wanted)
        insistently(lambda: manifests and self.cluster.kubectl.within(self.namespace).apply(*manifests))
        for name, is_wanted in (("phi", drain), ("llama", folder)):
            if not is_wanted:
                self.remove(f"{MODELS_IN.format(self.namespace)}/{name}")

    def remove(self, path: str) -> None:
        """Delete, or find it gone."""

        def delete() -> None:
            try:
                self.cluster.api.delete(path)
            except ApiError as error:
                if error.status != 404:
                    raise

        insistently(delete)


def _edit(schedule: NamespaceSchedule) -> None:
    schedule.apply(schedule.chance.choice(("", *map(str, DRAINS))), schedule.chance.choice(("", *SHARES)))


def _storm(schedule: NamespaceSchedule) -> None:
    """A rival edits or deletes children as fast as it can."""
    for _ in range(schedule.chance.randint(1, 12)):
        kind = schedule.chance.choice(sorted(OWNED))
        chosen, is_deletion = schedule.chance.random(), schedule.chance.random() < 0.4
        with contextlib.suppress(ApiError, OSError):
            items = schedule.cluster.api.get(OWNED[kind].format(schedule.namespace))["items"]
            names = [item["metadata"]["name"] for item in items if item["metadata"]["name"] != "default"]
            path = f"{OWNED[kind].format(schedule.namespace)}/{names[int(chosen * len(names))]}" if names else ""
            if path and is_deletion:
                schedule.cluster.api.delete(path)
            elif path and kind in THEIRS:
                schedule.cluster.api.merge(path, THEIRS[kind])


def _quota(schedule: NamespaceSchedule) -> None:
    """For a while nothing more may be made of some kinds."""
    path = f"/api/v1/namespaces/{schedule.namespace}/resourcequotas"
    hard = {"count/deployments.apps": "0", "services": "0", "count/serviceaccounts": "0"}
    with contextlib.suppress(ApiError, OSError):
        schedule.cluster.api.create(path, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    _edit(schedule)
    time.sleep(schedule.chance.uniform(0.5, 4.0))
    schedule.remove(f"{path}/small")


def _refused(schedule: NamespaceSchedule) -> None:
    """For a while an admission policy refuses every child."""
    path = f"/api/v1/namespaces/{schedule.namespace}"
    insistently(lambda: schedule.cluster.api.merge(path, {"metadata": {"labels": {REFUSED_LABEL: "yes"}}}))
    _edit(schedule)
    time.sleep(schedule.chance.uniform(0.5, 4.0))
    insistently(lambda: schedule.cluster.api.merge(path, {"metadata": {"labels": {REFUSED_LABEL: None}}}))


def _namespace(schedule: NamespaceSchedule) -> None:
    """The namespace is deleted and made again, with what is wanted in it."""
    schedule.remove(f"/api/v1/namespaces/{schedule.namespace}")
    gone_namespace(schedule.cluster.api, schedule.namespace)
    made_namespace(schedule.cluster.api, schedule.namespace)
    schedule.apply(*schedule.wanted)


ACTS: dict[str, Callable[[NamespaceSchedule], None]] = {
    "spec edited": _edit,
    "spec edited again": _edit,
    "storm of a rival": _storm,
    "quota": _quota,
    "admission refused": _refused,
    "namespace deleted": _namespace,
}


def _named(action: object) -> str:
    action_name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(action).__name__).lower()
    return f"{action_name} {getattr(action, 'status', '') or getattr(action, 'seconds', '')}".strip()

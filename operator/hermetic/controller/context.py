"""The dependencies that the parts of one process share; made once in the composition root."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.api.configuration import Configuration
from hermetic.controller.pod_gate import PodGate
from hermetic.controller.telemetry import Telemetry
from hermetic.controller.workqueue import WorkQueue
from hermetic.kube.client import KubernetesApi
from hermetic.kube.connection import Connection
from hermetic.kube.owners import Key
from hermetic.kube.recorder import EventRecorder
from hermetic.kube.store import Store
from hermetic.ports import Clock


@dataclass(frozen=True, slots=True)
class Shared:
    """`api` reads at any time, and writes only while this process holds the Lease."""

    configuration: Configuration
    connection: Connection
    api: KubernetesApi
    store: Store
    queue: WorkQueue[Key]
    recorder: EventRecorder
    clock: Clock
    telemetry: Telemetry
    pod_gate: PodGate

"""One gate that closes on a real API server, with models that wait, and faults that the seed of the first draws.

Etcd, API server, scheduler, controller manager, signatures and operator are real; kwok runs the nodes and pods, and the
probe's answers are simulated. The gate is that of the cluster, so it closes for the models of several seeds at once.
What is drawn: why it closes; where the operator is killed, or for how long it is paused; which of its requests are
lost; a probe whose packets are lost, before; nodes that an autoscaler adds, after; and what others do to the models.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from testbed.errors import ComponentError
from testbed.faults import Answer, Delay, DropAfter, DropBefore, Fault, WriteMark
from testbed.fleet import Pool, node, remove_nodes
from tests.controlplane.sealed_cluster import ATTESTATIONS, GPU_NODES, SealedCluster, a_finding, sealed_cluster
from tests.schedules.gate_models import PATIENCE_SECONDS, UPDATE, GateModel
from tests.schedules.gate_records import (
    PROMISED_SECONDS,
    ClosedTime,
    Pace,
    PodRecord,
    Records,
    broken_promises,
    seconds_of,
    seconds_until_removed,
)

MORE_NODES = 6
LAST_ACT_SECONDS = 4.0
"""For so long everything is watched after the last act."""
EVIDENCE_ENDS = "evidence ends"
SHORT = timedelta(seconds=45)
"""How long the evidence lasts where its end is waited for."""
OBSERVED_SECONDS = PROMISED_SECONDS + 6
"""For so long an undisturbed operator is watched behind the closed gate."""
AWAY_SECONDS = 8.0
"""For so long after the end of the evidence no operator runs, where it was killed and stays away."""
EGRESS = "hermetic.test/egress"
LEASE_WRITE, STATUS_WRITE = r"/leases/hermetic$", r"/egressaudits/cluster/status"
KILLS = {
    "killed before the Lease is written": (LEASE_WRITE, False),
    "killed after the Lease is written": (LEASE_WRITE, True),
    "killed before the status is written": (STATUS_WRITE, False),
    "killed after the status is written": (STATUS_WRITE, True),
}
TROUBLES = (Answer(500), Answer(429, retry_after=1), DropBefore(), DropAfter(), Delay(2.0))
FAIL = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")
PUBLIC = {"type": "LoadBalancer", "selector": {"app": "shop"}, "ports": [{"port": 443}]}


@dataclass
class GateCluster:
    """The cluster, its records, and what befell it so far."""

    sealed: SealedCluster
    records: Records
    pace: Pace
    faults_injected: Counter[str] = field(default_factory=Counter)
    longest_removal: float = 0.0
    nodes_made: int = 0

    def add_node(self, pool: str) -> str:
        """One more machine, of a number that no machine had before."""
        self.nodes_made += 1
        manifest = node(Pool(pool), 100 + self.nodes_made)
        self.sealed.api.create("/api/v1/nodes", manifest)
        return str(manifest["metadata"]["name"])


@contextlib.contextmanager
def opened(folder: Path) -> Iterator[GateCluster]:
    """A cluster in which every model must be proven, behind a proxy, watched past it."""
    minimum = {"minimumEnforcement": "Enforce"}
    with sealed_cluster(folder, {}, proxied=True, isolation=minimum) as sealed:
        for number in range(GPU_NODES, GPU_NODES + MORE_NODES):
            sealed.api.create("/api/v1/nodes", node(Pool("gpu"), number))
        records, pace = Records(sealed.api), Pace()
        records.start()
        pace.start()
        try:
            yield GateCluster(sealed, records, pace)
        finally:
            records.stop()
            pace.stop()


@dataclass
class GateClosing:
    """One closing. `models`: those of the seeds that share it; the first decides what is drawn for all."""

    cluster: GateCluster
    models: list[GateModel]
    healthy: list[tuple[float, float]] = field(default_factory=list)
    closed_at: float = 0.0
    ends_at: float | None = None
    started_before: int = 0

    def __post_init__(self) -> None:
        self.sealed, self.records, self.seed = self.cluster.sealed, self.cluster.records, self.models[0].seed
        self.chance = random.Random(f"closed gate {self.models[0].seed}")
        self.cause = self.chance.choice(sorted(CAUSES))
        self.operator = self.chance.choice(("runs", "runs", "paused", *KILLS))
        self.is_away = self.operator in KILLS and self.chance.random() < 0.5
        self.pause = self.chance.choice((1.0, 5.0, 25.0)) if self.operator == "paused" else self.chance.uniform(0, 3)
        self.loses_packets = self.chance.random() < 0.3
        self.loses_requests = self.chance.choice((0.0, 0.0, 3.0, 10.0))
        self.breaks_watches = self.chance.random() < 0.2
        self.nodes_after = [self.chance.uniform(0.5, 20.0) for _ in range(self.chance.randint(1, 3))]
        self.is_paused = False
        self.restart_at: float | None = None
        self.mark: WriteMark | None = None
        self.faults: list[Fault] = []
        self.nodes: list[str] = []

    def live(self) -> dict[int, tuple[str, ...]]:
        """The whole closing; what is wrong, by seed. What is wrong with the cluster is that of the first."""
        wrong = {self.seed: self._open()}
        self._close()
        wrong[self.seed] += self._observe()
        closed = ClosedTime(self.closed_at, time.time(), self.ends_at, tuple(self.healthy), self.cluster.pace.seconds)
        for model in self.models:
            pods = self.records.of((model.namespace.namespace,))
            broken = [*broken_promises(pods, self.records.moments, closed)]
            broken += [f"{pod.name} still waits" for pod in pods if pod.is_waiting]
            wrong.setdefault(model.seed, []).extend(broken)
        self.cluster.longest_removal = max(self.cluster.longest_removal, seconds_until_removed(self._pods(), closed))
        wrong[self.seed] += self._lost_pods()
        for model in self._reopen():
            wrong[model.seed].append(f"{model.situation}, {model.act}: not as asked after the gate opened again")
        return {seed: tuple(errors) for seed, errors in wrong.items() if errors}

    def _pods(self) -> list[PodRecord]:
        return self.records.of(model.namespace.namespace for model in self.models)

    def _count(self, fault: str, times: int = 1) -> None:
        self.cluster.faults_injected[fault] += times

    # ------------------------------------------------------------------ before it closes

    def _open(self) -> list[str]:
        """Open the gate, and let models wait behind it. A lost packet of the probe closes nothing meanwhile."""
        self.sealed.open_gate()
        # An evaluation that began before may still show the closing before; one of new evidence began after.
        name = self.sealed.attest()
        self.sealed.wait("the evidence to count", lambda: self._counts(name), PATIENCE_SECONDS)
        self.sealed.wait("the records to follow", self.records.shows_a_pass, PATIENCE_SECONDS)
        opened_at = time.time()
        for model in self.models:
            model.prepare()
        if self.loses_packets:
            self._lose_packets()
        lasts = SHORT if self.cause == EVIDENCE_ENDS or self.is_away else timedelta(days=1)
        name = self.sealed.attest(lasts=lasts)
        self.sealed.wait("the evidence to count", lambda: self._counts(name), PATIENCE_SECONDS)
        if lasts is SHORT:
            self.ends_at = seconds_of(self.sealed.status["evidence"]["azure"]["expiresAt"])
        if self.cause == EVIDENCE_ENDS and self.ends_at is not None:
            time.sleep(max(0.0, self.ends_at - self.chance.uniform(4.0, 12.0) - time.time()))
        for model in self.models:
            model.begin()
            self._count(model.situation)
        self.sealed.wait("pods", self._have_pods, PATIENCE_SECONDS)
        self.started_before = sum(pod.is_started for pod in self._pods())
        verdicts = {verdict for at, verdict in self.records.verdicts if at > opened_at} - {"Pass"}
        is_early = self.cause != EVIDENCE_ENDS and (self.ends_at is None or time.time() < self.ends_at)
        return [f"closed before anything was wrong: {', '.join(sorted(verdicts))}"] if verdicts and is_early else []

    def _have_pods(self) -> bool:
        """Whether each model has a pod, or none will come any more."""
        is_over = self.ends_at is not None and time.time() > self.ends_at
        return is_over or all(model.has_pods() for model in self.models)

    def _counts(self, attestation: str) -> bool:
        return attestation in self.sealed.condition("AttestationAccepted").get("message", "")

    def _lose_packets(self) -> None:
        """A round of the probe in which no control answers at first, as where packets are lost."""
        ended = self._rounds()
        self._annotate_nodes("lossy")
        self.sealed.attest()
        self.sealed.wait("a doubtful round", lambda: self._rounds() > ended, PATIENCE_SECONDS)
        self._annotate_nodes(None)
        self._count("packets of the probe lost")

    def _rounds(self) -> int:
        return sum(line["event"] == "probe ended" for line in self.sealed.operator.log_lines())

    def _annotate_nodes(self, egress: str | None) -> None:
        for name in self.sealed.nodes:
            self.sealed.api.merge(f"/api/v1/nodes/{name}", {"metadata": {"annotations": {EGRESS: egress}}})

    # ------------------------------------------------------------------ it closes

    def _close(self) -> None:
        """Close the gate, with whatever befalls the operator at that moment."""
        self._count(f"gate closed: {self.cause}")
        waiting = [pod for pod in self._pods() if pod.is_waiting]
        self._count("pods that waited without a node", sum(pod.node_at is None for pod in waiting))
        self._count("pods that waited with a node", sum(pod.node_at is not None for pod in waiting))
        if self.cause == EVIDENCE_ENDS and self.ends_at is not None:
            time.sleep(max(0.0, self.ends_at - 1.0 - time.time()))
        if self.loses_requests:
            self._lose_requests()
        self._strike()
        self.closed_at = time.time()
        if self.cause == EVIDENCE_ENDS and self.ends_at is not None:
            self.closed_at = max(self.closed_at, self.ends_at)
        else:
            CAUSES[self.cause](self)

    def _lose_requests(self) -> None:
        """Some of the operator's writes are refused, late, or not answered."""
        self._count("requests of the operator lost")
        for action in self.chance.sample(TROUBLES, 2):
            fault = Fault(action, ("PUT", "PATCH", "POST"), probability=self.chance.choice((0.2, 0.5)))
            self.faults.append(self.sealed.proxy.inject(fault))

    def _strike(self) -> None:
        """Arm the kill, or pause the process now."""
        self._count(f"operator {self.operator}")
        component = self.sealed.operator.component
        if self.breaks_watches:
            self._count("watches broken")
            self.sealed.proxy.cut_watches(expired=self.chance.random() < 0.5)
        if self.operator in KILLS:
            path, is_after = KILLS[self.operator]
            self.mark = self.sealed.proxy.at_write(1, lambda: component.stop(signal.SIGKILL), path, after=is_after)
        elif self.operator == "paused" and component.pid is not None:
            os.kill(component.pid, signal.SIGSTOP)
            self.is_paused = True

    # ------------------------------------------------------------------ behind the closed gate

    def _observe(self) -> list[str]:
        """Let time pass until everything drawn has happened and an undisturbed operator was watched for long enough."""
        due = self._timeline()
        began, last_act = time.time(), self.closed_at
        while time.time() - began < PATIENCE_SECONDS:
            while due and due[0][0] <= time.time():
                due.pop(0)[1]()
                last_act = time.time()
            self._restart_when_due()
            since = self._healthy_since()
            is_over = not due and self._seconds_since(last_act) > LAST_ACT_SECONDS
            if is_over and since is not None and self._seconds_since(max(since, self.closed_at)) > OBSERVED_SECONDS:
                self._end_of_health()
                return []
            time.sleep(0.1)
        return [f"no undisturbed operator within {PATIENCE_SECONDS:.0f} s: {self.operator}, {self.cause}"]

    def _seconds_since(self, moment: float) -> float:
        return self.cluster.pace.seconds(moment, time.time())

    def _timeline(self) -> list[tuple[float, Callable[[], object]]]:
        """What happens when, in order; times are seconds since the epoch."""
        acts: list[tuple[float, Callable[[], object]]] = [
            (self.closed_at + after, self._add_late_node) for after in self.nodes_after
        ]
        for model in self.models:
            self._count(model.act)
            acts.append((self.closed_at + model.act_after, model.disturb))
        if self.loses_requests:
            acts.append((self.closed_at + self.loses_requests, self._lift))
        if self.is_paused:
            acts.append((self.closed_at + self.pause, self._go_on))
        if self.mark is not None:  # of a write that never came
            acts.append((self.closed_at + 20.0, self._disarm))
        return sorted(acts, key=lambda act: act[0])

    def _add_late_node(self) -> None:
        self._count("node added behind the closed gate")
        self.nodes.append(self.cluster.add_node("real"))

    def _lift(self) -> None:
        self.sealed.proxy.lift(*self.faults)
        self.faults = []

    def _go_on(self) -> None:
        component, self.is_paused = self.sealed.operator.component, False
        if component.pid is not None and component.exit_code is None:
            os.kill(component.pid, signal.SIGCONT)

    def _disarm(self) -> None:
        if self.mark is not None:
            self.mark.number, self.mark = 0, None

    def _restart_when_due(self) -> None:
        """What a kubelet does; later where no operator is to run until the evidence has ended."""
        component, now = self.sealed.operator.component, time.time()
        if component.exit_code is None:
            self.restart_at = None
        elif self.restart_at is None:
            is_first = self.mark is not None
            self._disarm()
            self.restart_at = now + self.pause
            if self.is_away and is_first and self.ends_at is not None:
                self._count("no operator until after the end of the evidence")
                self.restart_at = max(now, self.ends_at) + AWAY_SECONDS
        elif now >= self.restart_at:
            self._count("operator restarted")
            component.start()

    def _healthy_since(self) -> float | None:
        """Since when the operator has run undisturbed; None while it does not."""
        operator = self.sealed.operator
        is_disturbed = self.is_paused or self.faults or operator.component.exit_code is not None
        if is_disturbed or not operator.ready():
            self._end_of_health()
            return None
        if not self.healthy or self.healthy[-1][1] != math.inf:
            self.healthy.append((time.time(), math.inf))
        return self.healthy[-1][0]

    def _end_of_health(self) -> None:
        if self.healthy and self.healthy[-1][1] == math.inf:
            self.healthy[-1] = (self.healthy[-1][0], time.time())

    def _lost_pods(self) -> list[str]:
        """Pods that ran when the gate closed and run no more; a rolling update may end one in its last step."""
        started, spared = sum(pod.is_started for pod in self._pods()), sum(m.situation == UPDATE for m in self.models)
        if started >= self.started_before - spared:
            return []
        return [f"{self.started_before} pods ran when the gate closed, {started} behind it"]

    # ------------------------------------------------------------------ it opens again

    def _reopen(self) -> list[GateModel]:
        """Take everything back, bring new evidence, and return the models that are not as they were asked for."""
        self._lift()
        for model in self.models:
            model.calm()
        UNDO.get(self.cause, lambda _: None)(self)
        wanted_nodes = sum(model.wanted["spec"]["replicas"] + 1 for model in self.models)
        for _ in range(wanted_nodes - len(self.sealed.nodes) - MORE_NODES):
            self.nodes.append(self.cluster.add_node("gpu"))
        self.sealed.attest()
        late: list[GateModel] = []
        for model in self.models:
            try:
                self.sealed.wait("it serves", model.is_served, PATIENCE_SECONDS)
            except ComponentError:
                late.append(model)
        for model in self.models:
            self.sealed.api.delete(f"/api/v1/namespaces/{model.namespace.namespace}")
        # A pod that still ends holds a node, and a namespace that ends has pods without their NetworkPolicy.
        self.sealed.wait(
            "no namespace of the models", lambda: not any(model.exists() for model in self.models), PATIENCE_SECONDS
        )
        self.sealed.at_rest()  # the round of a node that is gone would end only after its whole time
        remove_nodes(self.sealed.api, self.nodes)
        return late

    # ------------------------------------------------------------------ causes

    def _import_fail(self) -> None:
        self.sealed.attest(FAIL, says={"verdict": "Fail"})

    def _withdraw_attestations(self) -> None:
        for attestation in self.sealed.api.get(ATTESTATIONS)["items"]:
            self.sealed.api.delete(f"{ATTESTATIONS}/{attestation['metadata']['name']}")

    def _publish_service(self) -> None:
        manifest = {"metadata": {"name": "shop"}, "spec": PUBLIC}
        self.sealed.api.create(self._services, manifest)

    def _remove_service(self) -> None:
        self.sealed.api.delete(f"{self._services}/shop")

    @property
    def _services(self) -> str:
        return f"/api/v1/namespaces/{self.models[0].namespace.namespace}/services"

    def _add_foreign_node(self) -> None:
        self.foreign = self.cluster.add_node("burst")

    def _remove_foreign_node(self) -> None:
        remove_nodes(self.sealed.api, [self.foreign])

    def _wait_for_the_end(self) -> None:
        """Nothing happens but that time passes."""


CAUSES: dict[str, Callable[[GateClosing], None]] = {
    "Fail imported": GateClosing._import_fail,
    "attestation withdrawn": GateClosing._withdraw_attestations,
    "egress path in the cluster": GateClosing._publish_service,
    "node of a pool that was not attested": GateClosing._add_foreign_node,
    EVIDENCE_ENDS: GateClosing._wait_for_the_end,
}
UNDO: dict[str, Callable[[GateClosing], None]] = {
    "egress path in the cluster": GateClosing._remove_service,
    "node of a pool that was not attested": GateClosing._remove_foreign_node,
}

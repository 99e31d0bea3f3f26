"""Schedules of faults against a real API server: namespaces side by side, and one operator behind a fault proxy.

Every namespace lives through the schedule of its own seed. What befalls the operator, the API server and etcd befalls
all namespaces of a batch, and follows from the batch's first seed. In the end each namespace is compared with one in
which the same specs were applied and nothing went wrong. The same seed draws the same acts; how they interleave is the
machine's.

Not drawn here, for a process cannot be given them: jumps of the clock and lists from the past. `life` draws both.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.errors import ApiError, BedError, ComponentError
from testbed.fault_proxy import FaultProxy
from testbed.faults import Answer, Delay, DropAfter, DropBefore, Fault
from testbed.installation import CONFIGURATION, OperatorProcess, install, operator_kubeconfig, wait_for
from testbed.kubectl import Kubectl
from testbed.processes import wait_until
from tests.controlplane.end_state import end_state, is_gone
from tests.scenarios import Manifest, a_baked_model, a_share_model, changed, reporting
from tests.schedules import garbage
from tests.schedules.world import lies_of

MODELS = "/apis/hermetic.dev/v1alpha1/modeldeployments"
MODELS_IN = "/apis/hermetic.dev/v1alpha1/namespaces/{}/modeldeployments"
SHARES = ("llama-3-1-8b/fp8", "llama-3-1-8b/bf16")
DRAINS = (5, 30)
STEPS = 8
CALM_SECONDS, REST_SECONDS = 240.0, 10.0
PATIENCE_SECONDS = 300.0  # of people, and of the bed: a machine that others use as well is slow
COLLECTED_LATE = "garbage collector of Kubernetes late"
REFUSED_LABEL = "hermetic.test/refused"
OWNED = {
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Service": "/api/v1/namespaces/{}/services",
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
}
THEIRS: dict[str, Manifest] = {"Deployment": {"spec": {"replicas": 7}}, "Service": {"spec": {"type": "NodePort"}}}
TROUBLES = (
    Answer(409), Answer(429, retry_after=1), Answer(429, retry_after=5), Answer(500), Answer(503), DropBefore(),
    DropAfter(), Delay(2.0), Delay(12.0),
)  # fmt: skip

Wanted = tuple[str, str]
"""What is applied in a namespace in the end: drain seconds of `phi` and folder of `llama`, "" where it is not there."""


def _manifests(wanted: Wanted) -> list[Manifest]:
    # No pods: their pace is not the operator's, and everything that is written is written without them too.
    drain, folder = wanted
    found = [changed(reporting(a_baked_model(replicas=0)), drainSeconds=int(drain))] if drain else []
    weights = {"azureFiles": {"account": "contosomodels", "share": "models", "folder": folder}}
    return found + ([changed(reporting(a_share_model(replicas=0)), weights=weights)] if folder else [])


@dataclass
class Bed:
    """The cluster, the proxy, and the operators that run now."""

    plane: ControlPlane
    proxy: FaultProxy
    api: Api
    kubectl: Kubectl
    folder: Path
    operators: list[OperatorProcess] = field(default_factory=list)
    references: dict[Wanted, str] = field(default_factory=dict)
    befallen: Counter[str] = field(default_factory=Counter)
    collected_late: dict[str, tuple[str, ...]] = field(default_factory=dict)
    made: int = 0

    def start_operator(self) -> None:
        """One more: as long as another leads, it waits for the Lease."""
        self.made += 1
        name = f"operator-{self.made}"
        kubeconfig = operator_kubeconfig(
            self.api, self.plane.kubeconfig, self.folder / f"{name}.kubeconfig", self.proxy.server
        )
        process = OperatorProcess(self.folder, kubeconfig, dict(CONFIGURATION), name)
        process.component.start()
        self.operators.append(process)

    def restart_ended(self) -> None:
        """What a kubelet does: an operator that lost its Lease ends, and is started again."""
        for operator in self.operators:
            if operator.component.exit_code is not None:
                self.befallen["operator restarted after its end"] += 1
                operator.component.start()

    def reference(self, wanted: Wanted) -> str:
        """The namespace in which this was applied and nothing went wrong."""
        return self.references[wanted]


@contextlib.contextmanager
def opened(plane: ControlPlane, folder: Path) -> Iterator[Bed]:
    """An installed operator behind a proxy, and one undisturbed namespace for everything that may be wanted."""
    api, kubectl = Api(plane.kubeconfig), Kubectl(plane.kubectl, plane.kubeconfig)
    install(kubectl)
    kubectl.apply(*_refusing())
    with FaultProxy(plane) as proxy:
        bed = Bed(plane, proxy, api, kubectl, folder)
        bed.start_operator()
        try:
            for drain in ("", *map(str, DRAINS)):
                for share in ("", *SHARES):
                    _refer(bed, (drain, share))
            yield bed
        finally:
            for operator in bed.operators:
                operator.stop(signal.SIGKILL)


def _refer(bed: Bed, wanted: Wanted) -> None:
    namespace = f"plain-{len(bed.references)}"
    bed.references[wanted] = namespace
    _made_namespace(bed.api, namespace)
    if manifests := _manifests(wanted):
        bed.kubectl.within(namespace).apply(*manifests)
        settled = partial(_is_settled, bed.api, namespace, len(manifests))
        wait_for(f"reference {wanted}", settled, timeout=PATIENCE_SECONDS)


def _is_settled(api: Api, namespace: str, count: int) -> bool:
    found = api.get(MODELS_IN.format(namespace))["items"]
    said = [
        {one["type"]: one["reason"] for one in item.get("status", {}).get("conditions", ())}.get("Ready")
        for item in found
    ]
    return said == ["ScaledToZero"] * count


# ---------------------------------------------------------------------- one namespace


@dataclass
class Room:
    """One namespace, and what is wanted in it."""

    bed: Bed
    seed: int
    wanted: Wanted = ("", "")

    def __post_init__(self) -> None:
        # A name that is no part of any other: it is masked before two namespaces are compared.
        self.namespace = f"lived-{self.seed}"
        self.chance = random.Random(self.seed)

    def live(self) -> None:
        """The whole schedule; leaves the namespace without faults."""
        _made_namespace(self.bed.api, self.namespace)
        self.wish(str(DRAINS[0]), SHARES[0])
        for _ in range(self.chance.randint(3, STEPS)):
            faults = [self._fault() for _ in range(self.chance.choice((0, 1, 2)))]
            name = self.chance.choice(sorted(ACTS))
            self.bed.befallen[name] += 1
            try:
                ACTS[name](self)
                time.sleep(self.chance.choice((0.01, 0.2, 2.0, 5.0)))
            finally:
                if faults:  # `lift()` takes those of other namespaces away too
                    self.bed.proxy.lift(*faults)

    def _fault(self) -> Fault:
        action = self.chance.choice(TROUBLES)
        methods = ("PATCH", "POST", "PUT", "DELETE", *(("GET",) if not isinstance(action, DropAfter) else ()))
        fault = Fault(action, methods, f"{self.namespace}(/|-|$)", probability=self.chance.choice((0.1, 0.3, 0.6)))
        self.bed.befallen[_named(action)] += 1
        return self.bed.proxy.inject(fault)

    def wish(self, drain: str, folder: str) -> None:
        """Apply what is wanted, delete what is not."""
        self.wanted = (drain, folder)
        manifests = _manifests(self.wanted)
        insistently(lambda: manifests and self.bed.kubectl.within(self.namespace).apply(*manifests))
        for name, is_wanted in (("phi", drain), ("llama", folder)):
            if not is_wanted:
                self.remove(f"{MODELS_IN.format(self.namespace)}/{name}")

    def remove(self, path: str) -> None:
        """Delete, or find it gone."""

        def delete() -> None:
            try:
                self.bed.api.delete(path)
            except ApiError as error:
                if error.status != 404:
                    raise

        insistently(delete)


def _edit(room: Room) -> None:
    room.wish(room.chance.choice(("", *map(str, DRAINS))), room.chance.choice(("", *SHARES)))


def _storm(room: Room) -> None:
    """A rival edits or deletes children as fast as it can."""
    for _ in range(room.chance.randint(1, 12)):
        kind = room.chance.choice(sorted(OWNED))
        chosen, is_deletion = room.chance.random(), room.chance.random() < 0.4
        with contextlib.suppress(ApiError, OSError):
            items = room.bed.api.get(OWNED[kind].format(room.namespace))["items"]
            names = [one["metadata"]["name"] for one in items if one["metadata"]["name"] != "default"]
            path = f"{OWNED[kind].format(room.namespace)}/{names[int(chosen * len(names))]}" if names else ""
            if path and is_deletion:
                room.bed.api.delete(path)
            elif path and kind in THEIRS:
                room.bed.api.merge(path, THEIRS[kind])


def _quota(room: Room) -> None:
    """For a while nothing more may be made of some kinds."""
    path = f"/api/v1/namespaces/{room.namespace}/resourcequotas"
    hard = {"count/deployments.apps": "0", "services": "0", "count/serviceaccounts": "0"}
    with contextlib.suppress(ApiError, OSError):
        room.bed.api.create(path, {"metadata": {"name": "small"}, "spec": {"hard": hard}})
    _edit(room)
    time.sleep(room.chance.uniform(0.5, 4.0))
    room.remove(f"{path}/small")


def _refused(room: Room) -> None:
    """For a while an admission policy refuses every child."""
    path = f"/api/v1/namespaces/{room.namespace}"
    insistently(lambda: room.bed.api.merge(path, {"metadata": {"labels": {REFUSED_LABEL: "yes"}}}))
    _edit(room)
    time.sleep(room.chance.uniform(0.5, 4.0))
    insistently(lambda: room.bed.api.merge(path, {"metadata": {"labels": {REFUSED_LABEL: None}}}))


def _namespace(room: Room) -> None:
    """The namespace is deleted and made again, with what is wanted in it."""
    room.remove(f"/api/v1/namespaces/{room.namespace}")
    _gone_namespace(room.bed.api, room.namespace)
    _made_namespace(room.bed.api, room.namespace)
    room.wish(*room.wanted)


ACTS: dict[str, Callable[[Room], None]] = {
    "spec edited": _edit,
    "spec edited again": _edit,
    "storm of a rival": _storm,
    "quota": _quota,
    "admission refused": _refused,
    "namespace deleted": _namespace,
}


# ---------------------------------------------------------------------- what befalls all of them


def _kill(bed: Bed, chance: random.Random) -> None:
    operator = bed.operators[0]
    operator.component.stop(signal.SIGKILL)
    time.sleep(chance.uniform(0.0, 2.0))
    operator.component.start()


def _two(bed: Bed, chance: random.Random) -> None:
    """A second operator waits for the Lease; then the first is killed, and is not started again."""
    bed.start_operator()
    time.sleep(chance.uniform(1.0, 5.0))
    bed.operators.pop(0).component.stop(signal.SIGKILL)


def _pause(bed: Bed, chance: random.Random) -> None:
    """The process stands still, for longer than its Lease lasts at times, and goes on with what it knew."""
    operator = bed.operators[0].component
    if operator.pid is None or operator.exit_code is not None:
        return
    os.kill(operator.pid, signal.SIGSTOP)
    time.sleep(chance.choice((1.0, 5.0, 25.0)))
    os.kill(operator.pid, signal.SIGCONT)


def _cut(bed: Bed, chance: random.Random) -> None:
    bed.proxy.cut_watches(expired=chance.random() < 0.5)


def _api_server(bed: Bed, chance: random.Random) -> None:
    bed.plane.stop_apiserver()
    time.sleep(chance.uniform(0.0, 3.0))
    _serve(bed)


def _etcd(bed: Bed, _chance: random.Random) -> None:
    try:
        bed.plane.restart_etcd()
    except ComponentError:  # the API server ended meanwhile, as it does where etcd answers too late
        _serve(bed)


def _serve(bed: Bed) -> None:
    """What a kubelet does: an API server that ends while it starts is started again."""

    def serve() -> None:
        bed.plane.stop_apiserver()
        bed.plane.start_apiserver()

    insistently(serve)


DISASTERS: dict[str, Callable[[Bed, random.Random], None]] = {
    "operator killed": _kill,
    "two operators": _two,
    "operator paused": _pause,
    "watches broken": _cut,
    "API server restarted": _api_server,
    "etcd restarted": _etcd,
}


# ---------------------------------------------------------------------- a batch of schedules


def batch(bed: Bed, first: int, count: int) -> dict[int, tuple[str, ...]]:
    """Live through the seeds side by side; what is wrong in the end, by seed. 0 stands for the batch as a whole."""
    rooms, chance = [Room(bed, first + number) for number in range(count)], random.Random(f"batch {first}")
    with _lies(bed) as lies, ThreadPoolExecutor(count) as pool:
        lived = [pool.submit(room.live) for room in rooms]
        while not all(one.done() for one in lived):
            time.sleep(chance.uniform(0.5, 6.0))
            name = chance.choice(sorted(DISASTERS))
            bed.befallen[name] += 1
            DISASTERS[name](bed, chance)  # in the thread that programs are started from
            bed.restart_ended()
        _raise_first(lived)
        bed.proxy.lift()
        deadline = time.monotonic() + CALM_SECONDS
        wrong = {room.seed: found for room in rooms if (found := tuple(_ended(room, deadline)))}
        wrong.update({0: tuple(found)} if (found := [*_at_rest(bed), *dict.fromkeys(lies)]) else {})
        for room in rooms:
            room.remove(f"/api/v1/namespaces/{room.namespace}")
        for room in rooms:
            _gone_namespace(bed.api, room.namespace)
    return wrong


def _raise_first(lived: list[Future[None]]) -> None:
    for one in lived:
        one.result()


def _ended(room: Room, deadline: float) -> Iterator[str]:
    """What differs from the undisturbed namespace when it had time to become like it."""
    api, reference = room.bed.api, room.bed.reference(room.wanted)
    while (found := end_state(api, room.namespace)) != (expected := end_state(api, reference)):
        room.bed.restart_ended()
        if time.monotonic() > deadline and not _is_being_collected(room, deadline):
            yield from (f"missing: {name}" for name in sorted(expected.keys() - found.keys()))
            yield from (f"orphan or duplicate: {name}" for name in sorted(found.keys() - expected.keys()))
            both = sorted(found.keys() & expected.keys())
            yield from (f"{one}: {found[one]} and not {expected[one]}" for one in both if found[one] != expected[one])
            yield from garbage.history(garbage.log_of(room.bed.plane), list(garbage.ownerless(api, room.namespace)))
            return
        time.sleep(0.5)


def _is_being_collected(room: Room, deadline: float) -> bool:
    """Whether to wait longer, because the garbage collector of Kubernetes pauses before it tries again."""
    log, ownerless = garbage.log_of(room.bed.plane), list(garbage.ownerless(room.bed.api, room.namespace))
    until = deadline + garbage.LONGEST_PAUSE_SECONDS
    if time.monotonic() > until or not garbage.is_backing_off(log, [one for _, one in ownerless]):
        return False
    if room.namespace not in room.bed.collected_late:
        room.bed.collected_late[room.namespace] = tuple(garbage.history(log, ownerless))
        room.bed.befallen[COLLECTED_LATE] += 1
    time.sleep(5.0)
    return True


def _at_rest(bed: Bed) -> list[str]:
    """Writes of the operator when there is nothing to do: none."""
    before = len(bed.proxy.writes())
    time.sleep(REST_SECONDS)
    written = bed.proxy.writes()[before:]
    return [f"{len(written)} writes at rest: {[(one.method, one.path) for one in written[:5]]}"] * bool(written)


@contextlib.contextmanager
def _lies(bed: Bed) -> Iterator[list[str]]:
    """What statuses said against the contract of conditions, as a watch past the proxy sees them."""
    lies: list[str] = []
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(bed.api, lies, ended), daemon=True)
    watcher.start()
    try:
        yield lies
    finally:
        ended.set()
        watcher.join()


def _watch(api: Api, lies: list[str], ended: threading.Event) -> None:
    while not ended.is_set():
        try:
            listed = api.get(MODELS)
            known = {one["metadata"]["uid"]: {**one, "kind": "ModelDeployment"} for one in listed["items"]}
            for event in api.watch(MODELS, listed["metadata"]["resourceVersion"], seconds=3):
                one = event["object"]
                lies += lies_of(known.get(one["metadata"]["uid"], {}), one)
                known[one["metadata"]["uid"]] = one
        except (ApiError, OSError):
            time.sleep(0.2)


# ---------------------------------------------------------------------- people insist


def insistently(act: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Do it until it is done: the API server may be away, and a namespace may be on its way out."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            act()
        except (OSError, BedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _made_namespace(api: Api, name: str) -> None:
    def make() -> None:
        try:
            api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        except ApiError as error:
            if error.status != 409:
                raise
        api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")

    insistently(make)


def _gone_namespace(api: Api, name: str) -> None:
    def gone() -> bool:
        try:
            return is_gone(api, f"/api/v1/namespaces/{name}")
        except (OSError, ApiError):
            return False

    wait_until(f"end of namespace {name}", gone, (), PATIENCE_SECONDS)


def _named(action: object) -> str:
    said = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(action).__name__).lower()
    return f"{said} {getattr(action, 'status', '') or getattr(action, 'seconds', '')}".strip()


def _refusing() -> list[Manifest]:
    """An admission policy that refuses the operator's children in namespaces with the label."""
    rules = [
        {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [one]}
        for one in ("deployments", "services", "serviceaccounts", "networkpolicies")
    ]
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "refused-by-schedules"},
        "spec": {
            "matchConstraints": {"resourceRules": rules},
            "validations": [{"expression": "false", "message": "not today"}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "refused-by-schedules"},
        "spec": {
            "policyName": "refused-by-schedules",
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {REFUSED_LABEL: "yes"}}},
        },
    }
    return [policy, binding]

"""Pods that wait for a node while no operator runs: none is given one after the moment in the Lease."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.times import timestamp
from hermetic.objects.workloads.workload_kind import HOLD
from hermetic.plan.pod_gate import MOST_MODELS
from testbed.errors import ApiError, CannotRunError
from testbed.faults import Answer, Fault
from testbed.fleet import Pool, add_nodes, remove_nodes
from testbed.installation import wait_for
from testbed.programs import programs
from tests.controlplane.deployments import Deployments, admitted, failing
from tests.controlplane.sealed_cluster import (
    ATTESTATIONS,
    GPU_NODES,
    SealedCluster,
    a_finding,
    sealed,
    sealed_cluster,
)
from tests.scenarios import Manifest, a_baked_model

__all__ = ["sealed"]

pytestmark = pytest.mark.sampled(3, of="pods that wait while no operator runs")

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"
UNTIL, ENFORCED = "hermetic.dev/pods-until", "hermetic.dev/enforced-models"
POLICY = "hermetic-binding-gate"
LEASE_WRITE, STATUS_WRITE = r"/leases/hermetic$", r"/egressaudits/cluster/status"
CONFIRMED_SECONDS = 900
REPLICAS = {"replicas": GPU_NODES + 1}
GROUP = {"accelerator": {"count": 1, "nodes": GPU_NODES + 1}}
"""What needs one node more than there are: replicas of one node each, and one replica of several nodes."""
BOTH = pytest.mark.parametrize("spec", [REPLICAS, GROUP], ids=["replicas", "group"])
LATE = Pool("real")
"""An attested pool without a node: the one that the autoscaler adds comes late."""


@pytest.fixture(scope="module")
def sealed_module(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[SealedCluster]:
    """A cluster in which every model must be proven, as it is by default."""
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    minimum = {"minimumEnforcement": "Enforce"}
    folder = tmp_path_factory.mktemp("binding")
    with sealed_cluster(folder, component_logs, proxied=True, isolation=minimum) as cluster:
        yield cluster


@pytest.fixture
def home(sealed: SealedCluster) -> Iterator[Deployments]:
    """A namespace behind an open gate; the operator runs again afterwards, and late nodes are gone."""
    namespace = sealed.namespace()
    sealed.open_gate()
    yield namespace
    sealed.proxy.lift()
    late = [
        node for node in sealed.api.get("/api/v1/nodes")["items"] if node["metadata"]["labels"]["agentpool"] == "real"
    ]
    remove_nodes(sealed.api, [node["metadata"]["name"] for node in late])
    sealed.api.delete(f"/api/v1/namespaces/{namespace.namespace}")
    if sealed.operator.component.exit_code is not None:
        sealed.operator.start()


def a_waiting_model(sealed: SealedCluster, home: Deployments, spec: Mapping[str, Any] = REPLICAS) -> Manifest:
    """A pod that has no node yet, of a model whose other pods use every node; the Lease names the model."""
    home.apply(a_baked_model("llama", **{"endpoint": {}, "drainSeconds": 5, **spec}))
    home.wait("all nodes used", lambda: len(running(home)) == GPU_NODES and len(waiting(home)) == 1)
    sealed.wait("the Lease to name it", lambda: f"{home.namespace}/llama" in annotations(sealed)[ENFORCED].split(","))
    (pod,) = waiting(home)
    return pod


def running(home: Deployments) -> list[Manifest]:
    return [pod for pod in home.pods("llama") if pod["status"].get("phase") == "Running"]


def waiting(home: Deployments) -> list[Manifest]:
    return [pod for pod in home.pods("llama") if pod["status"].get("phase") == "Pending"]


def annotations(sealed: SealedCluster) -> dict[str, str]:
    written: dict[str, str] = sealed.api.get(LEASE)["metadata"].get("annotations") or {}
    return written


def until_before(sealed: SealedCluster, latest: str) -> str:
    """The moment in the Lease, where it is before `latest`; else ""."""
    until = annotations(sealed)[UNTIL]
    return until if until < latest else ""


def scheduling_message(home: Deployments) -> str:
    """What the scheduler says of the pod that waits: of its last attempt; "" between a pod and its replacement."""
    conditions = (condition for pod in waiting(home) for condition in pod["status"].get("conditions") or ())
    return next((condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"), "")


def bind(home: Deployments, pod: Manifest, node: str, *, resource: str = "", **metadata: Any) -> None:
    """Ask the API server for the node as a scheduler does."""
    name = pod["metadata"]["name"]
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    manifest = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata}, "target": target}
    home.api.create(f"/api/v1/namespaces/{home.namespace}/{resource or f'pods/{name}/binding'}", manifest)


def end_the_moment(sealed: SealedCluster) -> None:
    """Write a moment that is over into the Lease, as if time had passed; no operator may run."""
    over = timestamp(datetime.now(UTC) - timedelta(seconds=1))
    sealed.api.merge(LEASE, {"metadata": {"annotations": {UNTIL: over}}})


@BOTH
def test_evidence_that_ends_while_no_operator_runs_leaves_the_waiting_pod_without_a_node(
    sealed: SealedCluster, home: Deployments, spec: dict[str, Any]
) -> None:
    """Nothing is written by hand: the evidence ends, and the autoscaler's node comes after that."""
    pod = a_waiting_model(sealed, home, spec)
    latest = timestamp(datetime.now(UTC) + timedelta(minutes=1))
    sealed.attest(lasts=timedelta(seconds=25))
    end = sealed.wait("the Lease to have its end", lambda: until_before(sealed, latest))
    assert end == sealed.status["evidence"]["azure"]["expiresAt"]
    assert [waiting_pod["metadata"]["uid"] for waiting_pod in waiting(home)] == [pod["metadata"]["uid"]]
    sealed.operator.stop(signal.SIGKILL)

    wait_for("the end of the evidence", lambda: datetime.now(UTC) > datetime.fromisoformat(end))
    (node,) = add_nodes(sealed.api, LATE, 1)
    wait_for("the scheduler to be refused", lambda: POLICY in scheduling_message(home))
    assert f"isolation is not proven any more since {end}" in scheduling_message(home)
    assert f"'{node}'" not in str(waiting(home)), "no node was given"

    other = {"labels": {"app": "llama-other"}}
    template = {"metadata": other, "spec": {"containers": [{"name": "other", "image": "other"}]}}
    template["spec"]["tolerations"] = [{"operator": "Exists"}]
    deployments = f"/apis/apps/v1/namespaces/{home.namespace}/deployments"
    sealed.api.create(
        deployments,
        {
            "metadata": {"name": "llama-other"},
            "spec": {"selector": {"matchLabels": other["labels"]}, "template": template},
        },
    )
    wait_for(
        "pods of others start", lambda: sealed.api.get(f"{deployments}/llama-other")["status"].get("readyReplicas")
    )
    assert len(running(home)) == GPU_NODES

    sealed.operator.start()
    home.wait("removed by the operator", lambda: not waiting(home))
    sealed.attest()
    home.until("llama", "Serving", timeout=120)


@BOTH
def test_waiting_pod_is_given_a_node_while_the_moment_is_not_over(
    sealed: SealedCluster, home: Deployments, spec: dict[str, Any]
) -> None:
    a_waiting_model(sealed, home, spec)
    sealed.operator.stop(signal.SIGKILL)
    add_nodes(sealed.api, LATE, 1)
    wait_for("it starts", lambda: len(running(home)) == GPU_NODES + 1)


def test_no_client_forges_the_time_of_a_binding(sealed: SealedCluster, home: Deployments) -> None:
    """The server ignores or completes the times that a client writes, with and without a pod in the path."""
    pod = a_waiting_model(sealed, home)
    sealed.operator.stop(signal.SIGKILL)
    end_the_moment(sealed)
    past = "2001-01-01T00:00:00Z"
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "time": past, "fieldsType": "FieldsV1"}
    forgeries: list[dict[str, Any]] = [
        {},
        {"creationTimestamp": past},
        {"managedFields": [{**entry, "fieldsV1": {"f:target": {}}}]},
        {"managedFields": [{**entry, "fieldsV1": {"f:target": {"f:name": {}, "f:kind": {}, "f:apiVersion": {}}}}]},
        {"managedFields": [{}]},
        {"managedFields": []},
    ]
    node = sealed.nodes[0]
    wait_for("the policy to know", lambda: is_refused(home, pod, node))
    for resource in ("", "bindings"):
        for forged in forgeries:
            with pytest.raises(ApiError, match=POLICY):
                bind(home, pod, node, resource=resource, **forged)


def is_refused(home: Deployments, pod: Manifest, node: str) -> bool:
    try:
        bind(home, pod, node, resource="", uid="00000000-0000-0000-0000-000000000000")  # of no pod: it binds none
    except ApiError as error:
        return POLICY in str(error)
    return False


@pytest.mark.parametrize("names", ["longest list", "namespace", "everything"])
def test_coarse_and_long_lists_of_models_refuse_the_same(sealed: SealedCluster, home: Deployments, names: str) -> None:
    pod = a_waiting_model(sealed, home)
    sealed.operator.stop(signal.SIGKILL)
    model_keys = [f"n{number:062}/m{number:045}" for number in range(MOST_MODELS - 1)]
    lists = {
        "longest list": ",".join([*model_keys, f"{home.namespace}/llama"]),
        "namespace": f"{home.namespace}/*",
        "everything": "*",
    }
    sealed.api.merge(LEASE, {"metadata": {"annotations": {ENFORCED: lists[names], UNTIL: ""}}})
    wait_for("it is refused", lambda: is_refused(home, pod, sealed.nodes[0]))
    sealed.api.merge(LEASE, {"metadata": {"annotations": {ENFORCED: ",".join(model_keys)}}})
    add_nodes(sealed.api, LATE, 1)
    wait_for("a pod of no listed model starts", lambda: len(running(home)) == GPU_NODES + 1)


@BOTH
def test_gate_that_closes_refuses_a_node_before_the_operator_removes_the_pod(
    sealed: SealedCluster, home: Deployments, spec: dict[str, Any]
) -> None:
    """Also where the operator does not get round to it: its right to write what runs the pods is gone."""
    a_waiting_model(sealed, home, spec)
    role = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/hermetic-operator-models"
    binding = sealed.api.get(role)
    sealed.api.delete(role)
    try:
        sealed.attest(a_finding("Fail", "natgw-inventory"), says={"verdict": "Fail"})
        sealed.wait("the Lease to say so", lambda: not annotations(sealed)[UNTIL])
        add_nodes(sealed.api, LATE, 1)
        wait_for("the scheduler to be refused", lambda: POLICY in scheduling_message(home))
        assert len(running(home)) == GPU_NODES
    finally:
        metadata = {"name": binding["metadata"]["name"], "labels": binding["metadata"].get("labels", {})}
        sealed.api.create(role.rpartition("/")[0], {**binding, "metadata": metadata})
    home.wait("removed by the operator", lambda: not waiting(home), timeout=120)


def kill_at_write(sealed: SealedCluster, path: str, *, after: bool) -> None:
    """Import a Fail; the operator's process is killed exactly at its first write to the path."""
    killed = threading.Event()

    def kill() -> None:
        sealed.operator.stop(signal.SIGKILL)
        killed.set()

    # After an evaluation of everything that is there: nothing else is left to write.
    name = sealed.attest()
    sealed.wait("it to count", lambda: name in sealed.condition("AttestationAccepted").get("message", ""))
    sealed.at_rest()
    sealed.proxy.at_write(1, kill, path, after=after)
    sealed.attest(a_finding("Fail", "natgw-inventory"), says={"verdict": "Fail"})
    wait_for("the kill", killed.is_set)


def test_operator_killed_between_the_two_writes_leaves_a_lease_that_gives_no_node(
    sealed: SealedCluster, home: Deployments
) -> None:
    """The Lease is closed, and the status still says Pass: an autoscaler's node starts nothing meanwhile."""
    a_waiting_model(sealed, home)
    before = {pod["metadata"]["uid"] for pod in running(home)}
    kill_at_write(sealed, STATUS_WRITE, after=False)
    assert annotations(sealed)[UNTIL] == ""
    assert sealed.status["verdict"] == "Pass"

    add_nodes(sealed.api, LATE, 1)
    wait_for("the scheduler to be refused", lambda: POLICY in scheduling_message(home))
    assert not admitted(home)
    assert {pod["metadata"]["uid"] for pod in running(home)} == before

    sealed.operator.start()
    home.wait("removed by the operator", lambda: not waiting(home), timeout=90)
    sealed.until("Fail")
    home.until("llama", "IsolationBroken")
    assert {pod["metadata"]["uid"] for pod in running(home)} == before


def test_operator_killed_after_the_status_where_the_lease_could_not_be_written_leaves_a_bounded_moment(
    sealed: SealedCluster, home: Deployments
) -> None:
    """The other order: the API server refuses the Lease, the status is written without it, and the process ends."""
    a_waiting_model(sealed, home)
    before = {pod["metadata"]["uid"] for pod in running(home)}
    sealed.proxy.inject(Fault(Answer(500), ("PUT",), LEASE_WRITE))
    kill_at_write(sealed, STATUS_WRITE, after=True)
    assert sealed.status["verdict"] == "Fail"
    moment = datetime.fromisoformat(annotations(sealed)[UNTIL])
    assert moment - datetime.now(UTC) <= timedelta(seconds=CONFIRMED_SECONDS)

    end_the_moment(sealed)
    wait_for("no pod is admitted", lambda: not admitted(home))
    add_nodes(sealed.api, LATE, 1)
    wait_for("the scheduler to be refused", lambda: POLICY in scheduling_message(home))
    sealed.proxy.lift()
    sealed.operator.start()
    home.wait("removed by the operator", lambda: not waiting(home), timeout=90)
    wait_for("the Lease to say so", lambda: annotations(sealed)[UNTIL] == "")
    assert {pod["metadata"]["uid"] for pod in running(home)} == before


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_operator_killed_at_its_write_of_the_lease_starts_no_pod_once_it_runs_again(
    sealed: SealedCluster, home: Deployments, after: bool
) -> None:
    """Before: neither says so yet, and the moment of the last evaluation bounds it. After: the answer was lost."""
    a_waiting_model(sealed, home)
    before = {pod["metadata"]["uid"] for pod in running(home)}
    kill_at_write(sealed, LEASE_WRITE, after=after)
    assert sealed.status["verdict"] == "Pass"
    until = annotations(sealed)[UNTIL]
    assert not until or datetime.fromisoformat(until) <= datetime.now(UTC) + timedelta(seconds=CONFIRMED_SECONDS)

    sealed.operator.start()
    home.wait("removed by the operator", lambda: not waiting(home), timeout=90)
    add_nodes(sealed.api, LATE, 1)
    home.until("llama", "IsolationBroken")
    assert {pod["metadata"]["uid"] for pod in running(home)} == before


def test_pod_that_holds_a_rolling_update_gets_no_node_while_the_lease_cannot_be_written(
    sealed: SealedCluster, home: Deployments
) -> None:
    """The policies admit pods until the moment in the Lease, so the controller makes one of the holding template."""
    model = a_baked_model("llama", endpoint={}, drainSeconds=5, replicas=2)
    home.apply(model)
    home.until("llama", "Serving")
    sealed.proxy.inject(Fault(Answer(500), ("PUT",), LEASE_WRITE))
    home.apply(failing({**model, "spec": {**model["spec"], "drainSeconds": 6}}, "image-pull-back-off"))
    home.wait("one of the new template", lambda: (len(running(home)), len(waiting(home))) == (1, 1))
    sealed.attest(a_finding("Fail", "natgw-inventory"), says={"verdict": "Fail"})
    home.wait("it is held", lambda: [pod["spec"]["schedulerName"] for pod in waiting(home)] == [HOLD])
    (held_pod,) = waiting(home)
    assert annotations(sealed)[UNTIL], "the Lease still admits pods"

    sealed.proxy.lift()
    sealed.wait("the Lease to say so", lambda: not annotations(sealed)[UNTIL])
    home.until("llama", "IsolationBroken")
    assert [pod["metadata"]["uid"] for pod in waiting(home)] == [held_pod["metadata"]["uid"]]
    assert "nodeName" not in held_pod["spec"]
    assert not [condition for pod in waiting(home) for condition in pod["status"].get("conditions") or ()]

    sealed.attest()
    home.apply(model)
    home.until("llama", "Serving", timeout=120)
    assert held_pod["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in home.pods("llama")}


def test_pod_that_has_a_node_when_the_moment_passes_starts_without_an_operator_and_is_removed_with_one(
    sealed: SealedCluster, home: Deployments
) -> None:
    """Nothing asks the API server for leave between a pod's node and its start: the bound is that no node is given."""
    home.apply(failing(a_baked_model("llama", endpoint={}, drainSeconds=5, replicas=2), "image-pull-back-off"))
    home.wait("both have a node", lambda: [bool(pod["spec"].get("nodeName")) for pod in waiting(home)] == [True] * 2)
    sealed.wait("the Lease to name it", lambda: f"{home.namespace}/llama" in annotations(sealed)[ENFORCED].split(","))
    sealed.operator.stop(signal.SIGKILL)
    end_the_moment(sealed)
    wait_for("no pod is admitted", lambda: not admitted(home))
    started, _ = waiting(home)
    finish_pull(sealed, home, started)
    assert [pod["metadata"]["uid"] for pod in running(home)] == [started["metadata"]["uid"]]

    for attestation in sealed.api.get(ATTESTATIONS)["items"]:
        sealed.api.delete(f"{ATTESTATIONS}/{attestation['metadata']['name']}")
    sealed.operator.start()
    sealed.wait("it to run", sealed.operator.ready)
    home.wait("the other is removed", lambda: not waiting(home), timeout=10)
    assert [pod["metadata"]["uid"] for pod in running(home)] == [started["metadata"]["uid"]]


def finish_pull(sealed: SealedCluster, home: Deployments, pod: Manifest) -> None:
    """What its kubelet writes when the image is there."""
    now = timestamp(datetime.now(UTC))
    statuses = [
        {**status, "ready": True, "started": True, "state": {"running": {"startedAt": now}}}
        for status in pod["status"]["containerStatuses"]
    ]
    path = f"/api/v1/namespaces/{home.namespace}/pods/{pod['metadata']['name']}/status"
    sealed.api.merge(path, {"status": {"phase": "Running", "containerStatuses": statuses}})


@pytest.mark.parametrize("written", ["Lease", "EgressAudit", "Deployment"])
def test_operator_that_is_killed_after_a_write_of_the_closing_starts_no_pod(
    sealed: SealedCluster, home: Deployments, written: str
) -> None:
    """A tenant deletes the model and creates it again meanwhile: it is another object, and starts nothing either."""
    a_waiting_model(sealed, home)
    before = {pod["metadata"]["uid"] for pod in running(home)}
    deployment = f"/apis/apps/v1/namespaces/{home.namespace}/deployments/llama"
    moments: dict[str, Callable[[], bool]] = {
        "Lease": lambda: not annotations(sealed)[UNTIL],
        "EgressAudit": lambda: sealed.status["verdict"] == "Fail",
        "Deployment": lambda: sealed.api.get(deployment)["spec"]["replicas"] == GPU_NODES,
    }
    sealed.attest(a_finding("Fail", "natgw-inventory"), says={"verdict": "Fail"})
    sealed.wait("the write", moments[written])
    sealed.operator.stop(signal.SIGKILL)
    sealed.operator.start()
    home.wait("removed by the operator", lambda: not waiting(home), timeout=90)
    add_nodes(sealed.api, LATE, 1)
    home.until("llama", "IsolationBroken")
    assert {pod["metadata"]["uid"] for pod in running(home)} == before

    sealed.api.delete(f"{home.collection}/llama")
    home.wait("no pod is left", lambda: not home.pods("llama"))
    home.apply(a_baked_model("llama", endpoint={}, drainSeconds=5))
    home.until("llama", "IsolationBroken")
    assert home.pods("llama") == []

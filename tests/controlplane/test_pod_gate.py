"""Pods behind a closed gate: none starts that takes the place of another, with the operator and without it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.errors import ApiError, CannotRunError
from testbed.installation import wait_for
from testbed.programs import programs
from tests.controlplane.deployments import Deployments, admitted
from tests.controlplane.sealed_cluster import SealedCluster, a_finding, sealed, sealed_cluster
from tests.scenarios import Manifest, a_baked_model, reporting

__all__ = ["sealed"]

pytestmark = pytest.mark.sampled(3, of="the gate of each pod")

LEASE = "/apis/coordination.k8s.io/v1/namespaces/hermetic-system/leases/hermetic"
UNTIL, UNPROVEN = "hermetic.dev/pods-until", "hermetic.dev/unproven-pods"
ENFORCED = "hermetic.dev/enforced-models"
OPEN = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")


@pytest.fixture(scope="module")
def sealed_module(tmp_path_factory: pytest.TempPathFactory, component_logs: dict[str, Path]) -> Iterator[SealedCluster]:
    """A cluster in which every model must be proven, as it is by default."""
    try:
        programs("kubernetes")
    except CannotRunError as reason:
        pytest.skip(str(reason))
    floor = {"minimumEnforcement": "Enforce"}
    with sealed_cluster(tmp_path_factory.mktemp("gated"), component_logs, isolation=floor) as cluster:
        yield cluster


@pytest.fixture
def serving(sealed: SealedCluster) -> Iterator[Deployments]:
    """A model of one pod that serves behind an open gate."""
    home = sealed.namespace()
    sealed.open_gate()
    home.apply(a_baked_model("llama", endpoint={}, drainSeconds=5))
    home.until("llama", "Serving")
    yield home
    sealed.api.delete(f"/api/v1/namespaces/{home.namespace}")


def annotations(sealed: SealedCluster) -> dict[str, str]:
    lease_annotations: dict[str, str] = sealed.api.get(LEASE)["metadata"].get("annotations") or {}
    return lease_annotations


def live_pods(home: Deployments) -> list[Manifest]:
    return [pod for pod in home.pods("llama") if "deletionTimestamp" not in pod["metadata"]]


def replaced(home: Deployments) -> Any:
    """Delete the pod, and return what the ReplicaSet says of its refused successor, or the successor."""
    (before,) = live_pods(home)
    home.api.delete(f"/api/v1/namespaces/{home.namespace}/pods/{before['metadata']['name']}")
    # Not with the operator, which one of the tests has stopped.
    return wait_for("a successor or a refusal", lambda: successor(home, before) or refusal(home))


def successor(home: Deployments, before: Manifest) -> Manifest | None:
    return next((pod for pod in live_pods(home) if pod["metadata"]["uid"] != before["metadata"]["uid"]), None)


def refusal(home: Deployments) -> str:
    sets = home.api.get(f"/apis/apps/v1/namespaces/{home.namespace}/replicasets")["items"]
    conditions = [
        condition for replica_set in sets for condition in replica_set.get("status", {}).get("conditions") or ()
    ]
    return next((condition["message"] for condition in conditions if condition["type"] == "ReplicaFailure"), "")


def test_a_replacement_waits_for_the_proof_and_starts_with_it(sealed: SealedCluster, serving: Deployments) -> None:
    assert annotations(sealed)[UNTIL] > datetime.now(UTC).isoformat()
    sealed.attest(OPEN, says={"verdict": "Fail"})
    serving.until("llama", "IsolationBroken")
    sealed.wait("the Lease to say so", lambda: not annotations(sealed)[UNTIL])

    assert "isolation is not proven: no pod of a model starts" in replaced(serving)
    assert live_pods(serving) == []

    sealed.attest()
    serving.until("llama", "Serving", timeout=90)
    assert len(live_pods(serving)) == 1


def test_evidence_that_ends_while_no_operator_runs_lets_no_pod_in(sealed: SealedCluster, serving: Deployments) -> None:
    """The API server compares: the moment in the Lease, and the pod's own creation time."""
    assert sealed.operator.stop() == 0
    try:
        assert isinstance(replaced(serving), dict), "the evidence still counts"
        over = (datetime.now(UTC) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        sealed.api.merge(LEASE, {"metadata": {"annotations": {UNTIL: over}}})
        wait_for("the end", lambda: not admitted(serving))
        assert f"isolation is not proven any more since {over}" in replaced(serving)
        sealed.api.delete(LEASE)
        wait_for("no Lease", lambda: not admitted(serving))
    finally:
        sealed.operator.start()
    serving.until("llama", "Serving", timeout=120)


def test_a_creation_time_written_by_a_client_counts_for_nothing(sealed: SealedCluster, serving: Deployments) -> None:
    sealed.attest(OPEN, says={"verdict": "Fail"})
    sealed.wait("the Lease to say so", lambda: not annotations(sealed)[UNTIL])
    sealed.operator.stop()
    try:
        past = (datetime.now(UTC) - timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        sealed.api.merge(LEASE, {"metadata": {"annotations": {UNTIL: past}}})
        wait_for("the end", lambda: not admitted(serving))
        labels = {"hermetic.dev/modeldeployment": "llama"}
        forged = {"metadata": {"name": "forged", "labels": labels, "creationTimestamp": "2020-01-01T00:00:00Z"}}
        container = {"name": "x", "image": "x"}
        with pytest.raises(ApiError, match="hermetic-pod-gate"):
            serving.api.create(
                f"/api/v1/namespaces/{serving.namespace}/pods", {**forged, "spec": {"containers": [container]}}
            )
    finally:
        sealed.operator.start()


def test_availability_first_lets_replacements_in_and_status_says_so(
    sealed: SealedCluster, serving: Deployments
) -> None:
    operator, before = sealed.operator, sealed.operator.config_file.read_text()
    admitting = {**yaml.safe_load(before), "isolation": {"minimumEnforcement": "Enforce", "replacements": "Admit"}}
    operator.stop()
    operator.config_file.write_text(yaml.safe_dump(admitting))
    try:
        operator.start()
        sealed.attest(OPEN, says={"verdict": "Fail"})
        condition = serving.until("llama", "IsolationBroken")
        assert condition["message"].endswith(
            "; the pods that run keep serving, and pods that end are replaced: `isolation.replacements` is Admit"
        )
        assert annotations(sealed)[UNPROVEN] == "*"
        assert isinstance(replaced(serving), dict), "a pod and no refusal"
    finally:
        operator.stop()
        operator.config_file.write_text(before)
        operator.start()


def test_a_model_that_asks_for_a_proof_waits_where_the_namespace_demands_none(
    sealed: SealedCluster, serving: Deployments
) -> None:
    """And its neighbour that asks for none does not; no label or annotation of the pod makes a difference."""
    operator, before = sealed.operator, sealed.operator.config_file.read_text()
    operator.stop()
    operator.config_file.write_text(
        yaml.safe_dump({**yaml.safe_load(before), "isolation": {"minimumEnforcement": "Off"}})
    )
    try:
        operator.start()
        strict = f"{serving.namespace}/llama"
        sealed.wait("the Lease to name it", lambda: strict in annotations(sealed).get(ENFORCED, "").split(","))
        serving.apply(reporting(a_baked_model("loose", endpoint={})))
        serving.until("loose", "ServingNotEnforced")
        assert annotations(sealed)[UNPROVEN] == "*"
        assert f"{serving.namespace}/loose" not in annotations(sealed)[ENFORCED].split(",")

        sealed.attest(OPEN, says={"verdict": "Fail"})
        serving.until("llama", "IsolationBroken")
        sealed.wait("the Lease to say so", lambda: not annotations(sealed)[UNTIL])
        assert "isolation is not proven: no pod of a model starts" in replaced(serving)
        (other,) = serving.pods("loose")
        serving.api.delete(f"/api/v1/namespaces/{serving.namespace}/pods/{other['metadata']['name']}")
        uids = {other["metadata"]["uid"]}
        sealed.wait("its successor", lambda: {pod["metadata"]["uid"] for pod in serving.pods("loose")} - uids)
    finally:
        operator.stop()
        operator.config_file.write_text(before)
        operator.start()

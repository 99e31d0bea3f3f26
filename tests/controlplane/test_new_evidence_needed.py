"""What an attestation no longer covers: nodes of other pools and subnets, and a newer Fail of a trusted key.

AKS labels nodes with their pool and subnet (learn.microsoft.com/azure/aks/use-labels). A cluster autoscaler or an
administrator adds a pool at any time after an audit.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hermetic.api.condition_updates import is_true
from hermetic.api.times import timestamp
from testbed.errors import ApiError
from testbed.fleet import Pool, add_nodes, node, remove_nodes
from testbed.installation import wait_for
from tests.attestations import COVERAGE, SUBNET, an_ed25519_key, public_pem_of
from tests.controlplane.deployments import Deployments, admitted, applied
from tests.controlplane.sealed_cluster import (
    ATTESTATIONS,
    GPU_NODES,
    SealedCluster,
    a_finding,
    sealed,
    sealed_module,
)
from tests.scenarios import a_baked_model

__all__ = ["sealed", "sealed_module"]

pytestmark = pytest.mark.sampled(4, of="evidence that no longer covers a real API server's nodes")

SUBNET_LABEL = "kubernetes.azure.com/network-subnet"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/egressattestations.hermetic.dev"
CLOSED_WITHIN_SECONDS = 15
BURST = Pool("burst")
MOVED = Pool("system", "Standard_D16s_v5", taints=(), labels={SUBNET_LABEL: "other-nodes"})
OPEN = a_finding("Fail", "natgw-inventory", message="a NAT gateway is attached")


@pytest.fixture
def serving(sealed: SealedCluster) -> Iterator[Deployments]:
    """A model of one pod that serves behind an open gate."""
    home = sealed.namespace()
    sealed.open_gate()
    home.apply(a_baked_model("llama", endpoint={}, drainSeconds=5))
    home.until("llama", "Serving")
    yield home
    sealed.api.delete(f"/api/v1/namespaces/{home.namespace}")


def uids(home: Deployments) -> set[str]:
    return {pod["metadata"]["uid"] for pod in home.pods("llama")}


def restart(sealed: SealedCluster) -> None:
    """Stop the operator, start it, and wait until the new process has a verdict of its own."""
    sealed.operator.stop()
    sealed.operator.start()
    sealed.wait("a verdict", lambda: "hermetic_isolation_verdict{" in sealed.operator.metrics())


def brought(sealed: SealedCluster, *findings: dict[str, Any], **options: Any) -> str:
    """Apply an attestation beside those that are there, observed in a later second; returns its name."""
    others = {item["metadata"]["name"][:23] for item in sealed.api.get(ATTESTATIONS)["items"]}
    while (manifest := sealed.attestation(*findings, **options))["metadata"]["name"][:23] in others:
        time.sleep(0.1)  # two statements of the same second: neither is newer
    applied(sealed.api, ATTESTATIONS, manifest)
    return str(manifest["metadata"]["name"])


@pytest.mark.parametrize(
    ("pool", "unattested"),
    [(BURST, "the pool 'burst' is not in the attestation"), (MOVED, "the subnet 'other-nodes'")],
    ids=["new pool", "new subnet of an attested pool"],
)
def test_a_ready_node_that_no_audit_covered_closes_also_after_a_restart(
    pool: Pool, unattested: str, sealed: SealedCluster, serving: Deployments
) -> None:
    before = uids(serving)
    wait_for("a pod to be admitted", lambda: admitted(serving))
    nodes = add_nodes(sealed.api, pool)
    try:
        status = sealed.until("Unknown", "PoolNotAttested", timeout=CLOSED_WITHIN_SECONDS)
        wait_for("no pod to be admitted", lambda: not admitted(serving), timeout=CLOSED_WITHIN_SECONDS)
        assert nodes[0] in status["message"]
        assert unattested in status["message"]
        assert "hermetic audit --azure" in status["message"]
        assert uids(serving) == before, "the pods that run keep running"

        restart(sealed)
        sealed.until("Unknown", "PoolNotAttested")
        assert not admitted(serving)
    finally:
        remove_nodes(sealed.api, nodes)
    sealed.until("Pass", timeout=120)
    wait_for("a pod to be admitted", lambda: admitted(serving))


def test_a_new_pool_counts_once_an_attestation_lists_it(sealed: SealedCluster, serving: Deployments) -> None:
    nodes = add_nodes(sealed.api, BURST)
    try:
        sealed.until("Unknown", "PoolNotAttested")
        coverage = copy.deepcopy(COVERAGE)
        coverage["pools"].append({"name": BURST.name, "subnets": [SUBNET], "scaleSets": [], "nodeImage": ""})
        sealed.attest(says={"coverage": coverage})
        sealed.until("Pass", timeout=120)
        wait_for("a pod to be admitted", lambda: admitted(serving))
    finally:
        remove_nodes(sealed.api, nodes)


def test_an_attested_pool_that_grows_stays_a_pass(sealed: SealedCluster, serving: Deployments) -> None:
    announced = len(sealed.events("PoolNotAttested"))
    manifest = node(Pool("gpu"), GPU_NODES)
    name = manifest["metadata"]["name"]
    sealed.api.create("/api/v1/nodes", manifest)
    try:
        sealed.wait("the node", lambda: is_true(sealed.api.get(f"/api/v1/nodes/{name}"), "Ready"))
        newest = sealed.attest()
        sealed.wait(
            "an evaluation after it", lambda: newest in sealed.condition("AttestationAccepted").get("message", "")
        )
        assert sealed.status["verdict"] == "Pass"
        assert sealed.condition("NodesAttested")["status"] == "True"
        assert len(sealed.events("PoolNotAttested")) == announced
        # The API server reads the Lease through a cache.
        wait_for("a pod to be admitted", lambda: admitted(serving))
    finally:
        remove_nodes(sealed.api, [name])


def test_a_newer_fail_without_a_uid_closes_also_after_a_restart(sealed: SealedCluster, serving: Deployments) -> None:
    name = brought(sealed, OPEN, says={"verdict": "Fail"}, uid=None)
    status = sealed.until("Unknown", "AttestationContradicted", timeout=CLOSED_WITHIN_SECONDS)
    assert name in status["message"]
    assert "ScopeIncomplete" in status["message"]
    sealed.wait("its Event", lambda: any(name in event["note"] for event in sealed.events("AttestationRefused")))
    wait_for("no pod to be admitted", lambda: not admitted(serving), timeout=CLOSED_WITHIN_SECONDS)

    restart(sealed)
    sealed.until("Unknown", "AttestationContradicted")
    assert not admitted(serving)

    brought(sealed)
    sealed.until("Pass", timeout=120)
    wait_for("a pod to be admitted", lambda: admitted(serving))


def test_an_audit_without_a_listed_policy_file_closes_until_none_is_listed(
    sealed: SealedCluster, serving: Deployments
) -> None:
    with pytest.raises(ApiError, match="must be 'sha256:' and 64 lower-case hex digits"):
        sealed.apply_audit(policyDigests=["sha256:" + "0A" * 32])
    sealed.apply_audit(policyDigests=["sha256:" + "0a" * 32])
    status = sealed.until("Unknown", "AttestationRefused")
    assert "OtherPolicy: evaluated without a policy file" in status["message"]
    wait_for("no pod to be admitted", lambda: not admitted(serving))
    sealed.apply_audit(policyDigests=[])
    sealed.until("Pass")
    wait_for("a pod to be admitted", lambda: admitted(serving))


def test_fail_of_a_clock_three_hours_behind_closes_until_a_newer_pass_and_is_not_newer_when_created_again(
    sealed: SealedCluster, serving: Deployments
) -> None:
    """Two jump boxes: what the second one signs looks older than the Pass. Flux creates its object a second time."""
    fail = sealed.attestation(OPEN, age=timedelta(hours=3), says={"verdict": "Fail"})
    applied(sealed.api, ATTESTATIONS, fail)
    status = sealed.until("Unknown", "AttestationContradicted")
    assert "by the clock of its host, and first imported at" in status["message"]
    restart(sealed)
    sealed.until("Unknown", "AttestationContradicted")

    brought(sealed)
    sealed.until("Pass")
    sealed.api.delete(f"{ATTESTATIONS}/{fail['metadata']['name']}")
    applied(sealed.api, ATTESTATIONS, fail)
    stranger = brought(sealed, key=an_ed25519_key(9, "stranger"))
    sealed.wait("both to be read", lambda: stranger in refusals(sealed))
    assert sealed.status["verdict"] == "Pass"
    assert len(serving.pods("llama")) == 1


def test_key_that_is_replaced_while_the_gate_is_open_closes_nothing(
    sealed: SealedCluster, serving: Deployments
) -> None:
    """As docs/attestation.md says: trust the new key beside the old one, then end the old one."""
    successor = an_ed25519_key(7, "platform-next")
    (old,) = sealed.audit()["spec"]["trustedKeys"]
    new = {"name": successor.public.name, "publicKey": public_pem_of(successor.key)}
    began = time.time()
    sealed.apply_audit(trustedKeys=[old, new])
    name = brought(sealed, key=successor)
    sealed.wait("it to count", lambda: name in sealed.condition("AttestationAccepted").get("message", ""))
    ended = timestamp(datetime.now(UTC))
    sealed.apply_audit(trustedKeys=[{**old, "notAfter": ended}, new])
    sealed.until("Pass")
    wait_for("a second in which the key has ended", lambda: timestamp(datetime.now(UTC)) > ended)

    late = brought(sealed)
    sealed.wait("the old key to be refused", lambda: refusals(sealed).get(late) == "KeyExpired")
    assert sealed.status["verdict"] == "Pass"
    sealed.apply_audit(trustedKeys=[new])
    sealed.wait("it to be unknown", lambda: refusals(sealed).get(late) == "UnknownKey")
    assert sealed.until("Pass")
    wait_for("a pod to be admitted", lambda: admitted(serving))
    failed = [event for event in sealed.events("IsolationBroken") if seconds_of(event) > began]
    assert failed == []


def seconds_of(event: dict[str, Any]) -> float:
    """When the API server made the object."""
    return datetime.fromisoformat(event["metadata"]["creationTimestamp"]).timestamp()


def refusals(sealed: SealedCluster) -> dict[str, str]:
    """Reasons of the refused statements by name, as the status lists them."""
    return {refusal["name"]: refusal["reason"] for refusal in sealed.status.get("refusals", ())}


def refusal_events(sealed: SealedCluster, name: str) -> list[dict[str, Any]]:
    return [event for event in sealed.events("AttestationRefused") if name in event.get("note", "")]


def test_refused_statement_is_named_beside_the_one_that_counts_with_one_event_across_restarts(
    sealed: SealedCluster, serving: Deployments
) -> None:
    name = brought(sealed, uid=None)
    sealed.wait("its Event", lambda: refusal_events(sealed, name))
    assert sealed.until("Pass")["refusals"] == [{"name": name, "reason": "ScopeIncomplete"}]
    restart(sealed)
    later = brought(sealed, uid=None)
    sealed.wait("an Event of the new process", lambda: refusal_events(sealed, later))
    (event,) = refusal_events(sealed, name)
    assert "series" not in event
    assert list(refusals(sealed)) == [later, name]
    assert len(serving.pods("llama")) == 1


def test_definition_of_attestations_that_is_removed_closes_until_it_and_new_evidence_are_back(
    sealed: SealedCluster, serving: Deployments
) -> None:
    """Its objects go with it. The same process goes on, and watches again once the definition is served."""
    before, process = uids(serving), sealed.operator.component.pid
    definition = sealed.api.get(DEFINITION)
    sealed.api.delete(DEFINITION)
    try:
        sealed.until("Unknown")
        wait_for("no pod to be admitted", lambda: not admitted(serving))
        assert uids(serving) == before, "the pods that run keep running"
    finally:
        wait_for("the definition to be gone", lambda: not is_served(sealed))
        metadata = {
            key: definition["metadata"][key]
            for key in ("name", "labels", "annotations")
            if key in definition["metadata"]
        }
        sealed.api.create(DEFINITION.rpartition("/")[0], {**definition, "metadata": metadata, "status": None})
        wait_for("the definition to be served", lambda: is_served(sealed))
    sealed.attest()
    sealed.until("Pass", timeout=120)
    wait_for("a pod to be admitted", lambda: admitted(serving))
    assert sealed.operator.component.pid == process


def is_served(sealed: SealedCluster) -> bool:
    """Whether the API server knows attestations at this moment."""
    try:
        sealed.api.get(ATTESTATIONS)
    except ApiError:
        return False
    return True

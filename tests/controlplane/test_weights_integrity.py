"""Deployments whose weights are verified, on a real API server with every admission policy: written once, then left."""

from __future__ import annotations

from typing import Any

from testbed.api import Api
from testbed.controlplane import ControlPlane
from testbed.installation import OperatorProcess
from testbed.kubectl import Kubectl
from tests.controlplane.deployments import Deployments
from tests.controlplane.operator_fixtures import StartOperator
from tests.controlplane.write_counts import AuditLog
from tests.scenarios import Manifest, a_share_model, changed, reporting

ROOT = f"sha256:{'5e' * 32}"
OLD, NEW = (f"contoso.azurecr.io/hermetic@sha256:{digit * 64}" for digit in "ab")


def unpinned(name: str, **spec: Any) -> Manifest:
    return reporting(changed(a_share_model(name), endpoint={}, **spec))


def pinned() -> Manifest:
    manifest = unpinned("llama")
    manifest["spec"]["weights"]["integrity"] = {"digest": ROOT}
    return manifest


def verification(live: Manifest | None) -> dict[str, Any]:
    containers = (live or {}).get("spec", {}).get("template", {}).get("spec", {}).get("initContainers") or []
    return next((container for container in containers if container["name"] == "verify-weights"), {})


def test_a_newer_verifier_restarts_nothing_and_a_dropped_one_is_replaced(
    start_operator: StartOperator, api: Api, kubectl: Kubectl, namespace: str, controlplane: ControlPlane
) -> None:
    def following(operator: OperatorProcess) -> Deployments:
        return Deployments(api, kubectl, namespace, operator)

    first = start_operator(integrity={"verifiers": [OLD]})
    before = following(first)
    before.apply(pinned())
    live = before.wait("the Deployment", lambda: before.workload("llama"))
    assert verification(live)["image"] == OLD
    before.until("llama", "IntegrityPending", "WeightsVerified")
    first.stop()

    log = AuditLog.from_now_on(controlplane.audit_log, namespace)
    second = start_operator(integrity={"verifiers": [NEW, OLD]})
    after = following(second)
    after.until("llama", "IntegrityPending", "WeightsVerified")
    assert verification(after.workload("llama"))["image"] == OLD
    # its pods may have gone on meanwhile, which the status says
    assert not [write for write in log.writes() if write != "modeldeployments/status"]
    second.stop()

    third = start_operator(integrity={"verifiers": [NEW]})
    last = following(third)
    last.wait("the new image", lambda: verification(last.workload("llama")).get("image") == NEW)


def test_a_share_model_is_refused_under_the_default_configuration_until_a_verifier_is_named(
    start_operator: StartOperator, api: Api, kubectl: Kubectl, namespace: str, controlplane: ControlPlane
) -> None:
    lowered = start_operator()
    running = Deployments(api, kubectl, namespace, lowered)
    running.apply(unpinned("ran-before"))
    running.until("ran-before", "IntegrityNotChecked", "WeightsVerified")
    before = running.wait("its Deployment", lambda: running.workload("ran-before"))
    lowered.stop()

    log = AuditLog.from_now_on(controlplane.audit_log, namespace)
    default = start_operator(integrity={})
    refusing = Deployments(api, kubectl, namespace, default)
    refusing.until("ran-before", "VerifierNotConfigured")
    refusing.apply(unpinned("ran-before", replicas=2), unpinned("llama"))
    ready = refusing.until("llama", "VerifierNotConfigured")
    assert "`integrity.verifiers`" in ready["message"]
    refusing.until("ran-before", "VerifierNotConfigured")
    assert set(log.writes()) <= {"modeldeployments/status"}
    workload = refusing.workload("ran-before")
    assert workload is not None
    assert (workload["metadata"]["uid"], workload["spec"]) == (before["metadata"]["uid"], before["spec"])
    default.stop()

    named = Deployments(api, kubectl, namespace, start_operator(integrity={"verifiers": [NEW]}))
    named.apply(pinned())
    live = named.wait("the Deployment", lambda: named.workload("llama"))
    assert verification(live)["image"] == NEW


def test_a_deployment_that_pins_nothing_gets_no_pod(
    start_operator: StartOperator, api: Api, kubectl: Kubectl, namespace: str
) -> None:
    deployments = Deployments(api, kubectl, namespace, start_operator(integrity={"verifiers": [NEW]}))
    deployments.apply(unpinned("llama"))
    ready = deployments.until("llama", "IntegrityNotPinned")
    assert "weights.integrity.digest" in ready["message"]
    assert deployments.workload("llama") is None
    deployments.apply(pinned())
    live = deployments.wait("the Deployment", lambda: deployments.workload("llama"))
    assert verification(live)["args"][2:4] == ["--digest", ROOT]

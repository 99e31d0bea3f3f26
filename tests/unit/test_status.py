"""The status: conditions that people, kubectl and Flux can trust, whatever the snapshot looks like."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hermetic.api.modeldeployment_status import ModelDeploymentStatus
from hermetic.api.reasons import Reason
from hermetic.engines.vllm import WITHOUT_A_KEY
from hermetic.plan.api_rejections import ApiRejection
from hermetic.plan.gate_results import Blocks
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import same_status, status, status_unreadable
from hermetic.plan.writes import Plan
from tests.renderings import RENDERINGS
from tests.scenarios import DIGEST, a_baked_model, a_share_model, an_sglang_model, changed, reporting
from tests.snapshots import (
    NOW,
    a_snapshot,
    addressed,
    carried_out,
    children_of,
    conditions,
    evidence,
    owner_of,
    reporting_of,
    serving,
    spec_of,
)

LATER = NOW + timedelta(minutes=5)


def status_of(manifest: dict[str, Any], snapshot: ClusterSnapshot, *refusals: ApiRejection, now=NOW) -> dict[str, Any]:
    """What is said after one reconcile of this snapshot, plan and all."""
    spec = spec_of(manifest)
    decided = plan(spec, snapshot, now)
    return status(spec, carried_out(snapshot, decided), decided, refusals, now)


def a_running_snapshot(manifest: dict[str, Any], replicas: int = 1, **facts: Any) -> ClusterSnapshot:
    snapshot = a_snapshot(owner_of(manifest), children=children_of(manifest), **facts)
    snapshot = serving(snapshot, replicas)
    return addressed(snapshot, "10.13.76.40") if "internalLoadBalancer" in manifest["spec"]["endpoint"] else snapshot


def with_condition(snapshot: ClusterSnapshot, kind: str, **fields: Any) -> ClusterSnapshot:
    """The same snapshot, whose status says this already."""
    known_condition = {"type": kind, "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "", **fields}
    return replace(snapshot, status={"conditions": [known_condition]})


def truth(model_status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {kind: (c["status"], c["reason"]) for kind, c in conditions(model_status).items()}


# ---------------------------------------------------------------------- the ways of Ready


def test_everything_that_holds_is_ready_with_an_endpoint():
    model_status = status_of(a_share_model(), a_running_snapshot(a_share_model()))
    assert truth(model_status) == {
        "Ready": ("True", "Serving"),
        "ImagesPinned": ("True", "PinnedByDigest"),
        "WeightsVerified": ("Unknown", "IntegrityNotChecked"),
        "AcceleratorsHealthy": ("Unknown", "PreflightNotRun"),
        "IsolationVerified": ("True", "IsolationProven"),
        "EndpointPrivate": ("True", "PrivateAddress"),
        "Available": ("True", "Serving"),
    }
    assert model_status["endpoint"] == {"url": "http://10.13.76.40:8000/v1", "address": "10.13.76.40"}
    assert model_status["replicas"] == 1
    assert model_status["selector"] == "hermetic.dev/modeldeployment=llama"
    assert model_status["plan"] == {"engine": "vLLM", "tensorParallelSize": 1, "startupBudgetSeconds": 1200}


def test_pods_that_do_not_serve_yet_count_as_replicas():
    """The scale subresource gives this number to autoscalers, which multiply it: with the serving ones alone an
    autoscaler would remove the pods that are loading (k8s.io/kubernetes, replica_calculator.go)."""
    model = a_share_model(replicas=3)
    loading = serving(a_running_snapshot(model), 3, availableReplicas=2)
    assert status_of(model, loading)["replicas"] == 3
    assert status_of(model, serving(a_running_snapshot(model), 3))["replicas"] == 3


def test_new_deployment_is_reconciling_with_every_condition_said():
    model_status = status_of(a_share_model(), a_snapshot())
    assert truth(model_status) == {
        "Ready": ("False", "Starting"),
        "Reconciling": ("True", "Starting"),
        "ImagesPinned": ("True", "PinnedByDigest"),
        "WeightsVerified": ("Unknown", "IntegrityNotChecked"),
        "AcceleratorsHealthy": ("Unknown", "PreflightPending"),
        "IsolationVerified": ("True", "IsolationProven"),
        "EndpointPrivate": ("Unknown", "LoadBalancerPending"),
        "Available": ("False", "Starting"),
    }
    assert "endpoint" not in model_status


@pytest.mark.parametrize("source", ["baked-image", "image-volume"])
def test_weights_in_an_image_are_pinned_by_its_digest(source):
    assert truth(status_of(RENDERINGS[source], a_snapshot()))["WeightsVerified"] == ("True", "PinnedByDigest")


def test_pods_that_serve_without_an_address_are_not_ready():
    manifest = a_share_model()
    snapshot = serving(a_snapshot(children=children_of(manifest)), 1)
    truths = truth(status_of(manifest, snapshot))
    assert truths["Ready"] == ("False", "LoadBalancerPending")
    assert truths["Reconciling"] == ("True", "LoadBalancerPending")
    assert truths["Available"] == ("True", "Serving")


@pytest.mark.parametrize(
    ("addresses", "phrase"),
    [((), "no address yet"), (("10.13.76.40",), "has the address '10.13.76.40', not yet '10.13.76.99' as asked")],
)
def test_address_other_than_the_one_asked_for_is_waited_out_and_not_published(addresses, phrase):
    manifest = a_share_model(endpoint={"internalLoadBalancer": {"address": "10.13.76.99"}})
    model_status = status_of(manifest, addressed(a_running_snapshot(manifest, generation=2), *addresses))
    assert truth(model_status)["EndpointPrivate"] == ("Unknown", "LoadBalancerPending")
    assert truth(model_status)["Ready"] == ("False", "LoadBalancerPending")
    assert phrase in conditions(model_status)["EndpointPrivate"]["message"]
    assert "endpoint" not in model_status


def test_address_that_was_asked_for_is_the_one_published_among_several():
    manifest = a_share_model(endpoint={"internalLoadBalancer": {"address": "10.13.76.99"}})
    model_status = status_of(manifest, addressed(a_running_snapshot(manifest), "fd00::7", "10.13.76.99"))
    assert model_status["endpoint"] == {"url": "http://10.13.76.99:8000/v1", "address": "10.13.76.99"}
    assert truth(model_status)["Ready"] == ("True", "Serving")


def test_without_a_load_balancer_the_endpoint_is_the_service_s_name():
    manifest = a_share_model(endpoint={"port": 9000})
    model_status = status_of(manifest, a_running_snapshot(manifest))
    assert truth(model_status)["EndpointPrivate"] == ("True", "ClusterInternal")
    assert model_status["endpoint"] == {"url": "http://llama.inference.svc:9000/v1", "address": "llama.inference.svc"}


@pytest.mark.parametrize("inside", [{"internalLoadBalancer": {}}, {}], ids=["load balancer", "cluster"])
def test_where_a_key_is_set_the_condition_says_what_answers_without_it(inside):
    said_of = {}
    for key in ({}, {"apiKey": {"secretName": "guarded-key"}}):
        manifest = a_share_model(endpoint={**inside, **key})
        model_status = status_of(manifest, a_running_snapshot(manifest))
        assert truth(model_status)["EndpointPrivate"][0] == "True"
        said_of[bool(key)] = conditions(model_status)["EndpointPrivate"]["message"]
    assert said_of[True] == f"{said_of[False]}; {WITHOUT_A_KEY}"
    assert "/invocations" in WITHOUT_A_KEY


def test_of_sglang_the_condition_says_its_own_paths():
    manifest = an_sglang_model(endpoint={"apiKey": {"secretName": "guarded-key"}})
    message = conditions(status_of(manifest, a_running_snapshot(manifest)))["EndpointPrivate"]["message"]
    assert "/v1/realtime" in message
    assert "/invocations" not in message


def test_endpoint_speaks_https_with_a_certificate():
    manifest = RENDERINGS["tls-and-api-key"]
    assert status_of(manifest, a_running_snapshot(manifest))["endpoint"]["url"] == "https://10.13.76.40:8000/v1"


def test_scaled_to_zero_is_ready_as_asked_and_not_available():
    manifest = a_share_model(replicas=0)
    truths = truth(status_of(manifest, a_running_snapshot(manifest, 0)))
    assert truths["Ready"] == ("True", "ScaledToZero")
    assert truths["Available"] == ("False", "ScaledToZero")


NOT_SETTLED = {
    "the Deployment has not heard of it": {"observedGeneration": 0},
    "an older pod is left": {"replicas": 2},
    "not every pod is of the present template": {"updatedReplicas": 0},
    "not every pod serves": {"availableReplicas": 0},
}


@pytest.mark.parametrize("counts", NOT_SETTLED.values(), ids=list(NOT_SETTLED))
def test_ready_only_when_every_pod_is_of_this_template_and_serves(counts):
    manifest = a_baked_model("llama", endpoint={})
    snapshot = serving(a_snapshot(children=children_of(manifest)), 1, **counts)
    truths = truth(status_of(manifest, snapshot))
    assert truths["Ready"][0] == "False"
    assert "Reconciling" in truths


def test_ready_only_when_as_many_serve_as_are_asked_for():
    """A scale-up that is decided but not yet carried out is not served by the pods of before."""
    manifest = changed(a_baked_model("llama", endpoint={}), replicas=3)
    before = changed(manifest, replicas=1)
    snapshot = serving(a_snapshot(children=children_of(before)), 1)
    assert truth(status(spec_of(manifest), snapshot, Plan(), (), NOW))["Ready"][0] == "False"


# ---------------------------------------------------------------------- what blocks


def test_refusal_of_the_api_server_is_told_before_anything_else():
    model_status = status_of(
        a_share_model(), a_snapshot(), ApiRejection("Deployment 'llama'", Reason.QUOTA_EXCEEDED, "Deployment: quota")
    )
    assert truth(model_status)["Ready"] == ("False", "QuotaExceeded")
    assert truth(model_status)["Reconciling"] == ("True", "ProgressingWithRetry")
    message = conditions(model_status)["Reconciling"]["message"]
    assert message == f"{Reason.QUOTA_EXCEEDED.meaning} See the condition Ready.", (
        "the cause, not that it is tried again"
    )


def test_closed_gate_stalls_with_the_words_of_the_gate():
    by_type = conditions(status_of(a_share_model(), a_snapshot(evidence=None)))
    gate = by_type["IsolationVerified"]
    assert (gate["status"], gate["reason"]) == ("Unknown", "IsolationEvidenceMissing")
    assert by_type["Ready"]["message"] == gate["message"]
    assert by_type["Stalled"]["message"] == f"{Reason.ISOLATION_EVIDENCE_MISSING.meaning} See the condition Ready."
    assert by_type["Available"]["reason"] == "WorkloadNotCreated"


def test_closed_gate_says_that_what_runs_keeps_serving_and_what_waits():
    manifest = a_share_model()
    snapshot = a_running_snapshot(manifest, evidence=evidence("Fail", message="route to the internet"))
    assert conditions(status_of(manifest, snapshot))["Ready"]["message"] == (
        "route to the internet; the pods that run keep serving"
    )
    changed_model = changed(manifest, drainSeconds=7)
    assert conditions(status_of(changed_model, snapshot))["Ready"]["message"] == (
        "route to the internet; the pods that run keep serving; the change of the pods waits for it"
    )


def test_report_says_what_is_open_and_is_ready_all_the_same():
    manifest = reporting(a_share_model())
    truths = truth(
        status_of(manifest, a_running_snapshot(manifest, evidence=evidence("Fail", message="an egress path")))
    )
    assert truths["Ready"] == ("True", "ServingNotEnforced")
    assert truths["IsolationVerified"] == ("False", "IsolationBroken")


def test_off_says_that_the_evidence_was_not_looked_at():
    manifest = a_share_model(isolation={"enforcement": "Off"})
    truths = truth(status_of(manifest, a_running_snapshot(manifest, evidence=evidence("Fail"))))
    assert truths["Ready"] == ("True", "ServingNotEnforced")
    assert truths["IsolationVerified"] == ("Unknown", "IsolationNotEnforced")


def test_spec_that_a_gate_refuses_says_so_and_does_not_pretend_to_have_looked_further():
    elsewhere = {"vllm": {"image": f"ghcr.io/x/y@sha256:{DIGEST}", "version": "0.32.0"}}
    truths = truth(status_of(a_share_model(engine=elsewhere), a_snapshot()))
    assert truths["Ready"] == truths["ImagesPinned"] == ("False", "RegistryNotAllowed")
    assert truths["Stalled"] == ("True", "RegistryNotAllowed")
    assert truths["IsolationVerified"] == ("Unknown", "IsolationEvidencePending")


def test_trouble_of_pods_is_told_by_available_and_repeated_by_ready():
    manifest = a_baked_model("llama")
    stuck = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: gpus"}
    snapshot = a_snapshot(children=children_of(manifest))
    snapshot = reporting_of(snapshot, "Deployment", {"observedGeneration": 1, "conditions": [stuck]})
    by_type = conditions(status_of(manifest, snapshot))
    assert by_type["Available"]["reason"] == by_type["Ready"]["reason"] == "QuotaExceeded"
    assert by_type["Available"]["message"] == by_type["Ready"]["message"]


def test_spec_that_this_version_cannot_read_is_said_with_its_field():
    model_status = status_unreadable(a_snapshot(), "`spec.replicas`: must be an integer", NOW)
    assert truth(model_status) == {"Ready": ("False", "SpecInvalid"), "Stalled": ("True", "SpecInvalid")}
    assert model_status["observedGeneration"] == 1


# ---------------------------------------------------------------------- public addresses


@pytest.mark.parametrize("address", ["203.0.113.9", "20.1.2.3", "fe80::1", "169.254.169.254", "2001:db8::1"])
def test_public_address_is_critical_and_not_published(address):
    manifest = a_share_model()
    spec, snapshot = spec_of(manifest), addressed(a_running_snapshot(manifest), address)
    decided = plan(spec, snapshot, NOW)
    assert [(gone.kind.kind, gone.name) for gone in decided.delete] == [("Service", "llama")]
    model_status = status(spec, snapshot, decided, (), NOW)
    assert truth(model_status)["EndpointPrivate"] == truth(model_status)["Ready"] == ("False", "PublicAddress")
    assert truth(model_status)["Stalled"] == ("True", "PublicAddress")
    assert f"'{address}'" in conditions(model_status)["Ready"]["message"]
    assert "endpoint" not in model_status


def test_service_is_said_to_be_removed_only_once_it_is():
    manifest = a_share_model()
    spec, snapshot = spec_of(manifest), addressed(a_running_snapshot(manifest), "203.0.113.9")
    decided = plan(spec, snapshot, NOW)
    still_there = status(spec, snapshot, decided, (), NOW)
    address_message = "the load balancer gave the public address '203.0.113.9'; "
    assert conditions(still_there)["EndpointPrivate"]["message"] == address_message + "the Service is being removed"
    gone = carried_out(replace(snapshot, status=still_there), decided)
    for later in (decided, plan(spec, gone, NOW)):
        assert (
            conditions(status(spec, gone, later, (), NOW))["EndpointPrivate"]["message"]
            == address_message + "Service removed"
        )


def test_stranger_s_service_is_no_endpoint_of_ours():
    manifest = a_share_model()
    snapshot = a_running_snapshot(manifest)
    key = ("Service", snapshot.owner.name)
    theirs = {**snapshot.children[key], "metadata": {**snapshot.children[key]["metadata"], "ownerReferences": []}}
    model_status = status_of(manifest, replace(snapshot, children={**snapshot.children, key: theirs}))
    assert truth(model_status)["EndpointPrivate"] == ("Unknown", "EndpointNotCreated")
    assert "endpoint" not in model_status


@pytest.mark.parametrize("address", ["10.0.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd00::1"])
def test_private_address_is_private(address):
    manifest = a_share_model()
    model_status = status_of(manifest, addressed(a_running_snapshot(manifest), address))
    assert truth(model_status)["EndpointPrivate"] == ("True", "PrivateAddress")


def test_one_public_address_among_private_ones_is_one_too_many():
    manifest = a_share_model()
    snapshot = addressed(a_running_snapshot(manifest), "10.0.0.1", "203.0.113.9")
    assert plan(spec_of(manifest), snapshot, NOW).delete


def after_the_service_is_gone(manifest: dict[str, Any], generation: int) -> ClusterSnapshot:
    children = {key: child for key, child in children_of(manifest).items() if key[0] != "Service"}
    snapshot = serving(a_snapshot(children=children, generation=generation), 1)
    message = "the load balancer gave the public address '203.0.113.9'; Service removed"
    return with_condition(
        snapshot, "EndpointPrivate", status="False", reason="PublicAddress", observedGeneration=1, message=message
    )


def test_removed_service_stays_away_and_keeps_its_explanation_while_the_spec_is_the_same():
    manifest = a_share_model()
    model_status = status_of(manifest, after_the_service_is_gone(manifest, generation=1))
    assert truth(model_status)["EndpointPrivate"] == ("False", "PublicAddress")
    assert "203.0.113.9" in conditions(model_status)["Ready"]["message"]


def test_what_became_of_a_public_address_is_a_field_and_not_read_back_from_a_message():
    manifest = a_share_model()
    spec, snapshot = spec_of(manifest), addressed(a_running_snapshot(manifest), "203.0.113.9")
    first = status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW)
    assert first["publicAddress"] == {"address": "203.0.113.9", "serviceRemoved": False}
    reworded = {
        **first,
        "conditions": [{**condition, "message": "in other words"} for condition in first["conditions"]],
    }
    gone = carried_out(replace(snapshot, status=reworded), plan(spec, snapshot, NOW))
    then = status(spec, gone, plan(spec, gone, NOW), (), NOW)
    assert then["publicAddress"] == {"address": "203.0.113.9", "serviceRemoved": True}
    assert conditions(then)["Ready"]["message"] == (
        "the load balancer gave the public address '203.0.113.9'; Service removed"
    )
    again = status(spec, replace(gone, status=then), plan(spec, gone, NOW), (), NOW)
    assert same_status(again, then)
    ModelDeploymentStatus.model_validate(then)


@pytest.mark.parametrize("state", ["the Service is being removed", "Service removed"])
def test_status_of_a_release_without_the_field_keeps_its_address(state):
    manifest = a_share_model()
    address_message = "the load balancer gave the public address '203.0.113.9'; "
    snapshot = with_condition(
        after_the_service_is_gone(manifest, generation=1),
        "EndpointPrivate",
        status="False",
        reason="PublicAddress",
        observedGeneration=1,
        message=address_message + state,
    )
    model_status = status_of(manifest, snapshot)
    assert conditions(model_status)["EndpointPrivate"]["message"] == address_message + "Service removed"
    assert "publicAddress" not in model_status


def test_removed_service_comes_back_for_a_spec_that_changed():
    manifest = a_share_model()
    model_status = status_of(manifest, after_the_service_is_gone(manifest, generation=2))
    assert truth(model_status)["EndpointPrivate"] == ("Unknown", "LoadBalancerPending")


# ---------------------------------------------------------------------- times, generations, and what is new


def test_transition_time_moves_only_with_the_status():
    manifest = a_share_model()
    first = status_of(manifest, a_running_snapshot(manifest, evidence=None))
    again = status_of(
        manifest, replace(a_running_snapshot(manifest, evidence=evidence("Fail")), status=first), now=LATER
    )
    before, after = conditions(first), conditions(again)
    assert before["Ready"]["reason"] != after["Ready"]["reason"]
    assert after["Ready"]["lastTransitionTime"] == before["Ready"]["lastTransitionTime"] == "2026-11-24T12:00:00Z"
    assert after["IsolationVerified"]["lastTransitionTime"] == "2026-11-24T12:05:00Z"


@pytest.mark.parametrize("generation", [1, 7])
def test_every_condition_and_the_status_vouch_for_one_generation(generation):
    model_status = status_of(a_share_model(), a_snapshot(generation=generation))
    assert model_status["observedGeneration"] == generation
    assert {c["observedGeneration"] for c in model_status["conditions"]} == {generation}


@pytest.mark.parametrize("manifest", RENDERINGS.values(), ids=list(RENDERINGS))
@pytest.mark.parametrize("gate_evidence", [evidence(), None], ids=["open gate", "closed gate"])
def test_status_is_one_that_the_api_accepts_and_is_new_only_once(manifest, gate_evidence):
    snapshot = a_snapshot(owner_of(manifest), evidence=gate_evidence)
    model_status = status_of(manifest, snapshot)
    ModelDeploymentStatus.model_validate(model_status)
    assert not same_status(model_status, {})
    again = status_of(manifest, replace(snapshot, status=model_status), now=LATER)
    assert same_status(again, model_status)


def test_order_in_which_the_api_server_keeps_conditions_is_nothing_new():
    model_status = status_of(a_share_model(), a_snapshot())
    assert same_status(model_status, {**model_status, "conditions": model_status["conditions"][::-1]})


def test_condition_of_another_writer_in_the_status_is_no_change():
    model_status = status_of(a_share_model(), a_snapshot())
    theirs = {"type": "Suspended", "status": "False", "reason": "No", "message": ""}
    assert same_status(model_status, {**model_status, "conditions": [*model_status["conditions"], theirs]})


def test_condition_of_ours_that_is_left_over_or_was_changed_is_written_again():
    model_status = status_of(a_share_model(), a_snapshot())
    stalled = {"type": "Stalled", "status": "True", "reason": "CrashLoop", "message": ""}
    assert not same_status(model_status, {**model_status, "conditions": [*model_status["conditions"], stalled]})
    forged = [{**c, "status": "True"} for c in model_status["conditions"]]
    assert not same_status(model_status, {**model_status, "conditions": forged})
    assert not same_status(model_status, {**model_status, "replicas": 9})
    assert not same_status(model_status, {**model_status, "endpoint": {"url": "x", "address": "y"}})


def test_longest_message_fits_a_condition():
    block = Blocks(Reason.ISOLATION_BROKEN, "x" * 9000)
    model_status = status(spec_of(a_share_model()), a_snapshot(), Plan(blocked=block, isolation=block), (), NOW)
    ModelDeploymentStatus.model_validate(model_status)

"""Labels and annotations of the platform team: which keys are given, to what, and what tenants cannot reach by them."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.metadata_keys import RESERVED_DOMAINS, RESERVED_NAMES, RESERVED_PARTS, reserved_because
from hermetic.api.public_services import ASKS_FOR_PUBLIC, INTERNAL, PUBLIC_SIDE, PUBLISHES
from hermetic.api.spec_reasons import SpecReason
from hermetic.kube.store import Store
from hermetic.objects.names import MODEL_LABEL, TEMPLATE_LABEL
from hermetic.plan.desired_children import desired_children, isolating_children
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.foreign_fields import STEERING
from tests.planning import edited, written
from tests.renderings import RENDERINGS
from tests.scenarios import Manifest, a_share_model
from tests.snapshots import NOW, POLICY, a_snapshot, carried_out, evidence, living, owner_of, rendered, serving, spec_of

MODEL_METADATA = {
    "labels": {"environment": "production"},
    "annotations": {"example.com/contact": "platform@contoso.com"},
    "propagatedLabels": ["cost-centre", "example.com/owner"],
    "propagatedAnnotations": ["example.com/ticket"],
}
LABELS = {"cost-centre": "4711", "team": "risk"}
POLICIES = Path(__file__).parents[2] / "manifests" / "policies"


def policy_with(**metadata: Any) -> Configuration:
    return Configuration.model_validate(
        {**POLICY.model_dump(by_alias=True, exclude_unset=True), "modelMetadata": {**MODEL_METADATA, **metadata}}
    )


def labelled(manifest: Manifest, **facts: Any) -> ClusterSnapshot:
    """The snapshot of a model with LABELS, on a platform with MODEL_METADATA."""
    snapshot_fields = {
        "policy": policy_with(),
        "labels": LABELS,
        "annotations": {"example.com/ticket": "CHG-1"},
        **facts,
    }
    return a_snapshot(owner_of(manifest), **snapshot_fields)


def settled(manifest: Manifest, **facts: Any) -> ClusterSnapshot:
    """The same, with every child written and one pod that serves."""
    before = labelled(manifest, **facts)
    return serving(carried_out(before, plan(spec_of(manifest), before, NOW)), 1)


# ------------------------------------------------------------------ which keys

REFUSED = {
    # https://istio.io/latest/docs/reference/config/labels
    "a mesh's sidecar": "sidecar.istio.io/inject",
    # https://linkerd.io/2/reference/proxy-configuration
    "a mesh's sidecar by annotation": "linkerd.io/inject",
    "a part of a mesh": "security.istio.io/tlsMode",
    # https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html
    "a cloud identity": "azure.workload.identity/use",
    "a cloud identity of old": "aadpodidbinding",
    # https://kubernetes.io/docs/tutorials/security/apparmor
    "AppArmor": "container.apparmor.security.beta.kubernetes.io/engine",
    "seccomp": "seccomp.security.alpha.kubernetes.io/pod",
    "a key of Kubernetes": "app.kubernetes.io/managed-by",
    "a key of the project's other domain": "admission.k8s.io/x",
    "Hermetic's own": "hermetic.dev/modeldeployment",
    "a key below Hermetic's own": "sub.hermetic.dev/x",
    "a load balancer of Azure": "service.beta.kubernetes.io/azure-load-balancer-internal",
    # https://learn.microsoft.com/azure/azure-monitor/containers/prometheus-metrics-scrape-configuration
    "scraping": "prometheus.io/scrape",
    "scraping by another agent": "example.com/scrape",
    # https://github.com/k8snetworkplumbingwg/multus-cni
    "a second network": "k8s.v1.cni.cncf.io/networks",
    "secrets of a vault": "vault.hashicorp.com/agent-inject",
    "an injector nobody listed": "hooks.example.com/sidecar-inject",
    "words in another case": "hooks.example.com/Inject",
    "a selector's usual key": "app",
    "a key of controllers": "pod-template-hash",
    "a name that opens egress": "egress-allowed",
    "an exception of a policy engine": "policies.kyverno.io/exclude",
    "a route from outside": "tailscale.com/expose",
    "a mesh of clusters": "io.cilium/global-service",
}
GIVEN = (
    "cost-centre",
    "environment",
    "example.com/owner",
    "data-classification",
    "contoso.com/application-id",
    "team",
    "Owner",
    "notkubernetes.io/x",
    "injected-by-nobody.example.com/injections",
)


@pytest.mark.parametrize("key", REFUSED.values(), ids=list(REFUSED))
@pytest.mark.parametrize("place", ["labels", "annotations", "propagatedLabels", "propagatedAnnotations"])
def test_a_key_that_changes_behaviour_is_refused_with_reason_and_fix(place: str, key: str) -> None:
    value: Any = [key] if place.startswith("propagated") else {key: "x"}
    with pytest.raises(ValidationError) as refused:
        Configuration.model_validate({"modelMetadata": {place: value}})
    (error,) = refused.value.errors()
    assert error["loc"] == ("modelMetadata", place)
    assert f"'{key}' must not be given to models" in error["msg"]
    assert "use a key of your own" in error["msg"]


@pytest.mark.parametrize("key", GIVEN)
def test_a_key_that_describes_is_given(key: str) -> None:
    assert Configuration.model_validate({"modelMetadata": {"propagatedLabels": [key], "annotations": {key: "x"}}})


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"cost-centre": "1"}, "propagatedLabels": ["cost-centre"]},
        {"annotations": {"note": "1"}, "propagatedAnnotations": ["note"]},
        {"labels": {"cost centre": "1"}},
        {"labels": {"cost-centre": "a b"}},
        {"labels": {"cost-centre": "a" * 64}},
        {"annotations": {"note": "a" * 513}},
        {"annotations": {"a/b/c": "1"}},
        {"propagatedLabels": ["a" * 64]},
        {"propagatedLabels": [f"key-{number}" for number in range(17)]},
        {"labels": {f"key-{number}": "" for number in range(17)}},
    ],
)
def test_syntax_sizes_and_repeated_keys_are_refused(metadata: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Configuration.model_validate({"modelMetadata": metadata})


def test_no_annotation_that_steers_a_service_can_be_given() -> None:
    steering = {*PUBLIC_SIDE, *ASKS_FOR_PUBLIC, *PUBLISHES, INTERNAL, *(f"{prefix}x" for prefix in STEERING)}
    assert [key for key in steering if not reserved_because(key)] == []


def test_the_policy_of_the_account_refuses_the_same_keys() -> None:
    text = (POLICIES / "operator-deployments.yaml").read_text()
    (policy, _) = yaml.safe_load_all(text)
    lists = {variable["name"]: variable["expression"] for variable in policy["spec"]["variables"]}
    assert yaml.safe_load(lists["reservedDomains"]) == list(RESERVED_DOMAINS)
    assert yaml.safe_load(lists["reservedNames"]) == list(RESERVED_NAMES)
    (rule,) = (
        validation for validation in policy["spec"]["validations"] if "platformNames" in validation["expression"]
    )
    assert "|".join(RESERVED_PARTS) in rule["expression"].replace("' + '", "")


# ------------------------------------------------------------------ on what


@pytest.mark.parametrize("shape", ["share", "everything-said", "nim-profile", "sglang"])
def test_every_object_and_pod_has_them_and_no_selector(shape: str) -> None:
    manifest = RENDERINGS[shape]
    children = desired_children(spec_of(manifest), labelled(manifest))
    plain = {child["kind"]: child for child in desired_children(spec_of(manifest), a_snapshot(owner_of(manifest)))}
    pods = next(child["spec"]["template"] for child in children if child["kind"] == "Deployment")
    for labelled_object in (*children, pods):
        metadata = labelled_object["metadata"]
        assert {"environment": "production", "cost-centre": "4711"}.items() <= metadata["labels"].items()
        assert not {"team", "example.com/owner"} & metadata["labels"].keys()
        annotations = {"example.com/contact": "platform@contoso.com", "example.com/ticket": "CHG-1"}
        assert annotations.items() <= metadata["annotations"].items()
    for child in children:
        if child["kind"] != "Deployment":
            assert child["spec"] == plain[child["kind"]]["spec"] if "spec" in child else True
    deployment = next(child for child in children if child["kind"] == "Deployment")
    assert deployment["spec"]["selector"] == {"matchLabels": {MODEL_LABEL: manifest["metadata"]["name"]}}
    assert deployment["spec"]["template"]["spec"] == plain["Deployment"]["spec"]["template"]["spec"]


def test_what_isolates_has_them_even_if_the_engine_cannot_be_started() -> None:
    manifest = a_share_model()
    alone = isolating_children(spec_of(manifest), labelled(manifest))
    assert all(child in desired_children(spec_of(manifest), labelled(manifest)) for child in alone)


def test_labels_of_hermetic_win_whatever_a_snapshot_holds() -> None:
    manifest = a_share_model()
    claimed = {MODEL_LABEL: "another", TEMPLATE_LABEL: "x", "cost-centre": "1"}
    snapshot = labelled(manifest, labels=claimed)
    template = next(
        child["spec"]["template"]
        for child in desired_children(spec_of(manifest), snapshot)
        if child["kind"] == "Deployment"
    )
    assert template["metadata"]["labels"][MODEL_LABEL] == "llama"
    assert template["metadata"]["labels"][TEMPLATE_LABEL] != "x"


def test_a_model_on_a_platform_without_settings_has_the_pods_it_had() -> None:
    manifest = a_share_model()
    snapshot = a_snapshot(owner_of(manifest), labels=LABELS)
    assert {child["kind"]: child for child in desired_children(spec_of(manifest), snapshot)}["Service"] == rendered(
        manifest
    )["Service"]


# ------------------------------------------------------------------ what is written when


def test_at_rest_nothing_is_written() -> None:
    manifest = a_share_model()
    assert written(plan(spec_of(manifest), settled(manifest), NOW)) == []


def test_a_label_that_is_not_listed_changes_nothing() -> None:
    manifest = a_share_model()
    snapshot = replace(settled(manifest), labels={**LABELS, "team": "another", "app": "x"})
    assert written(plan(spec_of(manifest), snapshot, NOW)) == []


def test_a_changed_label_reaches_every_object_once() -> None:
    manifest = a_share_model()
    snapshot = replace(settled(manifest), labels={**LABELS, "cost-centre": "4712"})
    decided = plan(spec_of(manifest), snapshot, NOW)
    assert {why for _, why in written(decided)} == {"changed"}
    assert {kind for kind, _ in written(decided)} == {kind for kind, _ in snapshot.children}
    after = serving(carried_out(snapshot, decided), 1)
    assert written(plan(spec_of(manifest), after, NOW)) == []


@pytest.mark.parametrize("value", [None, "4712"])
def test_a_label_that_others_change_is_drift(value: str | None) -> None:
    def change(live: dict[str, Any]) -> None:
        live["metadata"]["labels"].pop("cost-centre")
        live["metadata"]["labels"] |= {"cost-centre": value} if value is not None else {}

    manifest = a_share_model()
    decided = plan(spec_of(manifest), edited(settled(manifest), "Service", change), NOW)
    assert written(decided) == [("Service", "drifted")]


def test_behind_a_closed_gate_a_changed_label_waits() -> None:
    manifest = a_share_model(replicas=3)
    before = replace(settled(manifest), labels={**LABELS, "cost-centre": "4712"}, evidence=evidence("Fail"))
    decided = plan(spec_of(manifest), before, NOW)
    assert decided.held
    assert "Deployment" not in {kind for kind, _ in written(decided)}


@pytest.mark.parametrize("evidence_of", ["Pass", "Fail"])
def test_a_deployment_that_only_shrinks_keeps_its_labels(evidence_of: str) -> None:
    """A policy of the platform that requires a label is asked about this write as well."""
    manifest = a_share_model(replicas=3)
    blocked = a_share_model(replicas=2, resources={"cpu": "8", "cpuLimit": "1"})
    snapshot = replace(settled(manifest), evidence=evidence(evidence_of))
    (shrunk,) = (
        change.manifest
        for change in plan(spec_of(blocked), snapshot, NOW).apply
        if change.manifest["kind"] == "Deployment"
    )
    assert shrunk["spec"]["replicas"] == 2
    assert shrunk["metadata"]["labels"]["cost-centre"] == "4711"
    assert shrunk["metadata"]["annotations"]["example.com/ticket"] == "CHG-1"


# ------------------------------------------------------------------ what the operator reads of a cluster


def stored(policy: Configuration, *manifests: Manifest) -> ClusterSnapshot:
    store = Store(policy)
    for version, manifest in enumerate(manifests, start=1):
        stored_manifest = copy.deepcopy(dict(manifest))
        stored_manifest["metadata"] |= {
            "resourceVersion": str(version),
            "uid": stored_manifest["metadata"].get("uid", f"uid-{version}"),
        }
        store.put(stored_manifest)
    snapshot = store.snapshot(("inference", "llama"))
    assert snapshot is not None
    return snapshot


def test_through_the_store_a_written_child_is_at_rest_and_other_labels_are_dropped() -> None:
    manifest = a_share_model()
    ticket = {"example.com/ticket": "CHG-1", "kubectl.kubernetes.io/last-applied-configuration": "x" * 9000}
    model = {
        **manifest,
        "metadata": {"name": "llama", "namespace": "inference", "labels": LABELS, "annotations": ticket},
    }
    first = stored(policy_with(), model)
    assert first.labels == {"cost-centre": "4711"}
    assert first.annotations == {"example.com/ticket": "CHG-1"}
    children = [living(child) for child in desired_children(spec_of(manifest), first)]
    live = stored(policy_with(), model, *children)
    at_rest = replace(live, evidence=evidence())
    assert len(at_rest.children) == len(children)
    assert written(plan(spec_of(manifest), at_rest, NOW)) == []


@pytest.mark.parametrize(("length", "blocked"), [(512, False), (513, True), (200_000, True)])
def test_an_annotation_that_is_copied_is_short(length: int, blocked: bool) -> None:
    manifest = a_share_model()
    annotations = {"example.com/ticket": "x" * length, "example.com/other": "y" * 200_000}
    metadata = {"name": "llama", "namespace": "inference", "annotations": annotations}
    snapshot = replace(stored(policy_with(), {**manifest, "metadata": metadata}), evidence=evidence())
    decided = plan(spec_of(manifest), snapshot, NOW)
    assert (decided.blocked is not None) == blocked
    if decided.blocked is not None:
        assert decided.blocked.reason is SpecReason.ANNOTATION_TOO_LONG
        assert "'example.com/ticket'" in decided.blocked.message

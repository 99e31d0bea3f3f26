"""Verification of weights in their pods: who asks for it, what is rendered, what its result becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hermetic.api.conditions import ConditionType
from hermetic.api.configuration import Configuration
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.weights_reasons import WeightsReason
from hermetic.cli.status.remedies import remedy_for
from hermetic.controller.condition_events import announcements
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.gates import first_block
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from hermetic.weights.findings import WeightsFinding, termination_message
from tests.attestations import a_p256_key, an_ed25519_key, public_pem_of
from tests.scenarios import Manifest, a_baked_model, a_nim_model, a_share_model, an_image_volume_model
from tests.snapshots import NOW, POLICY, a_snapshot, carried_out, conditions, serving, spec_of

ROOT = f"sha256:{'5e' * 32}"
OLD, NEW = (f"contoso.azurecr.io/hermetic@sha256:{digit * 64}" for digit in "ab")


KEY, OTHER_KEY = (public_pem_of(a_p256_key(seed).key) for seed in (1, 2))
# It signs attestations, and no manifests of weights.
AN_ED25519_KEY = public_pem_of(an_ed25519_key().key)


def configured(**integrity: Any) -> Configuration:
    written = POLICY.model_dump(by_alias=True, exclude_none=True)
    return Configuration.model_validate({**written, "integrity": {"verifiers": [NEW], **integrity}})


def on_a_share(**integrity: Any) -> Manifest:
    manifest = a_share_model()
    manifest["spec"]["weights"]["integrity"] = integrity
    return manifest


def verification(snapshot: ClusterSnapshot, manifest: Manifest) -> dict[str, Any] | None:
    """The init container that would be applied."""
    decision = plan(spec_of(manifest), snapshot, NOW)
    assert decision.blocked is None, decision.blocked
    pod = next(c.manifest for c in decision.apply if c.manifest["kind"] == "Deployment")["spec"]["template"]["spec"]
    return next(
        (
            init_container
            for init_container in pod.get("initContainers", ())
            if init_container["name"] == "verify-weights"
        ),
        None,
    )


def applied(snapshot: ClusterSnapshot, manifest: Manifest) -> ClusterSnapshot:
    for _ in range(4):
        snapshot = carried_out(snapshot, plan(spec_of(manifest), snapshot, NOW))
    assert not plan(spec_of(manifest), snapshot, NOW).apply
    return snapshot


# ---------------------------------------------------------------------- who asks for it


UNCONFIGURED = configured(verifiers=[])
MOUNTED = {
    "azureFiles": {"account": "contosomodels", "share": "models", "folder": "llama"},
    "nfs": {"server": "nfs.contoso.internal", "path": "/export/models"},
    "persistentVolumeClaim": {"claimName": "weights"},
}


@pytest.mark.parametrize("kind", MOUNTED)
def test_mounted_weights_are_refused_where_no_image_verifies_them_unless_the_configuration_lowers_it(kind):
    manifest = a_share_model(weights={kind: MOUNTED[kind]})
    block = first_block(spec_of(manifest), a_snapshot(policy=UNCONFIGURED))
    assert block is not None
    assert (block.reason, block.condition) == (SpecReason.VERIFIER_NOT_CONFIGURED, ConditionType.WEIGHTS_VERIFIED)
    for remedy in ("`integrity.verifiers`", 'integrity.minimumPolicy: "Off"', "namespace 'inference'"):
        assert remedy in block.message
    assert plan(spec_of(manifest), a_snapshot(policy=UNCONFIGURED), NOW).apply == ()
    lowered = configured(verifiers=[], overrides=[{"minimumPolicy": "Off", "namespaces": ["inference"]}])
    assert verification(a_snapshot(policy=lowered), manifest) is None


@pytest.mark.parametrize(
    ("lowered", "why"), [("Off", "in effect is Off"), ("Warn", "names no image under `integrity.verifiers`")]
)
def test_weights_that_are_served_unverified_are_never_called_verified(lowered, why):
    snapshot = applied(a_snapshot(policy=configured(verifiers=[], minimumPolicy=lowered)), a_share_model())
    weights_condition = weights_of(serving(snapshot, 1), a_share_model())
    assert (weights_condition["status"], weights_condition["reason"]) == ("Unknown", "IntegrityNotChecked")
    assert why in weights_condition["message"]


def test_an_upgrade_to_the_default_changes_nothing_that_runs():
    snapshot = serving(applied(a_snapshot(), a_share_model(replicas=2)), 2)
    upgraded = replace(snapshot, policy=UNCONFIGURED)
    other = a_share_model(replicas=3, drainSeconds=77)
    for manifest in (a_share_model(replicas=2), other):
        decision = plan(spec_of(manifest), upgraded, NOW)
        assert (decision.apply, decision.delete) == ((), ())
    condition_of = conditions(status(spec_of(other), upgraded, plan(spec_of(other), upgraded, NOW), (), NOW))
    assert (condition_of["Ready"]["reason"], condition_of["Available"]["status"]) == ("VerifierNotConfigured", "False")
    assert "the pods that run keep serving" in condition_of["Ready"]["message"]
    (change,) = plan(spec_of(a_share_model(replicas=1)), upgraded, NOW).apply
    live = snapshot.children["Deployment", "llama"]["spec"]
    assert change.manifest["spec"] == {**live, "replicas": 1}


def test_a_configuration_that_loses_its_image_takes_the_verification_out_of_no_pod():
    snapshot = applied(a_snapshot(policy=configured(publicKeys=[KEY])), a_share_model())
    decision = plan(spec_of(a_share_model()), replace(snapshot, policy=UNCONFIGURED), NOW)
    assert decision.blocked is not None
    assert (decision.blocked.reason, decision.apply, decision.delete) == (SpecReason.VERIFIER_NOT_CONFIGURED, (), ())


def test_every_share_must_be_pinned_once_an_image_is_configured():
    block = first_block(spec_of(a_share_model()), a_snapshot(policy=configured()))
    assert block is not None
    assert (block.reason, block.condition) == (SpecReason.INTEGRITY_NOT_PINNED, ConditionType.WEIGHTS_VERIFIED)
    assert "weights.integrity.digest" in block.message


@pytest.mark.parametrize("manifest", [a_baked_model(), an_image_volume_model()], ids=["baked", "image volume"])
def test_weights_in_images_are_pinned_by_their_digest_already(manifest):
    assert verification(a_snapshot(policy=configured()), manifest) is None


@pytest.mark.parametrize("policy", ["Warn", "Off"])
def test_a_deployment_cannot_ask_for_less_than_the_minimum(policy):
    block = first_block(spec_of(on_a_share(policy=policy)), a_snapshot(policy=configured()))
    assert block is not None
    assert block.reason is SpecReason.INTEGRITY_NOT_PINNED
    assert f"{policy} is raised to Require" in block.message
    container = verification(a_snapshot(policy=configured()), on_a_share(policy=policy, digest=ROOT))
    assert container is not None
    assert "--report-only" not in container["args"]


def test_where_the_minimum_is_off_only_those_who_pin_are_verified():
    snapshot = a_snapshot(policy=configured(minimumPolicy="Off"))
    assert verification(snapshot, a_share_model()) is None
    assert verification(snapshot, on_a_share(digest=ROOT)) is not None
    assert verification(snapshot, on_a_share(digest=ROOT, policy="Off")) is None


def test_a_namespace_may_have_a_minimum_of_its_own():
    lowered = configured(overrides=[{"minimumPolicy": "Off", "namespaces": ["inference"]}])
    assert verification(a_snapshot(policy=lowered), a_share_model()) is None
    elsewhere = configured(overrides=[{"minimumPolicy": "Off", "namespaces": ["sandbox"]}])
    assert first_block(spec_of(a_share_model()), a_snapshot(policy=elsewhere)) is not None


def test_a_deployment_that_wants_verification_is_told_that_no_image_does_it():
    block = first_block(spec_of(on_a_share(digest=ROOT)), a_snapshot())
    assert block is not None
    assert block.reason is SpecReason.VERIFIER_NOT_CONFIGURED
    assert "leave `weights.integrity` out" in block.message
    assert "minimumPolicy" not in block.message
    assert first_block(spec_of(on_a_share(digest=ROOT, policy="Off")), a_snapshot()) is None


# ---------------------------------------------------------------------- keys


def test_keys_of_the_configuration_count_for_everyone():
    container = verification(a_snapshot(policy=configured(publicKeys=[KEY])), a_share_model())
    assert container is not None
    assert container["args"].count(KEY) == 1


def test_a_key_of_the_spec_must_be_listed_where_any_is():
    block = first_block(spec_of(on_a_share(publicKey=OTHER_KEY)), a_snapshot(policy=configured(publicKeys=[KEY])))
    assert block is not None
    assert block.reason is SpecReason.INTEGRITY_KEY_REFUSED
    narrowed = verification(
        a_snapshot(policy=configured(publicKeys=[KEY, OTHER_KEY])), on_a_share(publicKey=OTHER_KEY.strip())
    )
    assert narrowed is not None
    assert KEY not in narrowed["args"]
    assert OTHER_KEY.strip() in narrowed["args"]


@pytest.mark.parametrize(
    "unusable",
    [
        "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        KEY + OTHER_KEY,
        AN_ED25519_KEY,
    ],
)
def test_a_key_that_no_manifest_can_be_signed_with_is_refused_before_a_pod_exists(unusable):
    block = first_block(spec_of(on_a_share(publicKey=unusable)), a_snapshot(policy=configured()))
    assert block is not None
    assert block.reason is SpecReason.INTEGRITY_KEY_REFUSED
    with pytest.raises(ValueError, match="P-256"):
        configured(publicKeys=[unusable])


# ---------------------------------------------------------------------- what is rendered


def test_the_container_reads_the_served_mount_and_nothing_else():
    container = verification(a_snapshot(policy=configured()), on_a_share(digest=ROOT, allow=["x.py"]))
    assert container is not None
    assert container["image"] == NEW
    assert container["args"][:4] == ["verify", "/weights", "--digest", ROOT]
    assert container["args"][4:6] == ["--allow", "x.py"]
    assert container["volumeMounts"] == [{"name": "weights", "mountPath": "/weights", "readOnly": True}]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert "limits" not in container["resources"]
    assert "env" not in container


def test_it_runs_before_the_links_to_a_staged_cache():
    manifest = a_nim_model()
    manifest["spec"]["engine"]["nim"]["profile"] = "vllm-bf16-tp1-pp1"
    manifest["spec"]["weights"]["integrity"] = {"digest": ROOT}
    decision = plan(spec_of(manifest), a_snapshot(replace(a_snapshot().owner, name="nim"), policy=configured()), NOW)
    pod = next(c.manifest for c in decision.apply if c.manifest["kind"] == "Deployment")["spec"]["template"]["spec"]
    names = [container["name"] for container in pod["initContainers"]]
    assert names == ["check-accelerators", "verify-weights", "link-cache"]


def test_a_text_of_the_spec_is_no_reference_to_a_variable():
    container = verification(a_snapshot(policy=configured()), on_a_share(digest=ROOT, allow=["$(HOME).py"]))
    assert container is not None
    assert "$$(HOME).py" in container["args"]


def test_the_deadline_of_the_rollout_leaves_time_for_both():
    without = plan(spec_of(a_share_model()), a_snapshot(), NOW)
    with_it = plan(spec_of(on_a_share(digest=ROOT)), a_snapshot(policy=configured()), NOW)
    budget, both = (
        next(c.manifest for c in decision_of.apply if c.manifest["kind"] == "Deployment")["spec"][
            "progressDeadlineSeconds"
        ]
        for decision_of in (without, with_it)
    )
    assert both - budget == spec_of(a_share_model()).startup_budget_seconds


# ---------------------------------------------------------------------- an upgrade restarts no pod


def test_a_newer_image_waits_until_the_pods_change_for_another_reason():
    manifest = on_a_share(digest=ROOT)
    snapshot = applied(a_snapshot(policy=configured(verifiers=[OLD])), manifest)
    upgraded = replace(snapshot, policy=configured(verifiers=[NEW, OLD]))
    assert not plan(spec_of(manifest), upgraded, NOW).apply
    dropped = verification(replace(snapshot, policy=configured(verifiers=[NEW])), manifest)
    assert dropped is not None
    assert dropped["image"] == NEW


def test_one_more_key_restarts_no_pod_and_one_less_does():
    snapshot = applied(a_snapshot(policy=configured(publicKeys=[KEY])), a_share_model())
    more = replace(snapshot, policy=configured(publicKeys=[OTHER_KEY, KEY]))
    assert not plan(spec_of(a_share_model()), more, NOW).apply
    other = verification(replace(snapshot, policy=configured(publicKeys=[OTHER_KEY])), a_share_model())
    assert other is not None
    assert KEY not in other["args"]


def test_a_pod_that_does_not_know_the_signer_gets_the_key_that_was_listed_later():
    snapshot = applied(a_snapshot(policy=configured(publicKeys=[KEY])), a_share_model())
    more = replace(snapshot, policy=configured(publicKeys=[OTHER_KEY, KEY]))
    refusing = found_in(more, failed(WeightsReason.WRONG_KEY))
    container = verification(refusing, a_share_model())
    assert container is not None
    assert {KEY, OTHER_KEY} <= {*container["args"]}


def test_an_image_that_others_put_there_does_not_stay():
    manifest = on_a_share(digest=ROOT)
    snapshot = applied(a_snapshot(policy=configured()), manifest)
    live = snapshot.children["Deployment", "llama"]
    live["spec"]["template"]["spec"]["initContainers"][0]["image"] = "contoso.azurecr.io/x@sha256:" + "c" * 64
    container = verification(snapshot, manifest)
    assert container is not None
    assert container["image"] == NEW


# ---------------------------------------------------------------------- its result

PASSED: dict[str, Any] = {
    "schema": "x",
    "verdict": "Pass",
    "digest": ROOT,
    "signedBy": "CN=platform",
    "files": 9,
    "bytes": 7,
    "seconds": 1.0,
}


def passed(**fields: Any) -> str:
    return termination_message([], {**PASSED, **fields}).decode()


def failed(reason: WeightsReason, file: str = "model-00002-of-00003.safetensors") -> str:
    verdict = "Unknown" if reason.is_unknown else "Fail"
    finding = WeightsFinding(reason, file, "sha256:aa", "sha256:bb")
    return termination_message([finding], {**PASSED, "verdict": verdict}).decode()


def found_in(
    snapshot: ClusterSnapshot, *messages: str, ended: Callable[[str], dict[str, Any]] | None = None
) -> ClusterSnapshot:
    """The snapshot in which pods of the present template verified their weights with these termination messages."""
    template = snapshot.children["Deployment", "llama"]["spec"]["template"]["metadata"]
    shape = ended or (lambda message: {"state": {"terminated": {"exitCode": 0, "message": message}}})
    pods = tuple(
        {
            "kind": "Pod",
            "metadata": {"name": f"llama-{position}", "uid": f"u{position}", "labels": template["labels"]},
            "status": {"initContainerStatuses": [{"name": "verify-weights", "restartCount": 0, **shape(message)}]},
        }
        for position, message in enumerate(messages)
    )
    return replace(snapshot, pods=pods)


def weights_of(snapshot: ClusterSnapshot, manifest: Manifest) -> dict[str, Any]:
    spec = spec_of(manifest)
    return conditions(status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW))["WeightsVerified"]


@pytest.fixture
def snapshot() -> ClusterSnapshot:
    return applied(a_snapshot(policy=configured()), on_a_share(digest=ROOT))


def test_weights_are_verified_when_a_pod_says_so(snapshot):
    assert weights_of(snapshot, on_a_share(digest=ROOT))["reason"] == "IntegrityPending"
    weights_condition = weights_of(found_in(snapshot, passed(), passed()), on_a_share(digest=ROOT))
    assert (weights_condition["status"], weights_condition["reason"]) == ("True", "IntegrityVerified")
    assert ROOT in weights_condition["message"]
    assert "CN=platform" in weights_condition["message"]


@pytest.mark.parametrize("reason", WeightsReason)
def test_every_finding_is_a_reason_of_its_own_that_names_the_file(snapshot, reason):
    weights_condition = weights_of(found_in(snapshot, passed(), failed(reason)), on_a_share(digest=ROOT))
    assert (weights_condition["status"], weights_condition["reason"]) == (
        "Unknown" if reason.is_unknown else "False",
        reason.value,
    )
    assert "'model-00002-of-00003.safetensors'" in weights_condition["message"]
    assert "expected sha256:aa, found sha256:bb" in weights_condition["message"]


def test_a_container_that_waits_for_its_next_try_still_says_why(snapshot):
    def backing_off(message: str) -> dict[str, Any]:
        return {
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"exitCode": 1, "message": message}},
        }

    waiting = serving(found_in(snapshot, failed(WeightsReason.DIGEST_MISMATCH), ended=backing_off), 0, replicas=1)
    spec = spec_of(on_a_share(digest=ROOT))
    ready = conditions(status(spec, waiting, plan(spec, waiting, NOW), (), NOW))["Ready"]
    assert (ready["status"], ready["reason"]) == ("False", "DigestMismatch")
    assert "model-00002-of-00003.safetensors" in ready["message"]


@pytest.mark.parametrize("reason", WeightsReason)
def test_every_finding_is_an_event_and_has_a_command(snapshot, reason):
    spec = spec_of(on_a_share(digest=ROOT))
    before, after = (
        status(spec, observed, plan(spec, observed, NOW), (), NOW)
        for observed in (snapshot, found_in(snapshot, failed(reason)))
    )
    weight_events = [
        announcement for announcement in announcements(before, after) if announcement.action == "VerifyWeights"
    ]
    assert [(announcement.severity, announcement.reason) for announcement in weight_events] == (
        [] if reason.is_unknown else [("Warning", reason.value)]
    )
    remedy = remedy_for(reason.value, "inference", "llama", "llama-0", "")
    assert remedy is not None
    assert remedy.commands == ("kubectl logs llama-0 --namespace inference --container verify-weights",)


def test_weights_that_match_only_their_own_manifest_are_not_verified():
    manifest = on_a_share(policy="Warn")
    snapshot = applied(a_snapshot(policy=configured(minimumPolicy="Off")), manifest)
    weights_condition = weights_of(found_in(snapshot, passed(signedBy="")), manifest)
    assert (weights_condition["status"], weights_condition["reason"]) == ("Unknown", "IntegrityNotPinned")


def test_message_of_pinned_weights_names_a_signer_only_where_somebody_signed(snapshot):
    manifest = on_a_share(digest=ROOT)
    snapshot = applied(a_snapshot(policy=configured()), manifest)
    signed, unsigned = (weights_of(found_in(snapshot, passed(signedBy=name)), manifest) for name in ("CN=platform", ""))
    assert signed["message"].endswith(f"root digest {ROOT}, signed by CN=platform")
    assert unsigned["message"].endswith(f"root digest {ROOT}")


def test_finding_without_a_file_or_an_expected_value_names_neither(snapshot):
    manifest = on_a_share(digest=ROOT)
    snapshot = applied(a_snapshot(policy=configured()), manifest)
    finding = WeightsFinding(WeightsReason.DIGEST_MISMATCH, "", "", "no manifest")
    message = termination_message([finding], {**PASSED, "verdict": "Fail"}).decode()
    assert weights_of(found_in(snapshot, message), manifest)["message"] == "pod 'llama-0': no manifest"


def test_pods_that_verified_different_weights_are_told(snapshot):
    manifest = on_a_share(publicKey=KEY)
    snapshot = applied(a_snapshot(policy=configured()), manifest)
    weights_condition = weights_of(found_in(snapshot, passed(), passed(digest=f"sha256:{'77' * 32}")), manifest)
    assert (weights_condition["status"], weights_condition["reason"]) == ("Unknown", "IntegrityNotPinned")


@pytest.mark.parametrize(
    "message",
    [
        "", "no JSON", "[]", "null", "{}", json.dumps({**PASSED, "findings": [], "omitted": 0, "verdict": "Fail"}),
        json.dumps({**PASSED, "findings": [{"reason": "Invented"}], "omitted": 0, "verdict": "Fail"}),
        json.dumps({**PASSED, "findings": [], "omitted": 0, "files": "many"}), "[" * 4000,
        json.dumps({**PASSED, "findings": [{"reason": "DigestMismatch"}], "omitted": 0}),
    ],
)  # fmt: skip
def test_a_message_of_another_form_proves_nothing(snapshot, message):
    assert weights_of(found_in(snapshot, message), on_a_share(digest=ROOT))["reason"] == "IntegrityPending"


def test_a_pod_of_an_earlier_template_proves_nothing(snapshot):
    older = found_in(snapshot, passed())
    older.pods[0]["metadata"]["labels"] = {**older.pods[0]["metadata"]["labels"], TEMPLATE_LABEL: "0" * 16}
    assert weights_of(older, on_a_share(digest=ROOT))["reason"] == "IntegrityPending"

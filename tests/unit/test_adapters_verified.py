"""Adapters are verified as the weights are: by the same container, policy and keys, each with a digest of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.adapters import MOST_ADAPTERS, AdapterStatus
from hermetic.api.configuration import Configuration
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.weights_reasons import WeightsReason
from hermetic.objects.names import TEMPLATE_LABEL
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gates import first_block
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from hermetic.weights.findings import LARGEST_MESSAGE, WeightsFinding, termination_message
from testbed.damaged_files import flip_a_bit
from tests.attestations import a_p256_key, public_pem_of
from tests.commandline import hermetic
from tests.scenarios import Manifest, a_share_model, an_sglang_model
from tests.snapshots import NOW, POLICY, a_snapshot, carried_out, conditions, spec_of
from tests.weights import a_model, keys
from tests.weights_layouts import lora

ROOT, SQL_ROOT = (f"sha256:{digits * 32}" for digits in ("5e", "a1"))
OLD, NEW = (f"contoso.azurecr.io/hermetic@sha256:{digit * 64}" for digit in "ab")
KEY = public_pem_of(a_p256_key(1).key)
SQL = {"name": "sql", "folder": "adapters/sql", "rank": 16, "integrity": {"digest": SQL_ROOT}}
UNPINNED = {"name": "de", "folder": "adapters/de", "rank": 16}
INSIDE = {"name": "inside", "folder": "llama-3-1-8b/fp8/adapters/in", "rank": 8}


def configured(**integrity: Any) -> Configuration:
    configuration = POLICY.model_dump(by_alias=True, exclude_none=True)
    return Configuration.model_validate({**configuration, "integrity": {"verifiers": [NEW], **integrity}})


def adapted(*adapters: Manifest, **integrity: Any) -> Manifest:
    manifest = a_share_model(adapters=list(adapters))
    manifest["spec"]["weights"]["integrity"] = {"digest": ROOT, **integrity}
    return manifest


def verification(manifest: Manifest, snapshot: ClusterSnapshot) -> dict[str, Any]:
    decided = plan(spec_of(manifest), snapshot, NOW)
    assert decided.blocked is None, decided.blocked
    pod = next(c.manifest for c in decided.apply if c.manifest["kind"] == "Deployment")["spec"]["template"]["spec"]
    verifier: dict[str, Any] = next(
        container for container in pod["initContainers"] if container["name"] == "verify-weights"
    )
    return verifier


def applied(snapshot: ClusterSnapshot, manifest: Manifest) -> ClusterSnapshot:
    for _ in range(4):
        snapshot = carried_out(snapshot, plan(spec_of(manifest), snapshot, NOW))
    assert not plan(spec_of(manifest), snapshot, NOW).apply
    return snapshot


def adapters_read_by(container: dict[str, Any]) -> list[str]:
    return [value for flag, value in pairwise(container["args"]) if flag == "--adapter"]


# ---------------------------------------------------------------------- what is rendered, and what is refused


def test_container_reads_every_adapter_beside_the_model_with_its_digest() -> None:
    container = verification(adapted(SQL, INSIDE), a_snapshot(policy=configured()))
    assert adapters_read_by(container) == [f"/adapters/sql={SQL_ROOT}"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/weights", "/adapters/sql"}
    assert all(mount["readOnly"] for mount in container["volumeMounts"])


def test_container_compares_the_rank_of_every_adapter_with_the_largest_that_the_engine_gets() -> None:
    inside = {**INSIDE, "rank": 64}
    arguments = verification(adapted(SQL, inside), a_snapshot(policy=configured()))["args"]
    assert ("--max-lora-rank", "64") in list(pairwise(arguments))
    without = verification(adapted(inside), a_snapshot(policy=configured()))["args"]
    assert "--max-lora-rank" not in without


def test_adapter_without_a_digest_needs_a_key_that_signs() -> None:
    block = first_block(spec_of(adapted(SQL, UNPINNED)), a_snapshot(policy=configured()))
    assert isinstance(block, Blocks)
    assert (block.reason, block.field) == (SpecReason.INTEGRITY_NOT_PINNED, "spec.adapters")
    assert "'de'" in block.message
    assert "'sql'" not in block.message
    signed = verification(adapted(SQL, UNPINNED), a_snapshot(policy=configured(publicKeys=[KEY])))
    assert adapters_read_by(signed) == [f"/adapters/sql={SQL_ROOT}", "/adapters/de"]


def test_adapter_in_the_folder_of_the_model_is_pinned_with_it() -> None:
    assert first_block(spec_of(adapted(INSIDE)), a_snapshot(policy=configured())) is None


def test_weights_without_digest_are_named_before_their_adapters() -> None:
    manifest = a_share_model(adapters=[UNPINNED])
    block = first_block(spec_of(manifest), a_snapshot(policy=configured()))
    assert isinstance(block, Blocks)
    assert block.field == "spec.weights.integrity"


@pytest.mark.parametrize(
    ("adapters", "integrity", "is_verified"),
    [([UNPINNED], None, False), ([SQL], None, True), ([SQL], {"policy": "Off"}, False)],
    ids=["no digest", "a digest of the adapter", "a digest, and a policy that switches it off"],
)
def test_digest_of_an_adapter_asks_for_verification_where_the_configuration_does_not(
    adapters: list[Manifest], integrity: Manifest | None, is_verified: bool
) -> None:
    """A digest that nothing compares would only look like a safeguard."""
    manifest = a_share_model(adapters=adapters)
    if integrity is not None:
        manifest["spec"]["weights"]["integrity"] = integrity
    block = first_block(spec_of(manifest), a_snapshot(policy=configured(minimumPolicy="Off")))
    assert (block is not None) is is_verified
    assert block is None or block.reason is SpecReason.INTEGRITY_NOT_PINNED
    without = first_block(spec_of(manifest), a_snapshot(policy=configured(minimumPolicy="Off", verifiers=[])))
    assert (without is not None and without.reason is SpecReason.VERIFIER_NOT_CONFIGURED) is is_verified


def test_image_that_may_not_know_adapters_is_replaced_when_the_first_one_is_added() -> None:
    """Pods keep the image of their verification while it is listed; an earlier release ends with a usage error."""
    snapshot = applied(a_snapshot(policy=configured(verifiers=[OLD])), adapted())
    upgraded = replace(snapshot, policy=configured(verifiers=[NEW, OLD]))
    assert not plan(spec_of(adapted()), upgraded, NOW).apply
    assert verification(adapted(SQL), upgraded)["image"] == NEW
    knows = applied(a_snapshot(policy=configured(verifiers=[OLD])), adapted(SQL))
    assert not plan(spec_of(adapted(SQL)), replace(knows, policy=configured(verifiers=[NEW, OLD])), NOW).apply


# ---------------------------------------------------------------------- the command


@pytest.fixture
def staged(tmp_path: Path) -> tuple[Path, Path, str, str]:
    """A model, an adapter beside it, and the root digest of each."""
    model, adapter = a_model(tmp_path / "model", size=64 * 2**10), lora(tmp_path / "adapters" / "sql")
    digests = [str(json.loads(hermetic("manifest", folder, "-o", "json").out)["digest"]) for folder in (model, adapter)]
    return model, adapter, *digests


def test_model_and_adapter_pass_with_their_digests(staged: tuple[Path, Path, str, str], tmp_path: Path) -> None:
    model, adapter, root, adapter_root = staged
    log = tmp_path / "log"
    command = ("verify", model, "--digest", root, "--adapter", f"{adapter}={adapter_root}", "--termination-log", log)
    ran = hermetic(*command, "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert (document["verdict"], document["digest"], document["adapters"]) == ("Pass", root, {"sql": adapter_root})
    assert json.loads(log.read_text())["adapters"] == {"sql": adapter_root}
    assert f"adapter sql: {adapter_root}" in hermetic(*command).out


def test_result_without_adapters_is_what_it_was(staged: tuple[Path, Path, str, str]) -> None:
    assert "adapters" not in json.loads(hermetic("verify", staged[0], "--digest", staged[2], "-o", "json").out)


@pytest.mark.parametrize("damage", ["changed", "added", "another", "gone"])
def test_wrong_adapter_fails_with_its_folder_while_the_model_is_right(
    staged: tuple[Path, Path, str, str], damage: str
) -> None:
    model, adapter, root, adapter_root = staged
    shard = adapter / "adapter_model.safetensors"
    if damage == "changed":
        flip_a_bit(shard)
    elif damage == "added":
        (adapter / "adapter_model.bin").write_bytes(b"pickle")
    elif damage == "another":
        adapter_root = root
    else:
        shard.unlink()
    ran = hermetic("verify", model, "--digest", root, "--adapter", f"{adapter}={adapter_root}", "-o", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["verdict"]) == (1, "Fail")
    assert all(finding["file"].startswith(str(adapter)) for finding in document["findings"])
    assert document["adapters"]["sql"] == document["findings"][0]["reason"]


def test_pickled_adapter_is_refused_although_its_manifest_lists_it(tmp_path: Path) -> None:
    model, adapter = a_model(tmp_path / "model", size=64 * 2**10), lora(tmp_path / "sql")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    for folder in (model, adapter):
        hermetic("manifest", folder)
    findings = json.loads(hermetic("verify", model, "--adapter", adapter, "-o", "json").out)["findings"]
    assert [finding["file"] for finding in findings] == [f"{adapter}/adapter_model.bin"]


def test_signed_model_does_not_vouch_for_an_adapter_that_is_not_signed(tmp_path: Path) -> None:
    model, adapter = a_model(tmp_path / "model", size=64 * 2**10), lora(tmp_path / "sql")
    private, public = keys(tmp_path)
    for folder in (model, adapter):
        hermetic("manifest", folder)
    assert hermetic("sign", model, "--key", private).code == 0
    assert hermetic("verify", model, "--public-key", public, "--adapter", adapter).code == 1
    assert hermetic("sign", adapter, "--key", private).code == 0
    assert hermetic("verify", model, "--public-key", public, "--adapter", adapter).code == 0


@pytest.mark.parametrize("value", ["", "/", "a=sha256:00", "a=b", "=sha256:" + "0" * 64], ids=repr)
def test_adapter_of_another_form_is_bad_input(tmp_path: Path, value: str) -> None:
    assert hermetic("verify", tmp_path, "--adapter", value).code == 2


def test_result_of_the_most_adapters_with_the_longest_names_fits_with_its_first_finding() -> None:
    summary = {
        "schema": "hermetic.dev/weights-verification/v1", "verdict": "Fail", "digest": ROOT,
        "signedBy": "key 0123456789abcdef", "files": 10**6, "bytes": 10**13, "seconds": 1234.567,
        "adapters": {f"{'n' * 61}{number:02}": ROOT for number in range(MOST_ADAPTERS)},
    }  # fmt: skip
    finding = WeightsFinding(WeightsReason.DIGEST_MISMATCH, "f" * 400, ROOT, SQL_ROOT)
    message = termination_message([finding], summary)
    assert len(message) <= LARGEST_MESSAGE
    assert len(json.loads(message)["findings"]) == 1


# ---------------------------------------------------------------------- the status


def pods_in(
    snapshot: ClusterSnapshot, *pods: tuple[bool, bool], adapters: dict[str, str] | None = None
) -> ClusterSnapshot:
    """The snapshot with pods, each (of the present template, ready), whose verification told these adapters."""
    template = snapshot.children["Deployment", "llama"]["spec"]["template"]["metadata"]["labels"]
    findings = [WeightsFinding(WeightsReason.DIGEST_MISMATCH, "/adapters/sql/x", "a", "b")]
    wrong = findings if adapters and not all(text.startswith("sha256:") for text in adapters.values()) else []
    summary = {"verdict": "Fail" if wrong else "Pass", "digest": ROOT, "signedBy": "", "files": 1, "bytes": 1}
    message = termination_message(wrong, {**summary, "adapters": adapters or {}}).decode()
    state = {"state": {"terminated": {"exitCode": 0, "message": message}}}
    return replace(
        snapshot,
        pods=tuple(
            {
                "kind": "Pod",
                "metadata": {
                    "name": f"llama-{number}",
                    "uid": f"u{number}",
                    "labels": {**template, **({} if present else {TEMPLATE_LABEL: "another"})},
                },
                "status": {
                    "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                    "initContainerStatuses": [{"name": "verify-weights", "restartCount": 0, **state}],
                },
            }
            for number, (present, ready) in enumerate(pods)
        ),
    )


def reported(manifest: Manifest, snapshot: ClusterSnapshot) -> dict[str, Any]:
    spec = spec_of(manifest)
    return status(spec, snapshot, plan(spec, snapshot, NOW), (), NOW)


@pytest.mark.parametrize(
    ("pods", "state"),
    [
        ([], "Pending"),
        ([(True, False)], "Pending"),
        ([(False, True)], "Pending"),
        ([(True, True), (False, True)], "RollingOut"),
        ([(True, True), (True, False)], "Serving"),
        ([(True, True), (False, False)], "Serving"),
    ],
    ids=str,
)
def test_state_of_an_adapter_is_that_of_the_pods_that_serve(pods: list[tuple[bool, bool]], state: str) -> None:
    snapshot = applied(a_snapshot(policy=configured()), adapted(SQL, INSIDE))
    observed = pods_in(snapshot, *pods, adapters={"sql": SQL_ROOT})
    sql, inside = reported(adapted(SQL, INSIDE), observed)["adapters"]
    assert (sql["name"], sql["state"]) == ("sql", state)
    assert (inside["name"], inside["state"]) == ("inside", state)
    assert "verification" not in inside
    AdapterStatus.model_validate(sql)


def test_adapter_that_the_pods_do_not_have_yet_is_pending() -> None:
    """Behind a closed gate the Deployment keeps the template without it."""
    snapshot = pods_in(applied(a_snapshot(policy=configured()), adapted()), (True, True))
    assert [state["state"] for state in reported(adapted(SQL), snapshot)["adapters"]] == ["Pending"]


def test_name_that_begins_as_another_is_not_taken_for_it() -> None:
    longer = {**SQL, "name": "sql2"}
    snapshot = pods_in(applied(a_snapshot(policy=configured()), adapted(longer)), (True, True))
    states = reported(adapted(SQL, longer), snapshot)["adapters"]
    assert [state["state"] for state in states] == ["Pending", "Serving"]


def test_adapters_of_sglang_are_told_too() -> None:
    manifest = an_sglang_model("llama", adapters=[SQL])
    manifest["spec"]["weights"]["integrity"] = {"digest": ROOT}
    snapshot = pods_in(applied(a_snapshot(policy=configured()), manifest), (True, True))
    assert [state["state"] for state in reported(manifest, snapshot)["adapters"]] == ["Serving"]


def test_digest_of_an_adapter_is_told_and_so_is_the_reason_why_it_does_not_match() -> None:
    snapshot = applied(a_snapshot(policy=configured()), adapted(SQL))
    right = reported(adapted(SQL), pods_in(snapshot, (True, True), adapters={"sql": SQL_ROOT}))
    assert right["adapters"] == [{"name": "sql", "state": "Serving", "verification": SQL_ROOT}]
    assert conditions(right)["WeightsVerified"]["status"] == "True"
    assert "the adapters sql" in conditions(right)["WeightsVerified"]["message"]
    wrong = reported(adapted(SQL), pods_in(snapshot, (True, False), adapters={"sql": "DigestMismatch"}))
    assert wrong["adapters"] == [{"name": "sql", "state": "Pending", "verification": "DigestMismatch"}]
    assert conditions(wrong)["WeightsVerified"]["status"] == "False"
    assert "/adapters/sql/x" in conditions(wrong)["WeightsVerified"]["message"]


def test_model_without_adapters_has_none_in_its_status() -> None:
    snapshot = pods_in(applied(a_snapshot(policy=configured()), adapted()), (True, True))
    assert "adapters" not in reported(adapted(), snapshot)


def test_pods_that_verified_different_adapters_by_a_key_prove_nothing() -> None:
    policy = configured(publicKeys=[KEY])
    snapshot = applied(a_snapshot(policy=policy), adapted(UNPINNED))
    first = pods_in(snapshot, (True, True), adapters={"de": ROOT}).pods
    second = pods_in(snapshot, (True, True), (True, True), adapters={"de": SQL_ROOT}).pods
    observed = replace(snapshot, pods=(*first, second[1]))
    assert conditions(reported(adapted(UNPINNED), observed))["WeightsVerified"]["status"] == "Unknown"

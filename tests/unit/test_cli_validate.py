"""`hermetic validate` names everything that is wrong, where it is, and what would be accepted."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from hermetic.cli.manifest_validation import GATES_OF_THE_PLATFORM, GATES_OF_THE_SPEC
from hermetic.plan.allowed_gateways import gateway_api_is_served, path_is_free
from hermetic.plan.gates import GATES, address_is_free
from hermetic.plan.image_volumes import image_volumes_are_supported
from hermetic.plan.route_group import group_is_uniform
from testbed.installation import CONFIGURATION
from tests.commandline import hermetic
from tests.corpus.cases import Invalid
from tests.corpus.invalid import INVALID
from tests.corpus.manifests import Manifest
from tests.corpus.valid import VALID
from tests.corpus.yaml_traps import TRAPS, Trap
from tests.scenarios import NIM_IMAGE, a_baked_model, a_share_model, an_egress_audit, changed

SAMPLES = Path(__file__).resolve().parents[2] / "manifests" / "samples"


def typed(*manifests: Manifest) -> str:
    return yaml.safe_dump_all(manifests, sort_keys=False, allow_unicode=True)


def line_of(text: str, text_of_line: str) -> int:
    """The line that holds these words, from 1."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if text_of_line in line)


def test_every_sample_is_valid() -> None:
    ran = hermetic("validate", "-f", SAMPLES)
    assert (ran.code, ran.err) == (0, "")
    assert len(ran.out.splitlines()) == len(list(SAMPLES.glob("*.yaml")))


def test_several_files_may_follow_as_the_shell_expands_them() -> None:
    files = sorted(SAMPLES.glob("*.yaml"))
    assert hermetic("validate", "-f", *files).out == hermetic("validate", "-f", SAMPLES).out


@pytest.mark.parametrize("manifest", [manifest for _, manifest in VALID], ids=[name for name, _ in VALID])
def test_what_the_api_server_accepts_is_valid(manifest: Manifest) -> None:
    ran = hermetic("validate", "-f", "-", stdin=json.dumps(manifest))
    assert ran.code == 0 or _only_gates_object(ran.errors), ran.err


def _only_gates_object(errors: list[str]) -> bool:
    """The engine's arguments and sizes are judged by the operator's gates, which the API server does not know."""
    gates = ("EngineFlagUnknown", "EngineSettingNotAllowed", "MemoryTooSmall")
    return all(any(reason in error for reason in gates) for error in errors)


@pytest.mark.parametrize("case", INVALID, ids=lambda case: case.name)
def test_what_the_api_server_refuses_is_refused_by_field_and_message(case: Invalid) -> None:
    ran = hermetic("validate", "-f", "-", stdin=json.dumps(case.manifest))
    assert ran.code == 2
    assert any(case.path in error and " ".join(case.says.split()) in error for error in ran.errors), ran.err


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
def test_yaml_that_means_something_else_is_refused_at_its_place(trap: Trap) -> None:
    ran = hermetic("validate", "-f", "-", stdin=trap.text)
    assert ran.code == 2
    assert re.search(rf"standard input:\d+:\d+: ({re.escape(trap.path)}: .*must be|'.nan' is a number that)", ran.err)


def test_off_without_quotes_says_to_quote_it() -> None:
    ran = hermetic("validate", "-f", "-", stdin=typed(a_baked_model()) + "  isolation: {enforcement: Off}\n")
    assert "spec.isolation.enforcement: false: must be 'Enforce', 'Report' or 'Off'" in ran.err
    assert "put it in quotes" in ran.err


def test_every_problem_of_every_document_and_file_is_listed_in_reading_order(tmp_path: Path) -> None:
    first = typed(changed(a_baked_model("a"), replicas=-1, drainSeconds="5"), {"kind": "Pod"})
    last = typed(a_baked_model("Bad_Name")) + "--- [\n"
    (tmp_path / "a.yaml").write_text(first)
    (tmp_path / "b.yaml").write_text(last)
    ran = hermetic("validate", tmp_path / "a.yaml", tmp_path / "missing.yaml", tmp_path / "b.yaml")
    assert ran.code == 2
    blamed = [error.split(": ", 2)[2].removeprefix(f"{tmp_path}/") for error in ran.errors]
    expected = [
        f"a.yaml:{line_of(first, 'replicas')}:3: spec.replicas: -1: ",
        f"a.yaml:{line_of(first, 'drainSeconds')}:3: spec.drainSeconds: ",
        f"a.yaml:{line_of(first, 'Pod')}:1: kind: Pod: ",
        "missing.yaml: No such file",
        f"b.yaml:{line_of(last, 'Bad_Name')}:3: metadata.name: ",
        f"b.yaml:{line_of(last, '--- [') + 1}:1: is not YAML: ",
    ]
    assert len(blamed) == len(expected)
    for fault, beginning in zip(blamed, expected, strict=True):
        assert fault.startswith(beginning)


def test_every_broken_rule_of_one_object_is_told_with_what_was_typed() -> None:
    manifest = a_baked_model(model={"name": "phi", "aliases": ["small"]}, endpoint={"apiKey": {"secretName": "key"}})
    nim = {"image": NIM_IMAGE, "line": "1.0", "profile": "tp2", "modelPath": "/x", "extraArgs": ["--x"]}
    both = hermetic("validate", "-f", "-", stdin=typed(changed(manifest, engine={"nim": nim})))
    assert [error.split(": ", 3)[3][:30] for error in both.errors] == ['spec.engine.nim: {"image": "co'] * 2
    nim = {"image": NIM_IMAGE, "line": "2.1", "profile": "tp2"}
    three = hermetic("validate", "-f", "-", stdin=typed(changed(manifest, engine={"nim": nim})))
    fields = [": ".join(error.split(": ")[3:5]) for error in three.errors]
    assert sorted(fields) == [
        'spec.endpoint.apiKey: {"secretName"',
        'spec.engine.nim.profile: "tp2"',
        'spec.model.aliases: ["small"]',
    ]


def test_the_form_of_an_error_is_that_of_the_contract() -> None:
    text = typed(changed(a_baked_model(), replicas=300))
    where = f"standard input:{line_of(text, 'replicas')}:3"
    assert hermetic("validate", "-f", "-", stdin=text).err.splitlines() == [
        f"error: HRM-API-001: {where}: spec.replicas: 300: must be less than or equal to 256",
        "fix: correct it; docs/api.md describes spec.replicas "
        "(with a cluster: kubectl explain modeldeployment.spec.replicas)",
    ]


def test_arguments_are_judged_by_the_release_that_version_names() -> None:
    manifest = a_baked_model()
    manifest["spec"]["engine"]["vllm"] |= {"version": "0.24.0", "extraArgs": ["--no-such-flag"]}
    ran = hermetic("validate", "-f", "-", stdin=typed(manifest))
    assert ran.code == 2
    assert "EngineFlagUnknown: `engine.vllm.extraArgs` holds '--no-such-flag', which vLLM 0.24" in ran.err
    assert ran.fixes == ["fix: Correct or remove the argument in extraArgs, or change the engine's version."]


def test_every_gate_that_objects_is_heard(tmp_path: Path) -> None:
    manifest = changed(a_share_model(), resources={"memory": "1Gi"})
    manifest["spec"]["engine"]["vllm"]["version"] = "0.1.0"
    (tmp_path / "config.yaml").write_text("registries: []\n")
    ran = hermetic("validate", "-f", "-", "--config", tmp_path / "config.yaml", stdin=typed(manifest))
    reasons = [error.split(": ")[3] for error in ran.errors]
    assert sorted(reasons) == [
        "EngineVersionUnsupported", "MemoryTooSmall", "RegistryNotAllowed", "ShareNotAllowed", "VerifierNotConfigured",
    ]  # fmt: skip
    lines = {error.split(": ")[3]: int(error.split(": ")[2].split(":")[1]) for error in ran.errors}
    assert lines["EngineVersionUnsupported"] == line_of(typed(manifest), "version: 0.1.0")
    assert lines["MemoryTooSmall"] == line_of(typed(manifest), "memory: 1Gi")
    assert "- {host: contoso.azurecr.io, namespaces: [default]}" in ran.err


def test_allow_lists_are_asked_for_the_namespace_of_the_manifest(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("registries: [{host: contoso.azurecr.io, namespaces: [inference]}]\n")
    manifest = typed(a_baked_model())
    assert hermetic("validate", "-f", "-", "--config", config, "-n", "inference", stdin=manifest).code == 0
    assert hermetic("validate", "-f", "-", "--config", config, stdin=manifest).code == 2


@pytest.mark.parametrize("command", ["validate", "render"])
def test_weights_that_no_image_verifies_are_refused_where_the_configuration_is_known(
    tmp_path: Path, command: str
) -> None:
    manifest, config = typed(a_share_model()), tmp_path / "config.yaml"
    assert hermetic(command, "-f", "-", stdin=manifest).code == 0
    config.write_text(yaml.safe_dump({key: CONFIGURATION[key] for key in ("registries", "shares")}))
    refused = hermetic(command, "-f", "-", "--config", config, stdin=manifest)
    assert refused.code == 2
    assert "VerifierNotConfigured: the weights must be verified before an engine starts" in refused.err
    config.write_text(yaml.safe_dump(CONFIGURATION))
    assert hermetic(command, "-f", "-", "--config", config, stdin=manifest).code == 0


def test_a_bad_configuration_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("registry: []\n")
    ran = hermetic("validate", "-f", "-", "--config", tmp_path / "config.yaml", stdin=typed(a_baked_model()))
    assert ran.code == 2
    assert ran.errors[0].startswith("error: HRM-CFG-001: ")


def test_what_kubectl_get_prints_of_several_objects_is_understood() -> None:
    items = [a_baked_model("one"), changed(a_baked_model("two"), replicas=-1)]
    listed = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}
    text = typed(listed)
    ran = hermetic("validate", "-f", "-", stdin=text)
    assert ran.out == f"standard input:{line_of(text, 'items:') + 1}:3: ModelDeployment default/one is valid\n"
    assert f"standard input:{line_of(text, 'replicas')}:5: spec.replicas: -1:" in ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "holds no manifest"),
        ("# nothing\n---\n", "holds no manifest"),
        ("[1, 2]\n", "must be an object with `apiVersion`, `kind`, `metadata` and `spec`"),
        ("just words\n", "must be an object"),
        ("kind: List\nitems: 3\n", "must be one of ModelDeployment"),
        ("apiVersion: hermetic.dev/v1alpha1\nkind: Modeldeployment\n", "did you mean 'ModelDeployment'?"),
        ("apiVersion: v1\nkind: ConfigMap\n", "kind: ConfigMap: must be one of ModelDeployment, EgressAudit"),
        ("kind: ModelDeployment\n", "apiVersion: is required"),
        ("kind: ModelDeployment\napiVersion: other.dev/v1\n", "must be 'hermetic.dev/v1alpha1'"),
        ("kind: ModelDeployment\nmetadata: []\n", "metadata: []: must be an object"),
        ("kind: ModelDeployment\nmetadata: {namespace: Prod}\n", 'metadata.namespace: "Prod": must be a DNS label'),
        ("kind: ModelDeployment\nmetadata: {labels: {a: 1}}\n", "metadata.labels.a: 1: must be a string"),
        (b"name: \xff\n", "standard input:1:7: is not UTF-8: byte 0xff"),
        ("\ufeffkind: x".encode("utf-16"), "is not UTF-8"),
        (
            "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in pairwise("abcdefghijklmopqrstuvwx")),
            "aliases",
        ),
        ("[" * 100_000, "nested more than 100 deep"),
    ],
)
def test_whatever_is_no_manifest_is_refused_in_words(text: str | bytes, says: str) -> None:
    ran = hermetic("validate", "-f", "-", stdin=text)
    assert ran.code == 2
    assert says in ran.err


def test_a_byte_order_mark_does_no_harm() -> None:
    assert hermetic("validate", "-f", "-", stdin="\ufeff" + typed(a_baked_model())).code == 0


def test_two_manifests_for_one_object_are_refused() -> None:
    ran = hermetic("validate", "-f", "-", stdin=typed(a_baked_model(), an_egress_audit(), a_baked_model()))
    assert "metadata.name: phi: must not be described twice: first at standard input:1:1" in ran.err


def test_the_kinds_of_the_evidence_are_judged_too() -> None:
    ran = hermetic("validate", "-f", "-", stdin=typed(an_egress_audit(maxEvidenceAgeSeconds=1)))
    assert "spec.maxEvidenceAgeSeconds: 1: must be greater than or equal to 300" in ran.err


def test_a_missing_file_alone_is_bad_input() -> None:
    ran = hermetic("validate", "-f", "/no/such/file.yaml")
    assert ran.code == 2
    assert ran.errors == ["error: HRM-INP-001: /no/such/file.yaml: No such file or directory"]


def test_no_file_at_all_is_bad_usage() -> None:
    assert hermetic("validate").code == 2


def test_json_says_the_same_for_programs() -> None:
    text = typed(a_baked_model(), changed(a_baked_model("b"), replicas=-1))
    ran = hermetic("validate", "-f", "-", "-o", "json", stdin=text)
    assert ran.code == 2
    assert json.loads(ran.out) == {
        "schema": "hermetic.dev/validation/v1",
        "valid": False,
        "accepted": [
            {"file": "standard input", "document": 1, "kind": "ModelDeployment", "name": "default/phi"},
        ],
        "problems": [
            {
                "code": "HRM-API-001",
                "file": "standard input",
                "document": 2,
                "line": line_of(text, "replicas"),
                "column": 3,
                "reason": "",
                "field": "spec.replicas",
                "value": "-1",
                "message": "must be greater than or equal to 0",
                "fix": "correct it; docs/api.md describes spec.replicas "
                "(with a cluster: kubectl explain modeldeployment.spec.replicas)",
            }
        ],
        "skipped": [],
        "foreign": 0,
    }


def test_every_gate_that_needs_no_cluster_is_one_of_validate() -> None:
    """Of a cluster are its release, its APIs and its nodes, and the other claimants of an address or a route."""
    of_a_cluster = (
        image_volumes_are_supported,
        address_is_free,
        gateway_api_is_served,
        path_is_free,
        group_is_uniform,
    )
    assert {*GATES_OF_THE_SPEC, *GATES_OF_THE_PLATFORM, *of_a_cluster} == {*GATES}


@pytest.mark.parametrize(
    ("resource", "count", "refused"),
    [
        ("nvidia.com/mig-1g.10gb", 2, True),
        ("nvidia.com/mig-3g.47gb", 7, True),
        ("nvidia.com/mig-1g.10gb", 1, False),
        ("nvidia.com/gpu", 2, False),
    ],
)
def test_several_slices_of_mig_are_refused_with_the_field_and_the_remedy(tmp_path, resource, count, refused):
    path = tmp_path / "model.yaml"
    path.write_text(yaml.safe_dump(a_share_model(accelerator={"resource": resource, "count": count})))
    ran = hermetic("validate", path)
    assert ran.code == (2 if refused else 0)
    sentence = (
        f'spec.accelerator.resource: "{resource}": must have a `count` of 1: engines do not divide a model over slices '
        "of a GPU (MIG); take a larger slice, or more `replicas`"
    )
    assert (sentence in ran.err) is refused, ran.err

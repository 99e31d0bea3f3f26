"""`hermetic validate -f FOLDER` on a GitOps repository: what is Hermetic's is judged, the rest is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermetic.cli import repository
from tests.commandline import hermetic
from tests.scenarios import a_baked_model, an_egress_audit, changed

CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}


def put(file: Path, *manifests: dict | str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        "---\n".join(document if isinstance(document, str) else yaml.safe_dump(document) for document in manifests)
    )
    return file


def test_every_file_below_is_read_and_other_kinds_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "apps/models/llama.yaml", CONFIG_MAP, a_baked_model())
    put(tmp_path / "apps/models/kustomization.yaml", {"kind": "Kustomization", "resources": ["llama.yaml"]})
    put(tmp_path / "clusters/one/audit.json", json.dumps(an_egress_audit()))
    put(tmp_path / "clusters/one/flux.yml", CONFIG_MAP, CONFIG_MAP)
    put(tmp_path / "README.md", "kind: ModelDeployment")
    put(tmp_path / ".git/x.yaml", changed(a_baked_model(), replicas=-1))
    ran = hermetic("validate", "-f", tmp_path)
    assert ran.code == 0, ran.err
    assert [line.removeprefix(f"{tmp_path}/").split(":")[0] for line in ran.out.splitlines()] == [
        "apps/models/llama.yaml",
        "clusters/one/audit.json",
    ]
    assert ran.err == "# 4 documents of other kinds skipped\n"


def test_a_wrong_manifest_anywhere_is_found_with_its_place(tmp_path: Path) -> None:
    file = put(tmp_path / "a/b/c/llama.yaml", CONFIG_MAP, changed(a_baked_model(), replicas=-1))
    ran = hermetic("validate", "-f", tmp_path)
    assert ran.code == 2
    assert ran.errors[0].startswith(f"error: HRM-API-001: {file}:")
    assert "spec.replicas: -1" in ran.errors[0]


def test_a_kind_of_ours_that_is_mistyped_is_no_foreign_one(tmp_path: Path) -> None:
    put(tmp_path / "a.yaml", {**a_baked_model(), "kind": "ModelDeploymnt"})
    assert "did you mean 'ModelDeployment'?" in hermetic("validate", "-f", tmp_path).errors[0]


def test_templates_and_patches_are_skipped_with_the_reason(tmp_path: Path) -> None:
    put(tmp_path / "models.yaml", a_baked_model())
    put(tmp_path / "chart/m.yaml", 'kind: ModelDeployment\nmetadata:\n  {{- include "labels" . | nindent 2 }}\n')
    put(tmp_path / "prod/kustomization.yaml", {"patches": [{"path": "less.yaml"}, {"patch": "a: b\n"}]})
    put(tmp_path / "dev/Kustomization", {"patchesStrategicMerge": ["../prod/less.yaml", "kind: x\n"]})
    put(tmp_path / "prod/less.yaml", {"kind": "ModelDeployment", "metadata": {"name": "phi"}, "spec": {"replicas": 1}})
    ran = hermetic("validate", "-f", tmp_path, "-o", "json")
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert [model_entry["name"] for model_entry in report["accepted"]] == ["default/phi"]
    assert {
        model_entry["file"].removeprefix(f"{tmp_path}/"): model_entry["why"].split(";")[0]
        for model_entry in report["skipped"]
    } == {
        "chart/m.yaml": "is a template",
        "prod/less.yaml": f"is a patch of {tmp_path}/prod/kustomization.yaml",
    }
    assert report["foreign"] == 2


def test_what_a_template_prints_is_read_from_standard_input_beside_other_kinds() -> None:
    printed = yaml.safe_dump_all([CONFIG_MAP, changed(a_baked_model(), replicas=-1), CONFIG_MAP])
    ran = hermetic("validate", "-f", "-", stdin=printed)
    assert ran.code == 2
    assert len(ran.errors) == 1
    assert "# 2 documents of other kinds skipped" in ran.err


def test_a_file_of_ours_that_is_no_yaml_is_an_error_and_one_of_others_is_not(tmp_path: Path) -> None:
    put(tmp_path / "other.yaml", "{{ .Values.all }}\n[")
    put(tmp_path / "models.yaml", a_baked_model())
    assert hermetic("validate", "-f", tmp_path).code == 0
    put(tmp_path / "ours.yaml", "kind: ModelDeployment\nspec: [\n")
    ran = hermetic("validate", "-f", tmp_path)
    assert (ran.code, len(ran.errors)) == (2, 1)
    assert "HRM-API-002" in ran.errors[0]


def test_folders_for_clusters_may_describe_the_same_object_and_one_folder_may_not(tmp_path: Path) -> None:
    for cluster in ("one", "two"):
        put(tmp_path / cluster / "llama.yaml", a_baked_model())
    assert hermetic("validate", "-f", tmp_path).code == 0
    put(tmp_path / "two/again.yaml", a_baked_model())
    ran = hermetic("validate", "-f", tmp_path)
    assert ran.code == 2
    assert "must not be described twice" in ran.errors[0]


def test_links_never_lead_in_a_circle_and_large_files_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "LARGEST_IN_A_FOLDER", 10_000)
    put(tmp_path / "a/llama.yaml", a_baked_model())
    (tmp_path / "a/up").symlink_to(tmp_path)
    (tmp_path / "a/gone.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "a/zero.yaml").symlink_to("/dev/zero")
    put(tmp_path / "a/large.json", '"' + "x" * 10_000 + '"')
    ran = hermetic("validate", "-f", tmp_path)
    assert ran.code == 0, ran.err
    assert len(ran.out.splitlines()) == 1
    assert [line.split(": skipped: ")[1] for line in ran.err.splitlines()] == [
        "is larger than 0 MiB; name it by itself if it counts",
        "is a link to a folder, which is not followed",
    ]


def test_a_folder_without_a_manifest_of_ours_is_bad_input(tmp_path: Path) -> None:
    put(tmp_path / "a.yaml", CONFIG_MAP)
    ran = hermetic("validate", "-f", tmp_path)
    assert ran.code == 2
    assert "holds no manifest of Hermetic's" in ran.errors[0]


def test_more_files_than_a_repository_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "MOST_FILES", 2)
    for number in range(3):
        put(tmp_path / f"{number}.yaml", CONFIG_MAP)
    assert "holds more than 2 files" in hermetic("validate", "-f", tmp_path).errors[0]

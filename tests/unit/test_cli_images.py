"""`hermetic images -f`: every image that manifests name, once, with what uses it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.cli.images.uses import uses_of
from hermetic.kinds import DEPLOYMENT
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.weights_verifier import Verifier
from tests.commandline import Ran, hermetic
from tests.scenarios import a_baked_model, a_nim_model, a_share_model, an_egress_audit, an_image_volume_model
from tests.snapshots import owner_of, spec_of

PROBE = f"contoso.azurecr.io/hermetic@sha256:{'9' * 64}"
EVERY_FORM = (a_share_model(), a_nim_model(), a_baked_model(), an_image_volume_model())


def listed(ran: Ran) -> dict[str, list[dict[str, str]]]:
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert document["schema"] == "hermetic.dev/images/v1"
    return {image["image"]: image["usedBy"] for image in document["images"]}


def of(*manifests: dict[str, Any], options: tuple[str, ...] = ()) -> Ran:
    return hermetic("images", "-f", "-", *options, stdin=yaml.safe_dump_all(manifests))


def images_in(value: Any) -> Iterator[str]:
    """Every image that rendered objects name, wherever it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in {"image", "reference"} and isinstance(inner, str):
                yield inner
            else:
                yield from images_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from images_in(inner)


@pytest.mark.parametrize("model", EVERY_FORM, ids=lambda model: model["metadata"]["name"])
def test_they_are_those_of_the_objects_that_are_rendered(model: dict[str, Any]) -> None:
    rendered = hermetic("render", "-f", "-", "-o", "json", stdin=yaml.safe_dump(model))
    assert set(listed(of(model, options=("-o", "json")))) == set(images_in(json.loads(rendered.out)["items"]))


def test_an_image_is_listed_once_with_all_that_use_it() -> None:
    models = a_baked_model("a"), a_baked_model("b")
    ((_, used),) = listed(of(*models, options=("-n", "inference", "-o", "json"))).items()
    assert [(usage["kind"], usage["namespace"], usage["name"], usage["field"]) for usage in used] == [
        ("ModelDeployment", "inference", name, "spec.engine.vllm.image") for name in ("a", "b")
    ]


def test_the_probe_of_an_egress_audit_is_one() -> None:
    ran = of(an_egress_audit(probe={"image": PROBE}), a_baked_model())
    assert ran.code == 0, ran.err
    assert f"{PROBE}\n  EgressAudit cluster: spec.probe.image\n" in ran.out
    assert "the operator's own image is not in these manifests" in ran.err


def test_a_folder_is_read_as_validate_reads_it(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "phi.yaml").write_text(yaml.safe_dump(a_baked_model()))
    (tmp_path / "other.yaml").write_text("kind: ConfigMap\n")
    assert len(listed(hermetic("images", "-f", tmp_path, "-o", "json"))) == 1


def test_nothing_is_listed_of_manifests_that_are_not_valid() -> None:
    ran = of(a_baked_model(), a_baked_model("b", replicas=-1))
    assert (ran.code, ran.out) == (2, "")


def test_the_container_of_the_operator_s_deployment_is_one() -> None:
    containers = [{"name": "operator", "image": PROBE}]
    deployment = {
        "kind": DEPLOYMENT.kind,
        "metadata": {"namespace": "hermetic-system", "name": "hermetic-operator"},
        "spec": {"template": {"spec": {"containers": containers}}},
    }
    (use,) = uses_of(deployment)
    assert (use.image, use.where) == (PROBE, "Deployment hermetic-system/hermetic-operator: container operator")


def test_every_field_of_the_json_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text().split("\n## hermetic images\n")[1]
    printed = json.loads(of(a_baked_model(), options=("-o", "json")).out)
    fields = [*printed, *printed["images"][0], *printed["images"][0]["usedBy"][0]]
    assert [field for field in fields if f"`{field}`" not in page.split("\n## ")[0]] == []


def test_what_verifies_weights_is_in_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"integrity": {"verifiers": [PROBE]}}))
    used_by = listed(of(a_baked_model(), options=("--config", str(tmp_path / "config.yaml"), "-o", "json")))
    assert used_by[PROBE] == [
        {"kind": "Configuration", "namespace": "", "name": "config.yaml", "field": "integrity.verifiers[0]"}
    ]
    alone = hermetic("images", "--config", tmp_path / "config.yaml")
    assert (alone.code, alone.errors[0].count("--config")) == (2, 1)


def test_of_the_deployment_of_a_model_only_what_verifies_its_weights_is_listed() -> None:
    pinned = a_share_model()
    verifier = Verifier(PROBE, "Require")
    rendered = next(
        rendering
        for rendering in render(owner_of(pinned), spec_of(pinned), PlatformSettings(verifier))
        if rendering["kind"] == "Deployment"
    )
    assert [(use.image, use.field) for use in uses_of(rendered)] == [(PROBE, "container verify-weights")]

"""The CRDs in crds/ are the models, and say everything that kubectl, Flux and a reader of `kubectl explain` ask for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel, Field

from hermetic.api.crd import DEFINITIONS, Definition, crd
from hermetic.api.modeldeployment import ModelDeployment
from hermetic.api.schema import NotStructural, Schema, structural_schema, with_defaults
from tests.sampled_groups import LONG
from tools.crds import as_yaml, file_name

CRDS = Path(__file__).resolve().parents[2] / "crds"
every_definition = pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.kind.kind)


def schema_of(definition: Definition) -> Schema:
    schema: Schema = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def fields(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema, bool]]:
    """(path, schema, required) of every field that people or the operator write, list items included."""
    for name, field in schema.get("properties", {}).items():
        if path == "" and name in {"apiVersion", "kind", "metadata"}:
            continue
        here = f"{path}.{name}".lstrip(".")
        yield here, field, name in schema.get("required", ())
        yield from fields(field, here)
    if "items" in schema:
        yield f"{path}[]", schema["items"], True
        yield from fields(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield f"{path}[*]", schema["additionalProperties"], True


@every_definition
def test_checked_in_crds_equal_the_models(definition: Definition) -> None:
    checked_in = (CRDS / file_name(definition)).read_text(encoding="utf-8")
    assert checked_in == as_yaml(definition), "run `make generate`"


def test_no_crd_is_checked_in_that_no_model_stands_behind() -> None:
    assert {path.name for path in CRDS.glob("*.hermetic.dev.yaml")} == {
        file_name(definition) for definition in DEFINITIONS
    }


@LONG
def test_checking_tells_stale_files_from_current_ones(tmp_path: Path) -> None:
    def generator(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tools", "crds", "--repository", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    folder = tmp_path / "crds"
    folder.mkdir()
    missing = generator("--check")
    assert missing.returncode == 1
    assert missing.stderr.count("is not what the models say\nfix: make generate") == len(DEFINITIONS)
    assert generator().stdout.split() == [str(folder / file_name(definition)) for definition in DEFINITIONS]
    assert generator("--check").returncode == 0
    (folder / file_name(DEFINITIONS[0])).write_text("kind: Other\n")
    assert generator("--check").returncode == 1


def test_short_names_and_categories_are_distinct() -> None:
    names = [crd(definition)["spec"]["names"] for definition in DEFINITIONS]
    assert [definition_names["shortNames"] for definition_names in names] == [["mdep"], ["eaudit"], ["eattest"]]
    assert [definition_names["categories"] for definition_names in names] == [
        ["all", "hermetic"],
        ["hermetic"],
        ["hermetic"],
    ]


def points(definition: Definition) -> dict[str, bool]:
    """What kubectl, kstatus, Flux, autoscalers and auditors look for in a CRD: one point each."""
    manifest = crd(definition)["spec"]
    version, names = manifest["versions"][0], manifest["names"]
    root = version["schema"]["openAPIV3Schema"]
    status = root["properties"].get("status", {})
    conditions = status.get("properties", {}).get("conditions", {})
    return {
        "status subresource": "status" in version["subresources"],
        "conditions": conditions.get("type") == "array",
        "conditions merge by type": conditions.get("x-kubernetes-list-map-keys") == ["type"],
        "observedGeneration per condition": "observedGeneration" in conditions.get("items", {}).get("required", ()),
        "observedGeneration of the status": "observedGeneration" in status.get("properties", {}),
        "status starts unseen": status.get("default") == {"observedGeneration": -1},
        "scale subresource": "scale" in version["subresources"],
        "short name": bool(names["shortNames"]),
        "own category": "hermetic" in names["categories"],
        "Ready and Reason columns": {"Ready", "Reason"}
        <= {column["name"] for column in version["additionalPrinterColumns"]},
        "CEL rules": any(rules(root)),
        "transition rules": any("oldSelf" in rule["rule"] for rule in rules(root)),
    }


# Evidence is put there once and never observed again: an EgressAttestation has no status, so nothing to be Ready.
POINTS_OF_EVIDENCE = {"short name", "own category", "CEL rules", "transition rules"}


def test_model_deployments_score_twelve_of_twelve() -> None:
    scored = points(DEFINITIONS[0])
    assert len(scored) == 12
    assert all(scored.values()), scored


def test_audits_score_every_point_but_scale() -> None:
    assert {point for point, scored in points(DEFINITIONS[1]).items() if not scored} == {"scale subresource"}


def test_attestations_score_every_point_that_evidence_can() -> None:
    assert {point for point, scored in points(DEFINITIONS[2]).items() if scored} == POINTS_OF_EVIDENCE


def rules(schema: Schema) -> Iterator[dict[str, Any]]:
    yield from schema.get("x-kubernetes-validations", ())
    for _, field, _ in fields(schema):
        yield from field.get("x-kubernetes-validations", ())


@every_definition
def test_every_field_is_described(definition: Definition) -> None:
    undescribed = {
        path
        for path, field, _ in fields(schema_of(definition))
        if not field.get("description", "").split("\n")[0].endswith((".", ")")) and not path.endswith(("[]", "[*]"))
    }
    assert undescribed == set()


@every_definition
def test_every_optional_field_says_its_default(definition: Definition) -> None:
    spec = schema_of(definition)["properties"]["spec"]
    members_of_unions = re.compile(r"^(engine|weights)\.\w+$")
    silent = {
        path
        for path, field, required in fields(spec)
        if not required and "Default: " not in field["description"] and not members_of_unions.match(path)
    }
    assert silent == set()


@every_definition
def test_descriptions_tell_the_defaults_that_the_server_applies(definition: Definition) -> None:
    spec = schema_of(definition)["properties"]["spec"]
    for path, field, _ in fields(spec):
        default = field.get("default")
        if isinstance(default, str | int):
            shown = "empty" if default == "" else str(default).lower()
            assert f"default: {shown}" in field["description"].lower().replace("'", ""), path


@every_definition
def test_numbers_of_a_spec_are_bounded_integers_and_say_their_range(definition: Definition) -> None:
    for path, field, _ in fields(schema_of(definition)["properties"]["spec"]):
        assert field.get("type") != "number", path
        if field.get("type") == "integer":
            assert "enum" in field or {"minimum", "maximum"} <= field.keys(), path
            largest = max(field.get("enum") or [field["maximum"]])
            assert str(largest) in field["description"].replace(",", ""), path


@every_definition
def test_strings_lists_and_maps_are_bounded_and_lists_say_how_they_merge(definition: Definition) -> None:
    for path, field, _ in fields(schema_of(definition)):
        match field.get("type"):
            case "string":
                assert {"maxLength", "enum", "format"} & field.keys(), path
            case "array":
                assert "maxItems" in field, path
                assert field["x-kubernetes-list-type"] in {"atomic", "set", "map"}, path
            case "object" if "properties" not in field:
                assert "maxProperties" in field, path
            case None:
                assert field["x-kubernetes-int-or-string"], path
                assert "maxLength" in field, path


@every_definition
def test_every_rule_has_a_message_that_says_what_is_accepted(definition: Definition) -> None:
    for rule in rules(schema_of(definition)):
        assert re.search(r"\bmust\b|is immutable|needs", rule["message"]), rule["message"]


def test_defaults_of_nested_objects_cascade_from_the_shortest_spec() -> None:
    typed = {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": "phi"},
        "spec": {
            "model": {"name": "phi-4"},
            "engine": {"vllm": {"image": f"contoso.azurecr.io/vllm@sha256:{'0' * 64}", "version": "0.32.0"}},
            "weights": {"nfs": {"server": "nas.contoso.internal", "path": "/export"}},
            "endpoint": {"internalLoadBalancer": {}},
        },
    }
    live = with_defaults(schema_of(DEFINITIONS[0]), typed)
    assert live["spec"]["accelerator"]["count"] == 1
    assert live["spec"]["endpoint"] == {"port": 8000, "internalLoadBalancer": {"idleTimeoutMinutes": 30}}
    assert live["spec"]["weights"]["nfs"]["mountOptions"] == ["nconnect=4"]
    assert live["status"] == {"observedGeneration": -1}
    assert ModelDeployment.model_validate(live) == ModelDeployment.model_validate(typed)


class Part(BaseModel):
    size: int | str | None = None


class WithUnion(BaseModel):
    parts: list[Part]


class WithFloat(BaseModel):
    share: Annotated[float, Field(gt=0)]


def test_what_no_crd_can_say_is_refused_by_path() -> None:
    with pytest.raises(NotStructural, match=r"^parts\[\]\.size: a union; write it as optional siblings"):
        structural_schema(WithUnion)
    with pytest.raises(NotStructural, match=r"^share: exclusiveMinimum cannot be expressed in a CRD"):
        structural_schema(WithFloat)


def test_kubectl_apply_takes_the_whole_folder() -> None:
    """`kubectl apply -f crds/` reads every file with these endings; what kustomize needs has none."""
    read = [path for path in CRDS.iterdir() if path.suffix in {".yaml", ".yml", ".json"}]
    assert {yaml.safe_load(path.read_text())["kind"] for path in read} == {"CustomResourceDefinition"}
    made_of = yaml.safe_load((CRDS / "Kustomization").read_text())["resources"]
    assert set(made_of) == {path.name for path in read}

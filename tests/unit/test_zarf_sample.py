"""docs/samples/zarf.yaml is a package that Zarf's schema admits, and its commands are those of this command line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from hermetic.api.field_types import REFERENCE
from tests.commandline import hermetic

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "docs" / "samples" / "zarf.yaml"
STRING, YES_OR_NO = {"type": "string"}, {"type": "boolean"}


def an_object(needed: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Zarf's schema admits no property that it does not name."""
    return {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}


def a_list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


# What the sample uses of src/pkg/schema/zarf-v1alpha1-schema.json of https://github.com/zarf-dev/zarf: names, types and
# patterns of ZarfPackage, ZarfMetadata, ZarfComponent, ZarfFile, ZarfComponentActions and ZarfComponentAction.
NAME = {"type": "string", "pattern": r"^[a-z0-9][a-z0-9\-]*$"}
FILE = an_object(("source", "target"), source=STRING, target=STRING, shasum=STRING, executable=YES_OR_NO)
ACTION = an_object(cmd=STRING, description=STRING, maxTotalSeconds={"type": "integer"}, maxRetries={"type": "integer"})
ACTIONS = an_object(onDeploy=an_object(before=a_list(ACTION), after=a_list(ACTION)))
COMPONENT = an_object(
    ("name",),
    name=NAME,
    description=STRING,
    required=YES_OR_NO,
    images=a_list(STRING),
    files=a_list(FILE),
    actions=ACTIONS,
)
SCHEMA = an_object(
    ("kind", "components"),
    kind={"enum": ["ZarfInitConfig", "ZarfPackageConfig"]},
    metadata=an_object(
        ("name",), name=NAME, description=STRING, version={"type": "string", "pattern": r"^[^/\\]*$"},
        architecture=STRING, uncompressed=YES_OR_NO,
    ),
    components=a_list(COMPONENT),
)  # fmt: skip


@pytest.fixture
def package() -> dict[str, Any]:
    return yaml.safe_load(SAMPLE.read_text())


def components(package: dict[str, Any]) -> dict[str, Any]:
    return {component["name"]: component for component in package["components"]}


def test_the_sample_is_admitted_by_the_schema_of_zarf(package: dict[str, Any]) -> None:
    jsonschema.validate(package, SCHEMA)
    package["components"][0]["image"] = []
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(package, SCHEMA)


def test_the_list_that_hermetic_images_prints_is_admitted_too_and_has_the_image_of_the_sample(
    package: dict[str, Any],
) -> None:
    ran = hermetic("images", "-f", ROOT / "manifests" / "samples" / "vllm-azure-files.yaml", "-o", "zarf")
    printed = yaml.safe_load(ran.out)
    jsonschema.validate(printed, SCHEMA)
    assert components(package)["engines"]["images"] == components(printed)["images"]["images"]


def test_every_image_and_file_is_pinned(package: dict[str, Any]) -> None:
    images = [image for component in package["components"] for image in component.get("images", ())]
    assert [image for image in images if not re.fullmatch(REFERENCE, image)] == []
    files = [file for component in package["components"] for file in component.get("files", ())]
    unpinned = [file["source"] for file in files if not re.fullmatch("[0-9a-f]{64}", str(file.get("shasum")))]
    assert unpinned == ["llama-3-1-8b"], "a folder has no sum there; hermetic verify compares it"


def test_a_component_that_is_deployed_needs_no_cluster(package: dict[str, Any]) -> None:
    """RequiresCluster of src/api/v1alpha1/component.go: images, charts, manifests and repositories need one."""
    for name in ("operator", "weights"):
        assert set(components(package)[name]) == {"name", "files", "actions"}


def test_the_commands_of_its_actions_are_understood(package: dict[str, Any], tmp_path: Path) -> None:
    commands = [
        action["cmd"]
        for component in package["components"]
        for action in component.get("actions", {}).get("onDeploy", {}).get("after", ())
    ]
    assert [command.split()[:2] for command in commands] == [["hermetic", "bundle"], ["hermetic", "verify"]]
    for command in commands:
        arguments = [
            word.replace("/var/lib", str(tmp_path)).replace("/mnt", str(tmp_path)) for word in shlex.split(command)
        ]
        ran = hermetic(*arguments[1:])
        assert ran.code in {2, 3, 4}
        assert "No such" in ran.errors[0] or "cannot be read" in ran.errors[0], ran.err


def test_what_the_actions_read_is_put_in_place_before(package: dict[str, Any]) -> None:
    for name in ("operator", "weights"):
        targets = {file["target"] for file in components(package)[name]["files"]}
        (action,) = components(package)[name]["actions"]["onDeploy"]["after"]
        read = {word for word in shlex.split(action["cmd"]) if word.startswith(("/var/lib/hermetic/", "/mnt/models/"))}
        assert read <= targets
        assert read

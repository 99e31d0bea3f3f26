"""The samples leave to the product what it does by default, and show what the README promises by default."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from hermetic.api.configuration import Configuration
from hermetic.api.egressaudit import EgressAuditSpec
from hermetic.api.modeldeployment import ModelDeploymentSpec
from testbed.demo.estate import Estate, configuration
from tests.commandline import hermetic
from tests.install_page import documented
from tests.scenarios import DIGEST

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "manifests" / "samples").glob("*.yaml"))
README = "README.md"
SPECS: dict[str, type[BaseModel]] = {"ModelDeployment": ModelDeploymentSpec, "EgressAudit": EgressAuditSpec}
REPEATED: dict[tuple[str, str], str] = {}
"""Fields of a sample that repeat a default, by file and path, with the reason."""


def manifest_of(file: str) -> dict[str, Any]:
    text = documented(README, "The first model") if file == README else (ROOT / file).read_text(encoding="utf-8")
    manifest: dict[str, Any] = yaml.safe_load(text)
    return manifest


def repeated_defaults(model: BaseModel, path: str = "spec") -> Iterator[str]:
    """The paths of fields that are written with the value that they have by default."""
    for name in model.model_fields_set:
        field, value = type(model).model_fields[name], getattr(model, name)
        below = f"{path}.{field.alias or name}"
        if not field.is_required() and value == field.get_default(call_default_factory=True):
            yield below
        for number, member in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(member, BaseModel):
                yield from repeated_defaults(member, f"{below}[{number}]" if isinstance(value, list) else below)


@pytest.mark.parametrize("file", [README, *FILES])
def test_a_sample_repeats_no_default_but_those_that_are_listed(file: str) -> None:
    manifest = manifest_of(file)
    repeated = set(repeated_defaults(SPECS[manifest["kind"]].model_validate(manifest["spec"])))
    assert repeated == {path for name, path in REPEATED if name == file}


def test_a_repeated_default_is_named_with_its_path() -> None:
    spec = manifest_of(README)["spec"] | {"accelerator": {"count": 1}, "scheduling": {}, "drainSeconds": 60}
    spec["resources"] = {"cpu": "4", "memory": "48Gi"}
    repeated = set(repeated_defaults(ModelDeploymentSpec.model_validate(spec)))
    assert {"spec.accelerator.count", "spec.resources.cpu"} <= repeated
    assert not {"spec.drainSeconds", "spec.resources.memory"} & repeated


@pytest.mark.parametrize("file", [file for file in FILES if manifest_of(file)["kind"] == "ModelDeployment"])
def test_a_sample_asks_for_no_less_than_the_readme_promises(file: str) -> None:
    spec = ModelDeploymentSpec.model_validate(manifest_of(file)["spec"])
    assert spec.isolation.enforcement == "Enforce"
    assert not spec.weights.is_mounted or (spec.weights.integrity is not None and spec.weights.integrity.digest)


@pytest.fixture
def demo_configuration(tmp_path: Path) -> dict[str, Any]:
    """The configuration of the demo's operator, whose images are named alone."""

    class Named(Estate):
        operator_image = f"contoso.azurecr.io/hermetic/hermetic@sha256:{DIGEST}"

    return configuration(Named({}, tmp_path / "images.tar"))


def test_the_operator_of_the_demo_enforces_what_the_readme_promises(demo_configuration: dict[str, Any]) -> None:
    read = Configuration.model_validate(demo_configuration)
    assert read.isolation.minimum_of("inference") == "Enforce"
    assert read.integrity.minimum_of("inference") == "Require"


def test_every_sample_but_the_refused_is_allowed_by_the_configuration_of_the_demo(
    demo_configuration: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(demo_configuration))
    for file in FILES:
        ran = hermetic("validate", "-f", ROOT / file, "--config", tmp_path / "config.yaml")
        assert (ran.code == 0) == ("refused" not in file), f"{file}\n{ran.err}"

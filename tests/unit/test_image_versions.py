"""A tag of the engine's image that names another release than the spec is a note of `hermetic validate`."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hermetic.engines.image_versions import contradicting_tag
from tests.commandline import hermetic
from tests.scenarios import DIGEST, a_share_model
from tests.snapshots import spec_of


def a_model(engine: str, tag: str, release: str) -> dict[str, Any]:
    image = f"contoso.azurecr.io/{engine}{tag and ':' + tag}@sha256:{DIGEST}"
    field = "line" if engine == "nim" else "version"
    return a_share_model(engine={engine: {"image": image, field: release}})


@pytest.mark.parametrize(
    ("engine", "tag", "release", "contradicts"),
    [
        ("vllm", "v0.31.0", "0.32.0", True),
        ("vllm", "0.31.0", "0.32.0", True),
        ("vllm", "v0.31.0-cu128", "0.32.0", True),
        ("vllm", "v0.32.1", "0.32.0", True),
        ("vllm", "v0.32.0", "0.32.0", False),
        ("vllm", "v0.32.0-cu128", "0.32.0", False),
        ("vllm", "v0.32", "0.32.0", False),
        ("vllm", "", "0.32.0", False),
        ("vllm", "latest", "0.32.0", False),
        ("vllm", "production-7", "0.32.0", False),
        ("vllm", "2026-11-01", "0.32.0", False),
        ("vllm", "2026.11.01", "0.32.0", False),
        ("vllm", "4.2.0", "0.32.0", False),
        ("sglang", "v0.5.22", "0.5.23", True),
        ("sglang", "v0.5.23-cu126", "0.5.23", False),
        ("nim", "2.0.3", "2.1", True),
        ("nim", "2.1.4", "2.1", False),
        ("nim", "1.8.2", "2.1", True),
        ("nim", "7.0.0", "2.1", False),
    ],
)
def test_a_tag_contradicts_the_release_only_where_it_names_another_one(
    engine: str, tag: str, release: str, contradicts: bool
) -> None:
    expected = tag if contradicts else ""
    assert contradicting_tag(spec_of(a_model(engine, tag, release))) == expected


def test_validate_names_the_tag_and_the_version_and_accepts_the_manifest() -> None:
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(a_model("vllm", "v0.31.0", "0.32.0")))
    assert ran.code == 0
    assert "the tag of the image is v0.31.0, and `version` is 0.32.0" in ran.err
    assert "set `engine.vllm.version` to its release" in ran.err


def test_validate_says_nothing_of_a_tag_that_fits() -> None:
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(a_model("vllm", "v0.32.0", "0.32.0")))
    assert (ran.code, "tag of the image" in ran.err) == (0, False)

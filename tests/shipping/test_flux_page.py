"""docs/flux.md and manifests/flux say the same as what they are made of."""

from __future__ import annotations

import re

import yaml

from testbed.flux import CONTROLLERS
from testbed.installation import REPOSITORY
from testbed.programs import PROGRAMS
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

PAGE = (REPOSITORY / "docs" / "flux.md").read_text(encoding="utf-8")
RECIPE = REPOSITORY / "manifests" / "flux"
PLACEHOLDER = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")
OF_AZURE = {"AZURE_CLIENT_ID"}


def test_the_page_names_the_versions_that_the_tests_run():
    pinned = (PROGRAMS / "go.mod").read_text()
    for name in CONTROLLERS:
        version = re.search(rf"github\.com/fluxcd/{name} (v\S+)", pinned)[1]
        assert f"{name} {version}" in PAGE
        assert f"--image fluxcd/{name}:{version}" in PAGE


def test_the_page_explains_every_placeholder():
    placeholders = {word for file in RECIPE.rglob("*.yaml") for word in PLACEHOLDER.findall(file.read_text())}
    assert placeholders >= {"CHART_DIGEST", "API_SERVER_CIDR"}
    assert [word for word in sorted(placeholders - OF_AZURE) if f"`{word}`" not in PAGE] == []


def test_the_namespace_of_the_release_is_that_of_every_other_installation():
    first = next(yaml.safe_load_all((RECIPE / "operator" / "namespaces.yaml").read_text()))
    del first["metadata"]["annotations"]
    assert first == yaml.safe_load((REPOSITORY / "manifests" / "rbac" / "namespace.yaml").read_text())

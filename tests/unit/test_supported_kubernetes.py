"""The oldest and newest Kubernetes are the same wherever they are named, and those that tests run on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermetic.cli.check.before import NEWEST, OLDEST
from testbed.programs import KUBERNETES_VERSION, OLDEST_KUBERNETES_VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASE = r"1\.(\d+)"


@pytest.mark.parametrize(
    ("file", "sentence", "releases"),
    [
        ("README.md", rf"must have\*\* Kubernetes {RELEASE} or later", [OLDEST]),
        ("docs/install.md", rf"Kubernetes {RELEASE} or later", [OLDEST]),
        ("docs/install.md", rf"tests run on {RELEASE} and on {RELEASE}", [OLDEST, NEWEST]),
        ("docs/cli.md", rf"the API server: {RELEASE} or later is needed, {RELEASE} is the latest", [OLDEST, NEWEST]),
        ("charts/hermetic/Chart.yaml", rf"kubeVersion: '>={RELEASE}\.0-0'", [OLDEST]),
    ],
)
def test_a_page_names_the_releases_that_check_accepts(
    file: str, sentence: str, releases: list[tuple[int, int]]
) -> None:
    match = re.search(sentence, (REPOSITORY / file).read_text(encoding="utf-8"))
    assert match is not None, sentence
    assert [int(minor) for minor in match.groups()] == [minor for _, minor in releases]


def test_tests_run_on_the_oldest_and_the_newest() -> None:
    tested = [version.removeprefix("v").split(".")[:2] for version in (OLDEST_KUBERNETES_VERSION, KUBERNETES_VERSION)]
    assert tested == [[str(part) for part in release] for release in (OLDEST, NEWEST)]

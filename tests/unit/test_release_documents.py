"""What a release consists of is stated once, and the documents about it agree with the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from hermetic import __version__
from shipping.debian import RELEASE
from testbed.programs import KUBERNETES_VERSION, OLDEST_KUBERNETES_VERSION

REPOSITORY = Path(__file__).resolve().parents[2]
CHANGELOG = (REPOSITORY / "CHANGELOG.md").read_text()
SECURITY = (REPOSITORY / "SECURITY.md").read_text()
# An image tag, the names of the bundle and of the chart, and a tag of git.
VERSIONED = re.compile(r"(?:hermetic:|hermetic-|git tag --sign v|origin v)(\d+\.\d+\.\d+)")
PAGES = ("README.md", "RELEASE.md", *sorted(f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md")))
SECTIONS = re.findall(r"^## (\S+) \((.+)\)$", CHANGELOG, re.MULTILINE)
LARGEST_SECTION, LONGEST_ENTRY = 20_000, 600


def test_pyproject_takes_the_version_from_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "operator/hermetic/__init__.py"


@pytest.mark.parametrize("page", PAGES)
def test_examples_name_the_version_of_this_checkout(page: str) -> None:
    assert set(VERSIONED.findall((REPOSITORY / page).read_text())) <= {__version__}


def test_examples_are_found_in_the_pages() -> None:
    assert len([version for page in PAGES for version in VERSIONED.findall((REPOSITORY / page).read_text())]) > 10


def test_changelog_begins_with_the_version_of_this_checkout() -> None:
    assert SECTIONS[0][0] == __version__
    assert all(re.fullmatch(r"in preparation|\d{4}-\d\d-\d\d", date) for _, date in SECTIONS)


def test_section_of_a_version_has_commands_breaking_added_and_fixed_and_is_short() -> None:
    for section in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        headings = re.findall(r"^### (\w+)", section, re.MULTILINE)
        assert headings == ["Upgrade", "Breaking", "Added", "Fixed"]
        assert section.count("```") == 2
        assert len(section) <= LARGEST_SECTION
        entries = re.split(r"^- ", section, flags=re.MULTILINE)[1:]
        assert [entry for entry in entries if len(entry.partition("\n\n")[0]) > LONGEST_ENTRY] == []


def test_compatibility_row_of_this_version_names_what_is_supported() -> None:
    lines = [line for line in SECURITY.splitlines() if line.startswith("| 0.")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    minor = __version__.rpartition(".")[0]
    support, compatibility = (row for row in rows if row[0] == minor)
    assert re.fullmatch(r"in preparation|supported", support[1])
    _, kubernetes, python, vllm, sglang, nim, base = compatibility
    oldest, newest = OLDEST_KUBERNETES_VERSION, KUBERNETES_VERSION
    assert kubernetes == " to ".join(version.removeprefix("v").rpartition(".")[0] for version in (oldest, newest))
    assert python == "3.11 or later"
    for member, cell in (("vllm", vllm), ("sglang", sglang)):
        assert cell == f"{versions(member)[0]} to {versions(member)[-1]}"
    assert nim == "lines 1 and 2"
    assert RELEASE in base


def versions(member: str) -> list[str]:
    tables = (REPOSITORY / f"operator/hermetic/engines/{member}/tables").glob("*.json")
    return sorted((path.stem for path in tables), key=lambda version: [int(part) for part in version.split(".")])

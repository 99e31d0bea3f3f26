"""Folders of weights as tools leave them are staged and verified; what is planted in one of them is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hermetic.weights.content import preflight
from hermetic.weights.entries import Serialization
from hermetic.weights.manifests import names_in
from hermetic.weights.sources import NOT_COPIED, source_tree
from tests.commandline import hermetic
from tests.sampling import Sample
from tests.weights_layouts import DEFECTS, LAYOUTS

_NOT_AT_HOME = frozenset({"snapshot", "nim_cache"})
"""Layouts whose files are links into a folder of contents: a defect would be planted in another place."""


def found(folder: Path) -> list[tuple[str, str]]:
    with source_tree(folder) as tree:
        names_in(tree, Serialization(allow_symlinks=True), NOT_COPIED)
        return [(finding.reason.value, finding.file) for finding in preflight(tree)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_stage_folder_of_a_tool_is_accepted_and_verified(layout: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = layout(tmp_path / "source")
    ran = hermetic("stage", folder, tmp_path / "share")
    assert ran.code == 0, ran.err
    verified = hermetic("verify", tmp_path / "share")
    assert verified.code == 0, verified.err
    copied = {str(path.relative_to(tmp_path / "share")) for path in (tmp_path / "share").rglob("*")}
    assert not [path for path in copied if path.split("/")[0] in {".git", ".cache", ".msc", ".mdl", "._____temp"}]


def test_planted_defects_are_found_in_every_layout(
    tmp_path: Path, sample: Sample, record_property: Callable[[str, object], None]
) -> None:
    """Each defect in each layout that has its file. The clean folders are right, so that nothing else is the reason."""
    clean = {layout.__name__: layout(tmp_path / f"clean-{layout.__name__}") for layout in LAYOUTS}
    refused = [name for name, folder in clean.items() if found(folder)]
    plantings = [
        (name, defect)
        for name, folder in clean.items()
        if name not in _NOT_AT_HOME
        for defect in DEFECTS
        if defect.can_be_planted(folder)
    ]
    assert {defect for _, defect in plantings} == {*DEFECTS}, "a defect that no layout has the file for tests nothing"
    drawn = sample.of("defects", plantings, 150)
    missed = []
    for name, defect in drawn:
        folder = shutil.copytree(clean[name], tmp_path / "planted", symlinks=True)
        defect.plant(folder)
        reasons = {reason for reason, _ in found(folder)}
        if defect.reason not in reasons:
            missed.append(f"{name}: {defect.file}: {defect.reason}, found {reasons}")
        shutil.rmtree(folder)
    accepted = f"{len(LAYOUTS) - len(refused)} of {len(LAYOUTS)}"
    shown = f"layouts accepted {accepted}, planted defects found {len(drawn) - len(missed)} of {len(drawn)}"
    record_property("weights folders", shown)
    assert (refused, missed) == ([], [])

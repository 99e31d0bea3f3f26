"""Examples of properties depend on the commit, not on the modules that a process has loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

from tests.example_constants import constants_of_folders, fix_constants


def draw_examples() -> list[tuple[str, int]]:
    """The same seed each time."""
    examples: list[tuple[str, int]] = []

    @settings(derandomize=True, max_examples=300, database=None, deadline=None)
    @given(st.text(), st.integers())
    def record(text: str, number: int) -> None:
        examples.append((text, number))

    record()
    return examples


def load_module(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local module with 900 constants."""
    path.write_text(repr([f"constant-{number}" for number in range(900)]))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, path.stem, module)


def test_examples_are_the_same_whatever_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(providers, "_get_local_constants", providers._get_local_constants)
    fix_constants()
    before = draw_examples()
    load_module(tmp_path / "hundreds_of_constants.py", monkeypatch)
    assert draw_examples() == before


def test_constants_are_those_of_product_and_test_bed_in_one_order() -> None:
    texts = list(constants_of_folders().strings)
    assert {"GpuBusy", "snet-gpu"} <= set(texts)
    assert texts == sorted(texts)

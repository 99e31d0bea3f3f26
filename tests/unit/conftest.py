"""What tests of weights begin with: a model, and a share to stage it to."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder as it comes from a hub, outside of the share."""
    from tests.weights import a_model  # loads what writes safetensors, which few tests need

    return a_model(tmp_path / "model")


@pytest.fixture
def share(tmp_path: Path) -> Path:
    """An empty folder."""
    (tmp_path / "share").mkdir()
    return tmp_path / "share"

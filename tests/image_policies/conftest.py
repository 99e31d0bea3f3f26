"""Ratify, built from its module: `make test-image-policies`; without it, nothing here runs."""

from __future__ import annotations

import os

import pytest

from tests.shipping.conftest import chart, keys, other_keys, pushed, registry

__all__ = ["chart", "keys", "other_keys", "pushed", "registry"]

ASKED = "HERMETIC_IMAGE_POLICIES"


@pytest.fixture(scope="session", autouse=True)
def _asked() -> None:
    if not os.environ.get(ASKED):
        pytest.skip("Ratify is opt-in: make test-image-policies")

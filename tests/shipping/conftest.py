"""What several tests of what ships share: the operator's image, a registry, keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shipping.operator_image import operator_image
from testbed.images.oci import ImageIndex
from testbed.registry import Registry
from tests.shipping.signed_artifacts import Keys, new_keys


@pytest.fixture(scope="session")
def built() -> ImageIndex:
    """Debian's present packages will do where the locked ones are gone from the archive."""
    return operator_image("hermetic", exactly=False)


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A key of P-256 with its certificate."""
    return new_keys(tmp_path_factory.mktemp("keys") / "own")


@pytest.fixture(scope="module")
def other_keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """A key that signed nothing, with its certificate."""
    return new_keys(tmp_path_factory.mktemp("keys") / "other_keys")

"""What several tests of what ships share: the operator's image, a registry, keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shipping.helm_chart import Chart
from shipping.operator_image import operator_image
from shipping.signer import load_signer
from testbed.images.oci import ImageIndex
from testbed.registry import Registry
from tests.shipping.pushed_artifacts import push_release
from tests.shipping.signature_programs import on_localhost
from tests.shipping.signed_artifacts import Keys, new_chart, new_keys


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


@pytest.fixture(scope="module")
def chart() -> Chart:
    return new_chart()


@pytest.fixture(scope="module")
def pushed(registry: Registry, keys: Keys, chart: Chart, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The registry with image, chart, and all that refers to them, by the name that its users call it."""
    host = on_localhost(registry.host)
    folder = tmp_path_factory.mktemp("layout") / "layout"
    push_release(folder, host, chart, load_signer(keys.private, keys.certificate))
    return host

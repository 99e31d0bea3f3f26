"""The operator's image, built once for every test of what ships."""

from __future__ import annotations

import pytest

from shipping.operator_image import operator_image
from testbed.images.oci import ImageIndex


@pytest.fixture(scope="session")
def built() -> ImageIndex:
    """Debian's present packages will do where the locked ones are gone from the archive."""
    return operator_image("hermetic", exactly=False)

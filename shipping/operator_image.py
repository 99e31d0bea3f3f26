"""The operator's image, and what each of its layers is."""

from __future__ import annotations

from pathlib import Path

from hermetic import __version__
from shipping.debian import fetched
from shipping.root import UID, USER, root_layer
from shipping.wheels import REPOSITORY, dependencies_layer, hermetic_layer
from testbed.images.oci import Image

ENTRYPOINT = ("/usr/bin/python3", "-m", "hermetic")
# USER and HOME: Python asks for both, also where the pod runs as another user than the image's.
ENVIRONMENT = {
    "HOME": "/tmp",  # the one folder that can be written to
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "USER": USER,
}


# What each layer holds, the one that changes most last.
PARTS = ("Python and its libraries", "locked wheels", "hermetic")


def operator_image(
    repository: str, tag: str = __version__, *, exactly: bool = True, source: Path = REPOSITORY
) -> Image:
    """The same bytes on every machine; without `exactly`, newer Debian packages do where locked ones are gone.

    `source` is the checkout whose code and locked wheels it holds.
    """
    return Image(
        repository,
        tag,
        (root_layer(fetched(exactly=exactly)), dependencies_layer(source), hermetic_layer(source)),
        entrypoint=ENTRYPOINT,
        command=("run",),
        environment=ENVIRONMENT,
        user=f"{UID}:{UID}",
        architecture="amd64",
    )

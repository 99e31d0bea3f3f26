"""The operator's image for every platform, and what each of its layers is."""

from __future__ import annotations

from pathlib import Path

from hermetic import __version__
from shipping.debian import fetched
from shipping.platforms import PLATFORMS, Platform
from shipping.revision import REPOSITORY, Revision, revision_of
from shipping.root import UID, USER, root_layer
from shipping.wheels import dependencies_layer, hermetic_layer
from testbed.images.layers import Layer, compressed
from testbed.images.oci import Image, ImageIndex

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
    repository: str, tag: str = __version__, *, exactly: bool = True, revision: Revision | None = None
) -> ImageIndex:
    """The image for every platform of a commit, by default the one that is checked out; `exactly` as below."""
    commit = revision or revision_of()
    own = hermetic_layer(REPOSITORY, commit)
    bases = [(platform, _base_layers(platform, exactly=exactly)) for platform in PLATFORMS]
    return ImageIndex(tuple(_image(repository, tag, platform, (*base, own), commit) for platform, base in bases))


def platform_image(
    repository: str,
    platform: Platform,
    tag: str = __version__,
    *,
    exactly: bool = True,
    source: Path = REPOSITORY,
    revision: Revision | None = None,
) -> Image:
    """The same bytes for the same zlib; without `exactly`, newer Debian packages do where locked ones are gone.

    `source` is the checkout whose code and locked wheels it holds; `revision` is its commit, read there by default.
    """
    commit = revision or revision_of(source)
    base = _base_layers(platform, exactly=exactly, source=source)
    return _image(repository, tag, platform, (*base, hermetic_layer(source, commit)), commit)


def _base_layers(platform: Platform, *, exactly: bool = True, source: Path = REPOSITORY) -> tuple[Layer, Layer]:
    """What differs by platform: Python with its libraries, and the wheels."""
    return root_layer(fetched(platform, exactly=exactly), platform), dependencies_layer(platform, source)


def _image(repository: str, tag: str, platform: Platform, layers: tuple[Layer, ...], commit: Revision) -> Image:
    return Image(
        repository,
        tag,
        tuple(map(compressed, layers)),
        entrypoint=ENTRYPOINT,
        command=("run",),
        environment=ENVIRONMENT,
        user=f"{UID}:{UID}",
        architecture=platform.architecture,
        annotations=commit.annotations(),
    )

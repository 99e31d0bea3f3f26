"""Options of `hermetic stage` for an OCI image in place of a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hermetic.cli.weights.options import Function
from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.weights.images import ImageOptions

FOLDER, OCI, OCI_ARCHIVE = "folder", "oci", "oci-archive"
FORMATS = (FOLDER, OCI, OCI_ARCHIVE)
"""Destinations; the two of images are named as skopeo names them."""
ARCHITECTURES = ("amd64", "arm64")


def image_options(function: Function) -> Function:
    """--format, --path-in-image, --base and --architecture."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        default=FOLDER,
        show_default=True,
        help="folder: the files. oci, oci-archive: an image of them, as a layout in a folder or in one tar, for an "
        "image volume or a serving image that carries its weights.",
    )
    path = click.option(
        "--path-in-image",
        default="",
        metavar="PATH",
        help="Folder of the image that holds the model (imageVolume.path, bakedImage.path). Default: its root.",
    )
    base = click.option(
        "--base",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="OCI layout of a serving image that gets the weights on top.",
    )
    architecture = click.option(
        "--architecture",
        type=click.Choice(ARCHITECTURES),
        default=ARCHITECTURES[0],
        show_default=True,
        help="Of the nodes, for an image without --base.",
    )
    return form(path(base(architecture(function))))


def image_of(options: dict[str, Any]) -> ImageOptions | None:
    """The image that the options ask for; None for a folder. Raises InputError."""
    path = options["path_in_image"].strip("/")
    if options["form"] == FOLDER:
        if path or options["base"] is not None:
            raise InputError("--path-in-image and --base are of images", fix="add --format oci")
        return None
    from hermetic.weights.entries import wrong_with_path
    from hermetic.weights.images import ImageOptions

    if path and (wrong := wrong_with_path(path)) is not None:
        raise InputError(f"--path-in-image {path[:200]}: {wrong}", fix="--path-in-image models/phi-4")
    return ImageOptions(options["form"] == OCI_ARCHIVE, path, options["base"], options["architecture"])

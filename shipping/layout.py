"""One image as an OCI layout: the files of the layout, and a tar of files that has the same bytes from every build.

The layout names the image once and by its tag alone: `skopeo copy oci-archive:FILE` needs no name then, and
`ctr images import --base-name` gives it the name of your registry.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from hermetic.weights.oci import blob_name, layout_documents
from testbed.images.oci import Image, digest_of


def layout_files(image: Image) -> dict[str, bytes]:
    """Every file of the layout by its path."""
    blobs = {layer.digest: layer.tar for layer in image.layers}
    blobs |= {digest_of(content): content for content in (image.config, image.manifest)}
    return {
        **layout_documents(image.manifest, image.tag),
        **{blob_name(digest): content for digest, content in blobs.items()},
    }


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    """A tar of plain files in the given order; owners, times and modes are fixed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))

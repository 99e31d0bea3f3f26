"""One image as an OCI layout, and a tar of files that has the same bytes from every build.

The layout names the image once and by its tag alone: `skopeo copy oci-archive:FILE` needs no name then, and
`ctr images import --base-name` gives it the name of your registry.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from hermetic.weights.oci import blob_name, layout_documents
from testbed.images.layers import folder
from testbed.images.oci import Image, ImageIndex, digest_of


def layout_files(image: Image | ImageIndex) -> dict[str, bytes]:
    """Every file of the layout by its path. A layer that platforms share is in it once."""
    blobs = {layer.blob_digest: layer.blob for platform in image.images for layer in platform.layers}
    documents = [content for platform in image.images for content in (platform.config, platform.manifest)]
    blobs |= {digest_of(content): content for content in (*documents, image.manifest)}
    return {
        **layout_documents(image.manifest, image.tag, image.descriptor()),
        **{blob_name(digest): content for digest, content in blobs.items()},
    }


def write_tar(path: Path, files: Mapping[str, bytes]) -> None:
    """A tar of plain files in the given order, each folder before its first file; owners, times and modes are fixed.

    Some readers open files only in folders that the tar names (Syft's reader of OCI archives is one).
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    folders: set[str] = set()
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            for parent in reversed(PurePosixPath(name).parents[:-1]):
                if str(parent) not in folders:
                    folders.add(str(parent))
                    archive.addfile(folder(str(parent)).header())
            header = tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))

"""The OCI layouts in a bundle: the image at its root, and in artifacts/ what a registry keeps beside the image.

artifacts/ is a layout without the blobs of the image: laid over the root's it is a whole one, which lists the image,
the chart, and the referrers of both (https://github.com/opencontainers/image-spec/blob/main/image-layout.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.cli.bundle.archive import Archive
from hermetic.cli.bundle.description import Description
from hermetic.cli.bundle.layout import ARTIFACTS, BLOBS, DESCRIPTION, INDEX, LAYOUT
from hermetic.errors import BundleRefused, EnvelopeRefused
from hermetic.signing.canonical_json import read_json

_ALGORITHM = "sha256:"


@dataclass(slots=True)
class ImageLayout:
    """The layout below `root`; its documents may also name blobs of the image. `named`: the blobs that they name."""

    archive: Archive
    root: str = ""
    named: set[str] = field(default_factory=set)
    platforms: dict[str, set[str]] = field(default_factory=dict)
    """For each index of images, the digests of its images."""

    def manifests(self) -> dict[str, dict[str, Any]]:
        """The manifests of the index by digest, each with its configuration, layers and subject checked.

        A manifest may be an index of images itself, one for each platform; these are checked and not returned.
        """
        if read_object(self.archive, self.root + LAYOUT) != {"imageLayoutVersion": "1.0.0"}:
            raise BundleRefused(f"{self.root}{LAYOUT} is not that of an OCI layout 1.0.0")
        index = self.root + INDEX
        manifests = {}
        for descriptor in _descriptors(read_object(self.archive, index), index, "manifests"):
            name = self._blob_name(descriptor, index)
            content = read_object(self.archive, name)
            manifests[descriptor["digest"]] = content
            if "manifests" not in content:
                self._must_name_its_blobs(content, name)
                continue
            if content.keys() & {"config", "layers"}:
                raise BundleRefused(f"{name} is both an index and a manifest, which programs read in different ways")
            images = list(_descriptors(content, name, "manifests"))
            for image in images:
                image_name = self._blob_name(image, name)
                self._must_name_its_blobs(read_object(self.archive, image_name), image_name)
            self.platforms[descriptor["digest"]] = {image["digest"] for image in images}
        return manifests

    def _must_name_its_blobs(self, manifest: Mapping[str, Any], name: str) -> None:
        subject = (manifest["subject"],) if "subject" in manifest else ()
        for part in (manifest.get("config"), *_descriptors(manifest, name, "layers"), *subject):
            self._blob_name(part, name)

    def must_name_every_blob(self) -> None:
        """Raises BundleRefused for a blob of this layout that no document names."""
        prefix = self.root + BLOBS
        unnamed = sorted(name for name in self.archive.sha256 if name.startswith(prefix) and name not in self.named)
        if unnamed:
            raise BundleRefused(f"{unnamed[0]} does not belong to {'the artifacts' if self.root else 'the image'}")

    def _blob_name(self, descriptor: Any, where: str) -> str:
        """The file of the blob in a descriptor, which exists and has that digest and size."""
        match descriptor:
            case {"digest": str(digest), "size": int(size)} if digest.startswith(_ALGORITHM):
                name = self._existing(digest.removeprefix(_ALGORITHM), where)
                if _ALGORITHM + self.archive.sha256[name] != digest or self.archive.sizes[name] != size:
                    actual = f"{_ALGORITHM}{self.archive.sha256[name]} with {self.archive.sizes[name]} bytes"
                    raise BundleRefused(f"{name} is {actual}; {where} names {digest} with {size} bytes")
                self.named.add(name)
                return name
        raise BundleRefused(f"{where} holds something that names no blob by SHA-256 and size")

    def _existing(self, sha256: str, where: str) -> str:
        for root in (self.root, ""):
            if (name := root + BLOBS + sha256) in self.archive.sha256:
                return name
        raise BundleRefused(f"{self.root}{BLOBS}{sha256} is missing; {where} names it")


def must_be_the_image(archive: Archive, image: str) -> None:
    """Raises BundleRefused unless the layout contains only this image, and no other blob."""
    layout = ImageLayout(archive)
    for digest in layout.manifests():
        if not image.endswith(f"@{digest}"):
            raise BundleRefused(f"{INDEX} names the image {digest}; {DESCRIPTION} names {image}")
    layout.must_name_every_blob()


def must_be_the_artifacts(archive: Archive, description: Description) -> None:
    """Raises BundleRefused unless artifacts/ contains image, chart and what refers to these two, and no other blob."""
    if not description.chart and not any(name.startswith(ARTIFACTS) for name in archive.sha256):
        return
    layout = ImageLayout(archive, ARTIFACTS)
    manifests = layout.manifests()
    subjects = {name.rpartition("@")[2] for name in (description.image, description.chart) if name}
    if missing := sorted(subjects - manifests.keys()):
        raise BundleRefused(f"{ARTIFACTS}{INDEX} does not name {missing[0]}, which {DESCRIPTION} names")
    platforms = layout.platforms.get(description.image.rpartition("@")[2], set())
    for digest, manifest in manifests.items():
        subject = manifest.get("subject")
        if digest not in subjects and (subject is None or subject["digest"] not in subjects | platforms):
            raise BundleRefused(f"{ARTIFACTS}{INDEX}: {digest} refers neither to the image nor to the chart")
    layout.must_name_every_blob()


def read_object(archive: Archive, name: str) -> dict[str, Any]:
    """The JSON object in a small file of the bundle. Raises BundleRefused."""
    try:
        value = read_json(archive.content(name), name)
    except EnvelopeRefused as refusal:
        raise BundleRefused(refusal.message) from refusal
    if not isinstance(value, dict):
        raise BundleRefused(f"{name} is not a JSON object")
    return value


def _descriptors(holder: Mapping[str, Any], where: str, name: str) -> Iterator[Any]:
    listed = holder.get(name)
    if not isinstance(listed, list) or not listed:
        raise BundleRefused(f"{where} has no list '{name}'")
    yield from listed

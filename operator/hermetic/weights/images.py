"""Stages a model as an OCI image, for image volumes and for images that carry their weights: no daemon, no registry.

The large files are copied into their layers; the small ones, the manifest and the signature make the last layer.
"""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import InputError
from hermetic.weights.copying import Copy, copied_items
from hermetic.weights.destination import make_own_folder, new_file, write_durably
from hermetic.weights.entries import Serialization, key_of
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.journal import Journal
from hermetic.weights.layers import LayerPlaces, planned_layers, small_layer
from hermetic.weights.layouts import ArchiveLayout, FolderLayout, Layout
from hermetic.weights.listing import content_of
from hermetic.weights.oci import (
    MOST_LAYERS,
    BaseImage,
    ImageLayer,
    blob_name,
    digest_of,
    empty_base,
    image_documents,
    layout_documents,
    read_base,
)
from hermetic.weights.partial import JOURNAL
from hermetic.weights.tree import EntryKind, Item, Tree, WeightsStopped, identity_of
from hermetic.weights.workers import CHUNK, Progress

_WHITEOUT = ".wh."


@dataclass(frozen=True, slots=True)
class ImageOptions:
    """The image. `archive`: one tar in place of a folder; `path`: the model's folder in the image, "" is its root.

    `base`: an OCI layout whose image gets the weights on top.
    """

    archive: bool = False
    path: str = ""
    base: Path | None = None
    architecture: str = "amd64"


class ImageStaging:
    """The staging of one image in the folder `work`, which differs for each plan of layers."""

    def __init__(
        self, source: Tree, partial: Path, options: ImageOptions, serialization: Serialization, progress: Progress
    ) -> None:
        self._options, self._progress = options, progress
        self._base = empty_base(options.architecture) if options.base is None else read_base(options.base)
        room = MOST_LAYERS - len(self._base.layers) - 1
        if room < 1:
            raise InputError(f"{options.base}: has {len(self._base.layers)} layers; {MOST_LAYERS - 2} are the most")
        self._layers = planned_layers(_contents(source), options.path, room)
        self.work = partial / f"image-{self._plan()}"
        make_own_folder(self.work)
        self.journal = Journal(self.work / JOURNAL)
        self._layout: Layout = ArchiveLayout(self.work, progress) if options.archive else FolderLayout(self.work)
        self._layout.prepare(self._layers, lambda layer: self.journal.digest(layer.as_item, (0, layer.size)))
        self._places = LayerPlaces(self.work / "files", self._layers, self.journal, serialization, progress)
        self.copy = Copy(source, self._places, self.journal, serialization, progress)

    @property
    def result(self) -> Path:
        """What appears at the destination."""
        return self._layout.result

    def _plan(self) -> str:
        """Differs where a content would be at another place."""
        layout = [(layer.size, [(at, item.path) for _, at, item in layer.entries]) for layer in self._layers]
        return hashlib.sha256(repr((self._options.archive, self._options.path, layout)).encode()).hexdigest()[:12]

    def tree(self) -> Tree:
        """The model as it was staged, read from the layers and files."""
        return _StagedTree(self.copy.folder, self._places)

    def assemble(self, root: str) -> str:
        """Completes the image; returns its digest."""
        layers = [
            ImageLayer(digest, layer.size, digest)
            for layer in self._layers
            for digest in (self._places.digests[layer.number],)
        ]
        for layer, described in zip(self._layers, layers, strict=True):
            self._layout.add_layer(layer, described.digest)
        layers.append(self._small())
        for base_layer in self._base.layers:
            self._layout.add_file(blob_name(base_layer.digest), self._copied_blob(self._base, base_layer))
        config, manifest = image_documents(self._base, layers, root)
        documents = {blob_name(digest_of(content)): content for content in (config, manifest)}
        tag = root.removeprefix("sha256:")[:12]
        for name, content in {**documents, **layout_documents(manifest, tag)}.items():
            self._layout.add_file(name, self._written(content))
        self._layout.finish()
        return digest_of(manifest)

    def _small(self) -> ImageLayer:
        with Tree(self.copy.folder) as tree, new_file(self.work / "file") as file:
            digest, size = small_layer(_members(tree), self._options.path, file.write)
            file.flush()
            os.fsync(file.fileno())
        self._layout.add_file(blob_name(digest), self.work / "file")
        return ImageLayer(digest, size, digest)

    def _written(self, content: bytes) -> Path:
        with new_file(self.work / "file") as file:
            write_durably(file.fileno(), 0, [content])
        return self.work / "file"

    def _copied_blob(self, base: BaseImage, layer: ImageLayer) -> Path:
        """A copy of a blob of the base. Raises InputError where it is not what its digest says."""
        digest = hashlib.sha256()

        def pieces() -> Iterator[bytes]:
            while piece := reading.read(CHUNK):
                digest.update(piece)
                yield piece
                self._progress.steps += 1

        with (base.folder / blob_name(layer.digest)).open("rb") as reading, new_file(self.work / "file") as file:
            size = write_durably(file.fileno(), 0, pieces())
        if (f"sha256:{digest.hexdigest()}", size) != (layer.digest, layer.size):
            raise InputError(f"{base.folder}: {layer.digest} has other content than its digest")
        return self.work / "file"


def _contents(source: Tree) -> Iterator[Item]:
    """The files to copy. Raises WeightsStopped for a name that an image takes for a deletion."""
    for item in copied_items(source):
        if any(part.startswith(_WHITEOUT) for part in item.path.split("/")):
            finding = WeightsFinding(
                WeightsReason.NAME_REFUSED, item.path, observed=f"in an image a name with '{_WHITEOUT}' deletes a file"
            )
            raise WeightsStopped(finding)
        if (content := content_of(source, item)) is not None:
            yield content


def _members(tree: Tree) -> Iterator[tuple[str, Path | str]]:
    for item in tree.walk():
        if item.kind is EntryKind.LINK:
            yield item.path, os.readlink(item.path, dir_fd=tree.descriptor)
        else:
            yield item.path, tree.root / item.path


class _StagedTree(Tree):
    """Files, and the large ones out of their layers, in one tree."""

    def __init__(self, root: Path, layer_places: LayerPlaces) -> None:
        super().__init__(root)
        self._large = {path: (size, destination) for path, size, destination in layer_places.layered()}
        self._starts: dict[int, int] = {}

    def walk(self) -> Iterator[Item]:
        """Both in one order."""
        large = (item for path in sorted(self._large, key=key_of) if (item := self.lstat(path)) is not None)
        return heapq.merge(super().walk(), large, key=lambda item: key_of(item.path))

    def lstat(self, path: str) -> Item | None:
        """A large file has its own size, and the identity of what it lies in."""
        if (large_file := self._large.get(path)) is None:
            return super().lstat(path)
        stat_result = large_file[1].path.lstat()
        return Item(path, EntryKind.FILE, large_file[0], identity_of(stat_result), stat_result.st_mode)

    def open(self, path: str) -> int:
        """A descriptor; reads of a large file begin at its place."""
        if (large_file := self._large.get(path)) is None:
            descriptor = super().open(path)
            self._starts.pop(descriptor, None)
            return descriptor
        descriptor = os.open(large_file[1].path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._starts[descriptor] = large_file[1].start
        return descriptor

    def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        return super().read_into(descriptor, view, self._starts.get(descriptor, 0) + offset)

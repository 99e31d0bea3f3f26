"""Files of a model as layers of an image: uncompressed tars whose bytes depend on names and contents only.

Each large file has a layer of its own, so a registry transfers them side by side and a change of one file changes one
layer. Contents are copied straight to their offset in the tar; the headers around them are written when all of a
layer's contents are there.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from hermetic.weights.copying import FILE_MODE, FOLDER_MODE, Place
from hermetic.weights.entries import Serialization
from hermetic.weights.journal import Journal
from hermetic.weights.listing import spans
from hermetic.weights.tree import EntryKind, Item
from hermetic.weights.workers import CHUNK, Progress

LARGE = 2**24
"""Bytes from which on a file has a layer of its own; the small ones share one."""
BLOCK = tarfile.BLOCKSIZE
END = bytes(2 * BLOCK)
"""The end of a tar."""


def header(path: str, kind: bytes = tarfile.REGTYPE, *, size: int = 0, target: str = "") -> bytes:
    """The header of one member: owner 0, time 0, readable by all."""
    member = tarfile.TarInfo(path)
    member.type, member.size, member.linkname = kind, size, target
    member.mode = {tarfile.DIRTYPE: FOLDER_MODE, tarfile.SYMTYPE: 0o777}.get(kind, FILE_MODE)
    return member.tobuf(tarfile.PAX_FORMAT)


def padded(size: int) -> int:
    """Bytes that a content of this size takes in a tar."""
    return -(-size // BLOCK) * BLOCK


@dataclass(slots=True)
class Layer:
    """One layer that is planned: (header, offset of the header, content) of each file, and where the tar is written."""

    number: int
    entries: list[tuple[bytes, int, Item]] = field(default_factory=list)
    size: int = 0
    file: Path = Path()
    start: int = 0

    @property
    def as_item(self) -> Item:
        """The layer as the journal knows it: it is another one where any of its files is."""
        identities = json.dumps([[item.path, *item.identity] for _, _, item in self.entries])
        combined_identity = int.from_bytes(hashlib.sha256(identities.encode()).digest()[:8], "big")
        return Item(f"\0layer/{self.number}", EntryKind.FILE, self.size, (combined_identity, 0, 0, 0, 0), 0)


def planned_layers(contents: Iterable[Item], folder: str, most: int) -> list[Layer]:
    """Layers of the large files, at most so many; beyond that, neighbours share one. `folder`: the model's, or ""."""
    large = list({item.path: item for item in contents if item.size >= LARGE}.values())
    group_size = -(-len(large) // most) or 1
    return [
        _planned(number, large[at : at + group_size], folder)
        for number, at in enumerate(range(0, len(large), group_size))
    ]


def _planned(number: int, items: list[Item], folder: str) -> Layer:
    layer, folders = Layer(number), set[str]()
    at = 0
    for item in items:
        path = f"{folder}/{item.path}" if folder else item.path
        before = b"".join(_folders_of(path, folders)) + header(path, size=item.size)
        layer.entries.append((before, at, item))
        at += len(before) + padded(item.size)
    layer.size = at + len(END)
    return layer


def _folders_of(path: str, folders: set[str]) -> Iterator[bytes]:
    """Headers of the folders above a path that were not made yet."""
    for parent in reversed(PurePosixPath(path).parents[:-1]):
        if str(parent) not in folders:
            folders.add(str(parent))
            yield header(str(parent), tarfile.DIRTYPE)


def small_layer(
    members: Iterable[tuple[str, Path | str]], folder: str, write: Callable[[bytes], object]
) -> tuple[str, int]:
    """Writes the layer of small files; returns digest and size. A member: path, and its file or a link's target."""
    digest, size, folders = hashlib.sha256(), 0, set[str]()

    def add(content: bytes) -> None:
        nonlocal size
        digest.update(content)
        size += len(content)
        write(content)

    for name, source in members:
        path = f"{folder}/{name}" if folder else name
        for folder_header in _folders_of(path, folders):
            add(folder_header)
        if isinstance(source, str):
            add(header(path, tarfile.SYMTYPE, target=source))
            continue
        with source.open("rb") as file:
            length = os.fstat(file.fileno()).st_size
            add(header(path, size=length))
            while piece := file.read(CHUNK):
                add(piece)
            add(bytes(padded(length) - length))
    add(END)
    return f"sha256:{digest.hexdigest()}", size


class LayerPlaces:
    """Large files in layers, all others below `folder`; a layer is hashed as soon as all of it is on the disk."""

    def __init__(
        self, folder: Path, layers: list[Layer], journal: Journal, serialization: Serialization, progress: Progress
    ) -> None:
        self.folder = folder
        self.digests: dict[int, str] = {}
        self._journal, self._progress = journal, progress
        self._lock = threading.Lock()
        self._places: dict[str, tuple[Layer, Place, int]] = {}
        self._pending: dict[int, set[tuple[str, int]]] = {}
        self._changed: set[int] = set()
        for layer in layers:
            ranges = {(item.path, span[0]) for _, _, item in layer.entries for span in spans(item.size, serialization)}
            self._pending[layer.number] = ranges
            for before, at, item in layer.entries:
                destination = Place(layer.file, layer.start + at + len(before), _size_of_file(layer, layers))
                self._places[item.path] = layer, destination, item.size

    def of(self, content: Item) -> Place:
        """The place in the layer of a large file; else a file of its own."""
        entry = self._places.get(content.path)
        return Place(self.folder / content.path, 0, content.size) if entry is None else entry[1]

    def layered(self) -> Iterator[tuple[str, int, Place]]:
        """Path, size and place of every large file."""
        return ((path, size, destination) for path, (_, destination, size) in self._places.items())

    def staged(self, content: Item, span: tuple[int, int], *, is_new: bool) -> None:
        """Hashes the layer after the last of its ranges."""
        entry = self._places.get(content.path)
        if entry is None:
            return
        layer = entry[0]
        with self._lock:
            pending = self._pending[layer.number]
            pending.discard((content.path, span[0]))
            if is_new:
                self._changed.add(layer.number)
            if pending or layer.number in self.digests:
                return
            self.digests[layer.number] = ""
        digest = None if layer.number in self._changed else self._journal.digest(layer.as_item, (0, layer.size))
        if digest is None:
            digest = self._finished(layer)
            self._journal.add(layer.as_item, (0, layer.size), digest)
        self.digests[layer.number] = f"sha256:{digest.hex()}"

    def _finished(self, layer: Layer) -> bytes:
        """Writes the headers of a layer; returns the digest of what is in the file then."""
        descriptor = os.open(layer.file, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for before, at, _ in layer.entries:
                os.pwrite(descriptor, before, layer.start + at)
            os.fdatasync(descriptor)
            return self._hashed(descriptor, layer)
        finally:
            os.close(descriptor)

    def _hashed(self, descriptor: int, layer: Layer) -> bytes:
        digest, buffer, at = hashlib.sha256(), memoryview(bytearray(CHUNK)), 0
        while at < layer.size:
            count = os.preadv(descriptor, [buffer[: min(CHUNK, layer.size - at)]], layer.start + at)
            if count == 0:
                raise OSError(f"{layer.file}: was cut short")
            digest.update(buffer[:count])
            at += count
            self._progress.steps += 1
        return digest.digest()


def _size_of_file(layer: Layer, layers: list[Layer]) -> int:
    """Bytes of the file that the layer is written in: up to the end of the last layer in it."""
    return max(other.start + other.size for other in layers if other.file == layer.file)

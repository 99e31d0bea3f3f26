"""An OCI layout that is being written, as a folder or as one tar. Every layer has its place before it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from hermetic.weights.copying import FILE_MODE, FOLDER_MODE
from hermetic.weights.destination import make_own_folder, must_not_lead_elsewhere, own_file, write_durably
from hermetic.weights.layers import END, Layer, header, padded
from hermetic.weights.oci import BLOBS, blob_name
from hermetic.weights.workers import CHUNK, Progress

DigestOf = Callable[[Layer], "bytes | None"]
"""The digest of a layer that an earlier run completed; None where it did not."""


class Layout(Protocol):
    """What both forms do. `result` appears at the destination."""

    result: Path

    def prepare(self, layers: list[Layer], digest_of: DigestOf) -> None:
        """Gives every layer its place, and undoes what an earlier run did after the layers were complete."""

    def add_layer(self, layer: Layer, digest: str) -> None:
        """Names a layer that is complete."""

    def add_file(self, name: str, file: Path) -> None:
        """Adds a file that was synchronised; it may be moved."""

    def finish(self) -> None:
        """Completes the layout, durably."""


class FolderLayout:
    """A folder. Layers are written beside it and renamed to their digests."""

    def __init__(self, work: Path) -> None:
        self.result = work / "layout"
        self._layers = work / "layers"
        make_own_folder(self._layers)
        for folder in (self.result, self.result / "blobs", self.result / BLOBS):
            make_own_folder(folder)
            folder.chmod(FOLDER_MODE)

    def prepare(self, layers: list[Layer], digest_of: DigestOf) -> None:
        """A file for each layer; those that were renamed already are renamed back."""
        for layer in layers:
            layer.file = self._layers / f"{layer.number:05d}.tar"
            digest = digest_of(layer)
            if digest is not None and not layer.file.exists():
                blob = self.result / BLOBS / digest.hex()
                if blob.is_file() and not blob.is_symlink():
                    blob.rename(layer.file)
        for blob in (self.result / BLOBS).iterdir():
            blob.unlink()

    def add_layer(self, layer: Layer, digest: str) -> None:
        self.add_file(blob_name(digest), layer.file)

    def add_file(self, name: str, file: Path) -> None:
        file.chmod(FILE_MODE)
        file.replace(self.result / name)

    def finish(self) -> None:
        """Nothing is left: every file was synchronised."""


class ArchiveLayout:
    """One tar, in which each layer is written at its final offset."""

    def __init__(self, work: Path, progress: Progress) -> None:
        self.result = work / "image.tar"
        must_not_lead_elsewhere(self.result)
        self._progress = progress
        self._at = 0

    def prepare(self, layers: list[Layer], digest_of: DigestOf) -> None:  # noqa: ARG002 - as the other form
        """One layer behind the other; what follows them is cut off."""
        for layer in layers:
            layer.file, layer.start = self.result, self._at + len(_blob_header("0" * 64, layer.size))
            self._at = layer.start + padded(layer.size)
        if self.result.exists() and self.result.stat().st_size > self._at:
            os.truncate(self.result, self._at)

    def add_layer(self, layer: Layer, digest: str) -> None:
        """Writes the header in front of it."""
        before = _blob_header(digest.removeprefix("sha256:"), layer.size)
        with self.result.open("r+b") as file:
            file.seek(layer.start - len(before))
            file.write(before)

    def add_file(self, name: str, file: Path) -> None:
        writing = own_file(self.result, os.O_WRONLY)
        try:
            with file.open("rb") as reading:
                self._at = write_durably(writing, self._at, self._member(name, reading))
        finally:
            os.close(writing)

    def _member(self, name: str, file: IO[bytes]) -> Iterator[bytes]:
        size = os.fstat(file.fileno()).st_size
        yield header(name, size=size)
        while piece := file.read(CHUNK):
            yield piece
            self._progress.steps += 1
        yield bytes(padded(size) - size)

    def finish(self) -> None:
        """Writes the end of the tar, and synchronises it."""
        with self.result.open("r+b") as file:
            file.seek(self._at)
            file.write(END)
            file.flush()
            os.fchmod(file.fileno(), FILE_MODE)
            os.fsync(file.fileno())


def _blob_header(digest: str, size: int) -> bytes:
    return header(f"{BLOBS}/{digest}", size=size)

"""Copies the files of a model by ranges: each range is read once, hashed and written, then noted in a journal."""

from __future__ import annotations

import hashlib
import heapq
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.destination import make_own_folder, write_durably
from hermetic.weights.entries import FACTS, MANIFEST, NAMES, PARTIAL, Serialization, key_of
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.hashing import hash_range, must_be
from hermetic.weights.journal import Journal
from hermetic.weights.listing import listed, spans
from hermetic.weights.manifests import (
    ManifestJob,
    Watched,
    must_be_same,
    names_in,
    with_content,
    write_facts,
    write_manifest_of,
    write_names,
)
from hermetic.weights.names import NamesSummary
from hermetic.weights.sources import NOT_COPIED
from hermetic.weights.tree import EntryKind, Item, Tree, WeightsStopped, finding_of, identity_of
from hermetic.weights.workers import Progress

FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""a+rX: the pod's user differs from the one that stages."""
_OWN = frozenset({MANIFEST, f"{MANIFEST}{PARTIAL}", NAMES, FACTS})


@dataclass(frozen=True, slots=True)
class Place:
    """Where the content of a file is written: from offset `start` of a file that has `size` bytes in the end."""

    path: Path
    start: int
    size: int


class Places(Protocol):
    """The places of all contents. `folder` holds those of the files that are written as files."""

    folder: Path

    def of(self, content: Item) -> Place:
        """The place of a content."""

    def staged(self, content: Item, span: tuple[int, int], *, is_new: bool) -> None:
        """Called when a range is on the disk; `is_new`: it was copied by this run."""


class FolderPlaces:
    """Every file as a file of its own, below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def of(self, content: Item) -> Place:
        """The file of the same path."""
        return Place(self.folder / content.path, 0, content.size)

    def staged(self, content: Item, span: tuple[int, int], *, is_new: bool) -> None:
        """Nothing is left to do."""


@dataclass(slots=True)
class Staged:
    """What was staged, and how much of it existed before this run. `image`: the digest of the image, if it is one.

    `facts`: of the model, as `spec.weights.facts` takes them; `without_facts`: why there are none. `unconfirmed`: why
    it is not known that the name of what was published is on the disk; "" where it is known.
    """

    root: str = ""
    names: NamesSummary = field(default_factory=lambda: NamesSummary(0, 0, ""))
    bytes_kept: int = 0
    largest: int = 0
    facts: dict[str, Any] | None = None
    without_facts: str = ""
    unconfirmed: str = ""
    weight_files: int = 0
    image: str = ""


class Copy:
    """The copy of one model's files."""

    def __init__(
        self, source: Tree, destinations: Places, journal: Journal, serialization: Serialization, progress: Progress
    ) -> None:
        self.result = Staged()
        self.folder = destinations.folder
        self._places, self._journal = destinations, journal
        self._source, self._serialization, self._progress = source, serialization, progress
        self._copied_states = hashlib.sha256()
        make_own_folder(self.folder)
        self.folder.chmod(FOLDER_MODE)

    def run(self, name: str, names: NamesSummary, watched: Watched) -> str:
        """Copies what is missing and writes the manifest; returns the root digest."""
        self.result.names = names
        self._progress.bytes_total, self._progress.files_total = names.size, names.files
        write_names(self.folder, names)
        with self._progress.asking("config.json"):
            self.result.facts, self.result.without_facts = write_facts(self._source, self.folder)
        with Tree(self.folder) as target:
            own = [item for path in (FACTS, NAMES) if (item := target.lstat(path)) is not None]

            def digest_of(content: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
                if content in own:
                    return hash_range(target, content, span, buffer, self._progress)
                return self._digest_of(content, span, buffer)

            def must_be_unchanged() -> None:
                must_be_same(names_in(self._source, self._serialization, NOT_COPIED), names)
                self._must_be_copied()
                self._remove_others(target)

            listing = heapq.merge(
                self._listing(), ((item, item) for item in own), key=lambda pair: key_of(pair[0].path)
            )
            job = ManifestJob(self.folder, name, self._listed_as(), listing, digest_of, must_be_unchanged)
            return write_manifest_of(job, watched)

    def _listing(self) -> Iterator[tuple[Item, Item]]:
        """The source in order; creates folders, links and empty files on the way."""
        for item, content in with_content(self._source, copied_items(self._source)):
            self._make_folders(item.path)
            if item.kind is EntryKind.LINK:
                self._link(item)
                self._make_folders(content.path)
            elif content.size == 0:
                os.close(_written(self._places.of(content)))
            if item.path.endswith(".safetensors"):
                self.result.weight_files += 1
            self.result.largest = max(self.result.largest, content.size)
            self._copied_states.update(_state_of(content))
            yield item, content

    def _listed_as(self) -> Serialization:
        """The serialization; links are allowed if the source has any."""
        links = any(item.kind is EntryKind.LINK for item in self._source.walk())
        self._journal.remembers = links  # then a content may be listed twice
        return replace(self._serialization, allow_symlinks=links)

    def _must_be_copied(self) -> None:
        """Raises WeightsStopped unless every file of the source is still the one that was copied."""
        now = hashlib.sha256()
        for _, content in with_content(self._source, copied_items(self._source)):
            now.update(_state_of(content))
        if now.digest() != self._copied_states.digest():
            details = "the file that was copied", "another"
            raise WeightsStopped(WeightsFinding(WeightsReason.CHANGED_WHILE_READING, self._changed(), *details))

    def _changed(self) -> str:
        """A file of the source of which a range is not in the journal; "" where every one is."""
        journal = Journal(self._journal.path)
        journal.close()
        for _, content in with_content(self._source, copied_items(self._source)):
            if any(journal.digest(content, span) is None for span in spans(content.size, self._serialization)):
                return content.path
        return ""

    def _remove_others(self, target: Tree) -> None:
        """Removes files of an earlier run that the source no longer has."""
        expected_paths = (item.path for item in copied_items(self._source))
        path = next(expected_paths, None)
        for item in target.walk():
            self._progress.steps += 1
            while path is not None and key_of(path) < key_of(item.path):
                path = next(expected_paths, None)
            if item.path != path and item.path not in _OWN:
                (self.folder / item.path).unlink()

    def _make_folders(self, path: str) -> None:
        for part in reversed(Path(path).parents[:-1]):
            folder = self.folder / part
            if folder.is_symlink() or not folder.is_dir():
                make_own_folder(folder)
                folder.chmod(FOLDER_MODE)

    def _link(self, item: Item) -> None:
        link = self.folder / item.path
        target = os.readlink(item.path, dir_fd=self._source.descriptor)
        if not link.is_symlink() or str(link.readlink()) != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    def _digest_of(self, content: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
        """The digest of a range, which is copied unless it is staged already."""
        destination = self._places.of(content)
        recorded_digest = self._journal.digest(content, span)
        if recorded_digest is not None and _is_there(destination):
            self.result.bytes_kept += span[1] - span[0]
            self._progress.read(span[1] - span[0])
            self._places.staged(content, span, is_new=False)
            return recorded_digest
        digest = self._copied(content, span, buffer, destination)
        self._journal.add(content, span, digest)
        self._places.staged(content, span, is_new=True)
        return digest

    def _copied(self, content: Item, span: tuple[int, int], buffer: memoryview, destination: Place) -> bytes:
        digest = hashlib.sha256()
        reading = self._source.open(content.path)
        try:
            must_be(content, identity_of(os.fstat(reading)))
            writing = _written(destination)
            try:
                write_durably(
                    writing, destination.start + span[0], self._pieces(content, span, buffer, reading, digest)
                )
            finally:
                os.close(writing)
            must_be(content, identity_of(os.fstat(reading)))
        finally:
            os.close(reading)
        return digest.digest()

    def _pieces(
        self, content: Item, span: tuple[int, int], buffer: memoryview, reading: int, digest: hashlib._Hash
    ) -> Iterator[memoryview]:
        """A range of the source, each piece hashed and in the same buffer."""
        offset, end = span
        while offset < end:
            try:
                count = self._source.read_into(reading, buffer[: min(len(buffer), end - offset)], offset)
            except OSError as error:
                raise WeightsStopped(finding_of(error, content.path)) from None
            if count == 0:
                details = f"{end} bytes", f"{offset} bytes"
                raise WeightsStopped(WeightsFinding(WeightsReason.CHANGED_WHILE_READING, content.path, *details))
            digest.update(buffer[:count])
            yield buffer[:count]
            offset += count
            self._progress.read(count)


def _state_of(content: Item) -> bytes:
    return repr((content.path, *content.identity)).encode()


def copied_items(source: Tree) -> Iterator[Item]:
    """Everything of a source that is copied, in the order of a manifest."""
    return (item for item in listed(source) if item.path not in NOT_COPIED)


def _written(destination: Place) -> int:
    """A descriptor of the destination file, at its full size."""
    descriptor = os.open(destination.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    if (size := os.fstat(descriptor).st_size) != destination.size:
        os.ftruncate(descriptor, destination.size)
        if size > destination.size:
            os.fsync(descriptor)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def _is_there(destination: Place) -> bool:
    try:
        stat_result = destination.path.lstat()
    except OSError:
        return False
    return stat_result.st_size == destination.size

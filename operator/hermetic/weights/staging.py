"""Staging: one pass copies a model, hashes it and writes its manifest; the model appears completely or not at all.

Everything is written below `.NAME.hermetic-partial` beside the destination: the files, a journal of staged ranges, and
a lock. The last step renames the folder of the files. The next run continues one that was killed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import heapq
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import InputError, StagingBusy, StagingStopped, Unreachable, WeightsRefused
from hermetic.weights.content import preflight
from hermetic.weights.entries import FACTS, NAMES, Serialization, key_of
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.hashing import hash_range, must_be
from hermetic.weights.journal import Journal
from hermetic.weights.listing import listed, spans
from hermetic.weights.manifests import (
    ManifestJob,
    Watched,
    must_be_same,
    names_in,
    staging_stopped,
    with_content,
    write_facts,
    write_manifest_of,
    write_names,
)
from hermetic.weights.names import NamesSummary
from hermetic.weights.sealing import Trust
from hermetic.weights.sources import NOT_COPIED
from hermetic.weights.tree import EntryKind, Item, Tree, WeightsStopped, finding_of, identity_of
from hermetic.weights.verification import verify
from hermetic.weights.workers import Progress

FILE_MODE, FOLDER_MODE = 0o644, 0o755
"""a+rX: the pod's user differs from the one that stages."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to stage. `allowed`: files that may hold code; `read_back`: hash again what was written."""

    serialization: Serialization
    allowed: frozenset[str] = frozenset()
    read_back: bool = False


@dataclass(slots=True)
class Staged:
    """What was staged, and how much of it existed before this run."""

    root: str = ""
    names: NamesSummary = field(default_factory=lambda: NamesSummary(0, 0, ""))
    kept: int = 0
    largest: int = 0
    without_facts: str = ""
    weight_files: int = 0


def stage(source: Tree, destination: Path, options: Options, watched: Watched) -> Staged:
    """Stages a model. The destination must not exist yet, or be an empty folder.

    Raises InputError, WeightsRefused (of the source, or where it changes meanwhile), StagingBusy, and StagingStopped,
    after which the same call continues.
    """
    following = replace(options.serialization, allow_symlinks=True)
    options = replace(options, serialization=following)
    whole = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow links
    if whole.is_relative_to(source.root):
        raise InputError(f"{whole}: is inside of {source.root}", fix="name a destination outside of the source")
    _must_be_free(whole)
    partial = whole.with_name(f".{whole.name}.hermetic-partial")
    try:
        return _staged(source, whole, partial, options, watched)
    except WeightsStopped as stopped:
        raise WeightsRefused([stopped.finding], f"{source.root}: was not staged") from None
    except OSError as error:
        raise staging_stopped(error, partial) from None


def _staged(source: Tree, whole: Path, partial: Path, options: Options, watched: Watched) -> Staged:
    with _alone(partial):
        _must_be_free(whole)
        names = names_in(source, options.serialization, NOT_COPIED)
        if findings := preflight(source, options.allowed):
            raise WeightsRefused(findings, f"{source.root}: was not staged")
        copy = _Copy(source, partial / "files", Journal(partial / "journal"), options, watched[0])
        try:
            copy.result.names = names
            _must_fit(partial, names, copy)
            copy.result.root = copy.run(whole.name, names, watched)
        finally:
            copy.journal.close()
        if options.read_back:
            _read_back(partial / "files", copy.result.root, watched)
        _publish(partial, whole)
    return copy.result


def _must_be_free(whole: Path) -> None:
    if not whole.parent.is_dir():
        raise Unreachable(f"{whole.parent}: is no folder", fix="mount the share, and name a folder in it")
    if whole.is_symlink() or (whole.exists() and not whole.is_dir()):
        raise InputError(f"{whole}: is there and no folder", fix="name a folder that is not there yet")
    if whole.is_dir() and any(whole.iterdir()):
        raise InputError(
            f"{whole}: is there and not empty", fix=f"hermetic verify {whole}, or name a folder that is not there yet"
        )


@contextmanager
def _alone(partial: Path) -> Iterator[None]:
    """At most one process per destination, on any machine: a POSIX lock, which NFS forwards to its server."""
    partial.mkdir(exist_ok=True)
    path = partial / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            raise StagingBusy(f"{partial}: is in use: {owner or 'another process'}") from None
        if not path.exists() or path.stat().st_ino != os.fstat(descriptor).st_ino:
            raise StagingBusy(f"{partial}: another process has just finished with it", fix="look at the destination")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _must_fit(partial: Path, names: NamesSummary, copy: _Copy) -> None:
    """Checks free space before copying. A share may count differently: then the write fails later."""
    room = os.statvfs(partial)
    free = room.f_bavail * room.f_frsize
    there = sum(path.stat().st_blocks * 512 for path in copy.folder.rglob("*") if path.is_file())
    if names.size - there > free:
        what = f"{names.size} bytes are to be staged, {there} of them are there, and {free} are free"
        raise StagingStopped(
            f"{partial.parent}: {what}", fix="make room or enlarge the share, and run the same command again"
        )


class _Copy:
    """The copy of one model's files."""

    def __init__(self, source: Tree, folder: Path, journal: Journal, options: Options, progress: Progress) -> None:
        self.result = Staged()
        self.folder, self.journal = folder, journal
        self._source, self._options, self._progress = source, options, progress
        folder.mkdir(exist_ok=True)
        folder.chmod(FOLDER_MODE)

    def run(self, name: str, names: NamesSummary, watched: Watched) -> str:
        """Copies what is missing and writes the manifest; returns the root digest."""
        self._progress.bytes_total, self._progress.files_total = names.size, names.files
        write_names(self.folder, names)
        self.result.without_facts = write_facts(self._source.root, self.folder)
        with Tree(self.folder) as target:
            own = [item for path in (FACTS, NAMES) if (item := target.look(path)) is not None]

            def digest_of(content: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
                if content in own:
                    return hash_range(target, content, span, buffer, self._progress)
                return self._digest_of(content, span, buffer)

            def must_be_unchanged() -> None:
                must_be_same(names_in(self._source, self._options.serialization, NOT_COPIED), names)
                self._must_be_copied()

            listing = heapq.merge(
                self._listing(), ((item, item) for item in own), key=lambda pair: key_of(pair[0].path)
            )
            job = ManifestJob(self.folder, name, self._listed_as(), listing, digest_of, must_be_unchanged)
            return write_manifest_of(job, watched)

    def _listing(self) -> Iterator[tuple[Item, Item]]:
        """The source in order; creates folders, links and empty files on the way."""
        items = (item for item in listed(self._source) if item.path not in NOT_COPIED)
        for item, content in with_content(self._source, items):
            self._make_folders(item.path)
            if item.kind is EntryKind.LINK:
                self._link(item)
                self._make_folders(content.path)
            elif content.size == 0:
                os.close(self._written(content))
            if item.path.endswith(".safetensors"):
                self.result.weight_files += 1
            self.result.largest = max(self.result.largest, content.size)
            yield item, content

    def _listed_as(self) -> Serialization:
        """The serialization; links are allowed if the source has any."""
        links = any(item.kind is EntryKind.LINK for item in self._source.walk())
        return replace(self._options.serialization, allow_symlinks=links)

    def _must_be_copied(self) -> None:
        """Raises WeightsStopped for a file of the source that is no longer the one that was copied."""
        items = (item for item in listed(self._source) if item.path not in NOT_COPIED)
        for _, content in with_content(self._source, items):
            for span in spans(content.size, self._options.serialization):
                if self.journal.digest(content, span) is None:
                    finding = WeightsFinding(
                        WeightsReason.CHANGED_WHILE_READING, content.path, "the file that was copied", "another"
                    )
                    raise WeightsStopped(finding)

    def _make_folders(self, path: str) -> None:
        for part in reversed(Path(path).parents[:-1]):
            folder = self.folder / part
            if not folder.is_dir():
                folder.mkdir(exist_ok=True)
                folder.chmod(FOLDER_MODE)

    def _link(self, item: Item) -> None:
        link = self.folder / item.path
        target = os.readlink(item.path, dir_fd=self._source.descriptor)
        if not link.is_symlink() or str(link.readlink()) != target:
            link.unlink(missing_ok=True)
            link.symlink_to(target)

    def _written(self, content: Item) -> int:
        """A descriptor of the destination file, at its full size."""
        descriptor = os.open(
            self.folder / content.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE
        )
        if (size := os.fstat(descriptor).st_size) != content.size:
            os.ftruncate(descriptor, content.size)
            if size > content.size:
                os.fsync(descriptor)
        os.fchmod(descriptor, FILE_MODE)
        return descriptor

    def _digest_of(self, content: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
        """The digest of a range, which is copied unless it is staged already."""
        known = self.journal.digest(content, span)
        if known is not None and self._is_there(content):
            self.result.kept += span[1] - span[0]
            self._progress.read(span[1] - span[0])
            return known
        digest = self._copied(content, span, buffer)
        self.journal.add(content, span, digest)
        return digest

    def _is_there(self, content: Item) -> bool:
        try:
            found = (self.folder / content.path).lstat()
        except OSError:
            return False
        return found.st_size == content.size

    def _copied(self, content: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
        reading = self._source.open(content.path)
        try:
            must_be(content, identity_of(os.fstat(reading)))
            writing = self._written(content)
            try:
                digest = self._pumped(content, span, buffer, (reading, writing))
                os.fdatasync(writing)
            finally:
                os.close(writing)
            must_be(content, identity_of(os.fstat(reading)))
        finally:
            os.close(reading)
        return digest

    def _pumped(self, content: Item, span: tuple[int, int], buffer: memoryview, files: tuple[int, int]) -> bytes:
        digest = hashlib.sha256()
        offset, end = span
        while offset < end:
            try:
                count = self._source.read_into(files[0], buffer[: min(len(buffer), end - offset)], offset)
            except OSError as error:
                raise WeightsStopped(finding_of(error, content.path)) from None
            if count == 0:
                finding = WeightsFinding(
                    WeightsReason.CHANGED_WHILE_READING, content.path, f"{end} bytes", f"{offset} bytes"
                )
                raise WeightsStopped(finding)
            digest.update(buffer[:count])
            done = 0
            while done < count:
                done += os.pwrite(files[1], buffer[done:count], offset + done)
            offset += count
            self._progress.read(count)
        return digest.digest()


def _read_back(folder: Path, root: str, watched: Watched) -> None:
    """Hashes what was written, read from the destination instead of this machine's page cache where possible."""
    with Tree(folder) as tree:
        for item in tree.walk():
            if item.kind is EntryKind.FILE:
                descriptor = tree.open(item.path)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(descriptor)
        found = verify(tree, Trust(digest=root), watched[1], watched[2])
    if not found.is_right:
        raise WeightsRefused(found.findings, f"{folder}: what was written is not what was read")


def _publish(partial: Path, whole: Path) -> None:
    """Renames the folder to the destination. Folders are synchronised first, so that the result is durable."""
    for folder, _, _ in os.walk(partial / "files", topdown=False):
        _synchronise(Path(folder))
    try:
        (partial / "files").rename(whole)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise InputError(f"{whole}: was made meanwhile", fix=f"hermetic verify {whole}") from None
        raise
    _synchronise(whole.parent)
    shutil.rmtree(partial)


def _synchronise(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

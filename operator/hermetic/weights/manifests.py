"""Writing the manifest of a folder: every file is hashed, by ranges and in parallel, and nothing is kept of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from hermetic.errors import StagingStopped, WeightsRefused
from hermetic.weights.entries import FILES, FOLDER, MANIFEST, NAMES, PARTIAL, SIGNATURE, Entry, Serialization
from hermetic.weights.findings import Finding, WeightsReason
from hermetic.weights.hashing import hash_range
from hermetic.weights.listing import content_of, listed, refusal_of, spans
from hermetic.weights.names import Names, NamesDigest
from hermetic.weights.statement import StatementWriter
from hermetic.weights.tree import Item, Tree, WeightsStopped
from hermetic.weights.workers import Limits, Progress, work_through

_MOST_TOLD = 20
Task: TypeAlias = "tuple[int, Item, Item, tuple[int, int]]"
"""Place in the manifest, what is listed, the file whose content it is, and the range."""
DigestOf: TypeAlias = "Callable[[Item, tuple[int, int], memoryview], bytes]"
Tell: TypeAlias = "Callable[[Progress], None]"


@dataclass(frozen=True, slots=True)
class Written:
    """A manifest that was written: its root digest, and what it lists."""

    root: str
    names: Names


def write_manifest(tree: Tree, serialization: Serialization, limits: Limits, tell: Tell) -> Written:
    """Writes `.hermetic/names.json` and `.hermetic/manifest.json`; a signature of an older manifest is removed.

    Raises WeightsRefused for what cannot be listed, and where the folder changes meanwhile.
    """
    progress = Progress()
    names = names_in(tree, serialization)
    progress.bytes_total, progress.files_total = names.size, names.files

    def digest_of(item: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
        return hash_range(tree, item, span, buffer, progress)

    try:
        return write_manifest_of(tree, serialization, names, digest_of, (progress, limits, tell))
    except WeightsStopped as stopped:
        raise WeightsRefused([stopped.finding], f"{tree.root}: no manifest was written") from None


def names_in(tree: Tree, serialization: Serialization) -> Names:
    """The names of everything that will be listed. Raises WeightsRefused for what cannot be."""
    names = NamesDigest()
    findings: list[Finding] = []
    try:
        for item in listed(tree):
            refusal = refusal_of(tree, item, links=serialization.allow_symlinks, method=serialization.method)
            if refusal is None:
                content = content_of(tree, item)
                names.add(item.path, 0 if content is None else content.size)
            elif len(findings) < _MOST_TOLD:
                findings.append(refusal)
    except WeightsStopped as stopped:
        findings.append(stopped.finding)
    if not findings and names.files == 0:
        findings.append(Finding(WeightsReason.WEIGHTS_EMPTY, "", "at least one file", "none"))
    if findings:
        raise WeightsRefused(findings, f"{tree.root}: no manifest can be written")
    return names.names()


def write_manifest_of(
    tree: Tree, serialization: Serialization, names: Names, digest_of: DigestOf, watched: tuple[Progress, Limits, Tell]
) -> Written:
    """Writes both files for a folder whose names are known. Raises WeightsStopped where the folder changes."""
    progress, limits, tell = watched
    folder = tree.root / FOLDER
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    write_whole(tree.root / NAMES, lambda file: file.write(names.as_bytes()))
    writer = StatementWriter(tree.root.resolve().name, serialization)

    def write(file: IO[bytes]) -> None:
        file.write(writer.begin())
        ordered = _InOrder(lambda entries: file.write(writer.add(entries)))

        def work(task: Task, buffer: memoryview) -> None:
            place, item, content, span = task
            digest = digest_of(content, span, buffer)
            progress.finished(item.path)
            end = -1 if serialization.method == FILES else span[1]
            ordered.put(place, Entry(item.path, span[0], end, digest))

        work_through(_tasks(tree, serialization), work, progress, limits, tell)
        file.write(writer.end())

    write_whole(tree.root / MANIFEST, write, before=lambda: _must_be_same(names_in(tree, serialization), names))
    (tree.root / SIGNATURE).unlink(missing_ok=True)
    return Written(writer.root, names)


def _tasks(tree: Tree, serialization: Serialization) -> Iterator[Task]:
    place = 0
    for item in listed(tree):
        content = content_of(tree, item)
        if content is None:
            raise WeightsStopped(Finding(WeightsReason.CHANGED_WHILE_READING, item.path, "a file", item.kind.value))
        for span in spans(content.size, serialization):
            yield place, item, content, span
            place += 1


def _must_be_same(found: Names, before: Names) -> None:
    if found != before:
        expected, now = f"{before.files} files, {before.size} bytes", f"{found.files} files, {found.size} bytes"
        raise WeightsStopped(Finding(WeightsReason.CHANGED_WHILE_READING, "", expected, now))


def write_whole(path: Path, write: Callable[[IO[bytes]], object], before: Callable[[], None] = lambda: None) -> None:
    """Writes a file beside its place, calls `before`, then renames it. Raises StagingStopped where it cannot be."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    try:
        with partial.open("wb") as file:
            write(file)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        before()
        partial.replace(path)
    except OSError as error:
        raise StagingStopped(f"{path}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


class _InOrder:
    """Passes entries on in the order of their places, in whatever order they come."""

    def __init__(self, take: Callable[[list[Entry]], object]) -> None:
        self._take = take
        self._next = 0
        self._waiting: dict[int, Entry] = {}
        self._lock = threading.Lock()

    def put(self, place: int, entry: Entry) -> None:
        """One entry. Those that come before its place may be missing still."""
        with self._lock:
            self._waiting[place] = entry
            ready = []
            while (found := self._waiting.pop(self._next, None)) is not None:
                ready.append(found)
                self._next += 1
            if ready:
                self._take(ready)

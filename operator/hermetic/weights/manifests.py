"""Writes the manifest of a folder: every file is hashed, by ranges and in parallel, and its content is not kept."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, TypeAlias

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import InputError, ModelFactsUnusable, StagingStopped, Unreachable, WeightsRefused
from hermetic.weights.destination import make_own_folder, new_file
from hermetic.weights.entries import (
    FACTS,
    FILES,
    FOLDER,
    MANIFEST,
    NAMES,
    NOT_LISTED,
    PARTIAL,
    SIGNATURE,
    Entry,
    Serialization,
)
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.hashing import hash_range
from hermetic.weights.listing import content_of, how_many_spans, listed, refusal_of, spans
from hermetic.weights.names import LARGEST_NAMES, NamesDigest, NamesSummary, names_from
from hermetic.weights.statement import StatementWriter
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import Item, Tree, WeightsStopped
from hermetic.weights.workers import FileTasks, Limits, Progress, in_turns, work_through

_MOST_LISTED = 20
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
Task: TypeAlias = "tuple[int, Item, Item, tuple[int, int]]"
"""Place in the manifest, the listed item, the file with its content, and the range."""
DigestOf: TypeAlias = "Callable[[Item, tuple[int, int], memoryview], bytes]"
OnProgress: TypeAlias = "Callable[[Progress], None]"


Watched: TypeAlias = "tuple[Progress, Limits, OnProgress]"


@dataclass(frozen=True, slots=True)
class ManifestJob:
    """One manifest to be written below `root`, of a model called `name`: each item with its content, in order.

    `digest_of` hashes a range of a content; `must_be_unchanged` raises where the listing is no longer true.
    """

    root: Path
    name: str
    serialization: Serialization
    listing: Iterator[tuple[Item, Item]]
    digest_of: DigestOf
    must_be_unchanged: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Written:
    """A manifest that was written: its root digest, what it lists, and why there are no facts of the model."""

    root: str
    names: NamesSummary
    without_facts: str = ""


def write_manifest(tree: Tree, serialization: Serialization, limits: Limits, on_progress: OnProgress) -> Written:
    """Writes `.hermetic/names.json` and `.hermetic/manifest.json`; removes a signature of an older manifest.

    Raises WeightsRefused for what cannot be listed, and where the folder changes meanwhile.
    """
    progress = Progress()
    make_folder(tree.root)
    _, without_facts = write_facts(tree, tree.root)
    names = replace(names_in(tree, serialization), excluded=excluded_before(tree))
    progress.bytes_total, progress.files_total = names.size, names.files

    def digest_of(item: Item, span: tuple[int, int], buffer: memoryview) -> bytes:
        return hash_range(tree, item, span, buffer, progress)

    def must_be_unchanged() -> None:
        must_be_same(names_in(tree, serialization), names)

    write_names(tree.root, names)
    listing = with_content(tree, listed(tree))
    job = ManifestJob(tree.root, tree.root.resolve().name, serialization, listing, digest_of, must_be_unchanged)
    try:
        return Written(write_manifest_of(job, (progress, limits, on_progress)), names, without_facts)
    except WeightsStopped as stopped:
        raise WeightsRefused([stopped.finding], f"{tree.root}: no manifest was written") from None


def names_in(tree: Tree, serialization: Serialization, without: frozenset[str] = frozenset()) -> NamesSummary:
    """The names of everything that will be listed, except some paths. Raises WeightsRefused for unlistable items."""
    names = NamesDigest()
    findings: list[WeightsFinding] = []
    links, method = serialization.allow_symlinks, serialization.method
    try:
        for item in listed(tree):
            if item.path in without:
                continue
            refusal = refusal_of(tree, item, links=links, method=method, left_out=NOT_LISTED | without)
            if refusal is None:
                content = content_of(tree, item)
                names.add(item.path, 0 if content is None else content.size)
            elif len(findings) < _MOST_LISTED:
                findings.append(refusal)
    except WeightsStopped as stopped:
        findings.append(stopped.finding)
    if not findings and names.files == 0:
        findings.append(WeightsFinding(WeightsReason.WEIGHTS_EMPTY, "", "at least one file", "none"))
    if findings:
        raise WeightsRefused(findings, f"{tree.root}: no manifest can be written")
    return names.names()


def excluded_before(tree: Tree) -> tuple[str, ...]:
    """The patterns of an earlier staging of this folder, as its file of names has them."""
    try:
        content = tree.small(NAMES, LARGEST_NAMES)
        return () if content is None else names_from(content).excluded
    except (NotJsonError, WeightsStopped):
        return ()


def write_names(root: Path, names: NamesSummary) -> None:
    """Writes `.hermetic/names.json`. Raises StagingStopped."""
    make_folder(root)
    write_whole(root / NAMES, lambda file: file.write(names.as_bytes()))


def make_folder(root: Path) -> None:
    """Makes `.hermetic`. Raises StagingStopped."""
    try:
        make_own_folder(root / FOLDER)
        (root / FOLDER).chmod(0o755)
    except OSError as error:
        raise staging_stopped(error, root / FOLDER) from None


def write_facts(source: Tree, root: Path) -> tuple[dict[str, Any] | None, str]:
    """Writes `.hermetic/model-facts.json`, for sizing. The facts, or None and why the model of `source` gives none."""
    from hermetic.sizing.facts_file import as_json, file_content
    from hermetic.weights.model_folder import read_model_facts

    selection = source.selection
    try:
        facts = read_model_facts(
            source.root, lambda name: selection is not None and selection.leaves_out(name, is_folder=False)
        )
    except (ModelFactsUnusable, InputError, Unreachable) as error:
        with contextlib.suppress(OSError):
            (root / FACTS).unlink()
        return None, error.message
    write_whole(root / FACTS, lambda file: file.write(file_content(facts)))
    return as_json(facts), ""


def write_manifest_of(job: ManifestJob, watched: Watched) -> str:
    """Writes `.hermetic/manifest.json` and returns the root digest. Raises WeightsStopped where the source changes."""
    progress, limits, on_progress = watched
    writer = StatementWriter(job.name, job.serialization)

    def write(file: IO[bytes]) -> None:
        file.write(writer.begin())
        ordered = _InOrder(lambda entries: file.write(writer.add(entries)))

        def work(task: Task, buffer: memoryview) -> None:
            position, item, content, span = task
            digest = job.digest_of(content, span, buffer)
            progress.finished(item.path)
            end = -1 if job.serialization.method == FILES else span[1]
            ordered.put(position, Entry(item.path, span[0], end, digest))

        work_through(in_turns(_files(job), limits.width), work, progress, limits, on_progress)
        file.write(writer.end())

    write_whole(job.root / MANIFEST, write, before=job.must_be_unchanged)
    (job.root / SIGNATURE).unlink(missing_ok=True)
    return writer.root


def _files(job: ManifestJob) -> Iterator[FileTasks[Task]]:
    position = 0
    for item, content in job.listing:
        count = how_many_spans(content.size, job.serialization)
        yield FileTasks(count, _tasks(position, item, content, job.serialization))
        position += count


def _tasks(first: int, item: Item, content: Item, serialization: Serialization) -> Iterator[Task]:
    return ((position, item, content, span) for position, span in enumerate(spans(content.size, serialization), first))


def with_content(tree: Tree, items: Iterable[Item]) -> Iterator[tuple[Item, Item]]:
    """Each item with the file that is read for it. Raises WeightsStopped for a link that is broken by now."""
    for item in items:
        content = content_of(tree, item)
        if content is None:
            raise WeightsStopped(
                WeightsFinding(WeightsReason.CHANGED_WHILE_READING, item.path, "a file", item.kind.value)
            )
        yield item, content


def must_be_same(names_summary: NamesSummary, before: NamesSummary) -> None:
    if names_summary != before:
        expected, now = (
            f"{before.files} files, {before.size} bytes",
            f"{names_summary.files} files, {names_summary.size} bytes",
        )
        raise WeightsStopped(WeightsFinding(WeightsReason.CHANGED_WHILE_READING, "", expected, now))


def write_whole(path: Path, write: Callable[[IO[bytes]], object], before: Callable[[], None] = lambda: None) -> None:
    """Writes a temporary file beside it, calls `before`, then renames it. Raises StagingStopped on failure."""
    partial = path.with_name(f"{path.name}{PARTIAL}")
    try:
        with new_file(partial) as file:
            write(file)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        before()
        partial.replace(path)
    except OSError as error:
        raise staging_stopped(error, path) from None
    finally:
        partial.unlink(missing_ok=True)


def staging_stopped(error: OSError, where: Path) -> StagingStopped:
    """The error for a failed write."""
    problem = error.strerror or str(error)
    if error.errno in _FULL:
        fix = "make room or enlarge the share, and run the same command again: what is staged is kept"
        return StagingStopped(f"{where.parent}: the destination is full: {problem}", fix=fix)
    return StagingStopped(f"{error.filename or where}: {problem}")


class _InOrder:
    """Passes entries on in the order of their places; they may arrive in any order."""

    def __init__(self, take: Callable[[list[Entry]], object]) -> None:
        self._take = take
        self._next = 0
        self._waiting: dict[int, Entry] = {}
        self._lock = threading.Lock()

    def put(self, position: int, entry: Entry) -> None:
        """Adds one entry. Entries before its place may still be missing."""
        with self._lock:
            self._waiting[position] = entry
            ready = []
            while (next_entry := self._waiting.pop(self._next, None)) is not None:
                ready.append(next_entry)
                self._next += 1
            if ready:
                self._take(ready)

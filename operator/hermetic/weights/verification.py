"""Verifies that weights are those that were listed and signed, in the folder that is served, without writing.

The order of trust: signature, root digest, form of the manifest, then files. Memory does not grow with the model: the
folder and the manifest are walked side by side, in the same order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import Unreachable
from hermetic.weights.entries import FILES, MANIFEST, NAMES, SIGNATURE, Entry, Serialization, key_of, ranges
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.hashing import hash_range
from hermetic.weights.listed_names import other_names
from hermetic.weights.listing import (
    content_of,
    how_many_spans,
    is_left_out,
    paths_left_out,
    refusal_of,
    refusal_of_left_out,
)
from hermetic.weights.names import LARGEST_NAMES, NamesDigest, NamesSummary, names_from
from hermetic.weights.sealing import ManifestFile, Trust, WeightsStatement, mismatch
from hermetic.weights.sources import WatchedSource
from hermetic.weights.statement import Header, read_entries, read_header
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import EntryKind, Item, Tree, WeightsStopped
from hermetic.weights.workers import FileTasks, Limits, Progress, in_turns, within, work_through

MOST_FINDINGS = 1000
MOST_SORTED = 200_000
"""Most entries that are sorted in memory where a manifest does not have them in order."""
_OTHER_SIGNATURE = "model.sig"

Task: TypeAlias = "tuple[Item, Item, Entry]"
Content: TypeAlias = "Callable[[Tree], list[WeightsFinding]]"


@dataclass(slots=True)
class Verified:
    """The result. `root` and `signer` are "" where verification ended before them."""

    findings: list[WeightsFinding] = field(default_factory=list)
    omitted: int = 0
    root: str = ""
    signer: str = ""
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        """Whether nothing is wrong, and everything could be read."""
        return not self.findings


def verify(
    tree: Tree,
    trust: Trust,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    on_progress: Callable[[Progress], None] = lambda _progress: None,
    signature: str = "",
    content: Content = lambda _tree: [],
) -> Verified:
    """Verifies a folder. `signature`: path of the bundle in it, unless it is one of the usual two.

    `content` also checks the files' content, once they match the manifest. With neither keys, roots nor digest in
    `trust` the folder is compared with its own manifest, which detects damage but not forgery.
    """
    started = time.monotonic()
    job = _Job(tree, trust, limits, signature, content)
    try:
        within(limits, job.progress, job.run, on_progress)
    except WeightsStopped as stopped:
        job.add(stopped.finding)
    verified = job.result
    verified.findings.sort(key=lambda finding: (finding.reason.is_unknown, key_of(finding.file)))
    verified.bytes, verified.seconds = job.progress.bytes_done, time.monotonic() - started
    return verified


def opened(folder: Path, limits: Limits) -> Tree:
    """The folder, opened within the time limits: a share may hang already then.

    Raises WeightsStopped where its mode does not let it be read, and Unreachable where it is not there.
    """
    return within(limits, Progress(at=str(folder)), lambda: _tree(folder))


def _tree(folder: Path) -> Tree:
    try:
        return Tree(folder)
    except Unreachable as refused:
        if not isinstance(refused.__context__, PermissionError):
            raise
        finding = WeightsFinding(WeightsReason.MODE_UNREADABLE, "", "a folder that may be read", "EACCES")
        raise WeightsStopped(finding) from None


class _Job:
    """One verification and its state."""

    def __init__(self, tree: Tree, trust: Trust, limits: Limits, signature: str, content: Content) -> None:
        self.result = Verified()
        self.progress = Progress()
        self._tree, self._trust, self._signature, self._content = tree, trust, signature, content
        self._threads = Limits(threads=limits.threads)
        self._lock = threading.Lock()
        self._wrong: set[str] = set()
        self._names = NamesDigest()

    def add(self, finding: WeightsFinding) -> None:
        """Records one finding for each file and reason; findings beyond MOST_FINDINGS are only counted."""
        with self._lock:
            if (key := f"{finding.reason}/{finding.file}") in self._wrong:
                return
            if len(self.result.findings) < MOST_FINDINGS:
                self._wrong.add(key)
                self.result.findings.append(finding)
            else:
                self.result.omitted += 1

    def run(self) -> None:
        """Runs all steps; raises WeightsStopped where it cannot continue."""
        if (path := self._manifest_path()) is None:
            expected_path = SIGNATURE if self._trust.wants_signature else MANIFEST
            self.add(WeightsFinding(WeightsReason.MANIFEST_ABSENT, self._signature or expected_path, "a file", "none"))
            return
        item = self._tree.lstat(path)
        if item is not None and item.kind is not EntryKind.FILE:
            self.add(WeightsFinding(WeightsReason.MANIFEST_INVALID, path, "a file", item.kind.value))
            return
        file = ManifestFile(self._tree, path, self.progress)
        try:
            self._read(WeightsStatement(file), path)
        except NotJsonError as error:
            self.add(WeightsFinding(WeightsReason.MANIFEST_INVALID, path, observed=str(error)))
        finally:
            file.close()
        # Each answer is a step: the files beside the weights are opened again, and many of them take their time.
        content = WatchedSource(self._tree, self.progress)
        for finding in self._content(content) if self.result.is_right else ():
            self.add(finding)

    def _manifest_path(self) -> str | None:
        signatures = (self._signature,) if self._signature else (SIGNATURE, _OTHER_SIGNATURE)
        usual = signatures if self._trust.wants_signature else (MANIFEST, *signatures)
        return next((path for path in usual if self._tree.lstat(path) is not None), None)

    def _read(self, statement: WeightsStatement, path: str) -> None:
        if self._trust.wants_signature:
            if (refusal := statement.unseal(self._trust)) is not None:
                self.add(refusal)
                return
            self.result.signer = statement.signer
        elif path != MANIFEST:
            statement.unsealed_without_trust()
        header = read_header(statement.pieces())
        self.result.root = header.root
        if self._trust.digest and (another := mismatch(header, self._trust.digest, path)) is not None:
            self.add(another)
            return
        names = self._names_of(header)
        if names is None and self._trust.digest and not self._trust.wants_signature:
            self.add(WeightsFinding(WeightsReason.NAMES_NOT_COVERED, NAMES, "an entry", "none"))
            return
        if names is not None:
            self.progress.bytes_total, self.progress.files_total = names.size, names.files
        self._compare(statement, header, names, path)

    def _names_of(self, header: Header) -> NamesSummary | None:
        """The content of `.hermetic/names.json`, if it is listed. Later it is hashed like any other file."""
        if header.names_entry is None:
            return None
        content = self._tree.small(NAMES, LARGEST_NAMES)
        if content is None:
            raise WeightsStopped(WeightsFinding(WeightsReason.FILE_MISSING, NAMES, "a file", "none"))
        try:
            return names_from(content)
        except NotJsonError as error:
            raise WeightsStopped(
                WeightsFinding(WeightsReason.DIGEST_MISMATCH, NAMES, "as listed", str(error))
            ) from None

    def _compare(self, statement: WeightsStatement, header: Header, names: NamesSummary | None, path: str) -> None:
        left_out = paths_left_out(self._trusted(header.serialization), path)
        entries = read_entries(statement.pieces(), header.serialization.method)
        if not header.is_ordered:
            if header.entries > MOST_SORTED:
                raise NotJsonError(f"its entries are not in order, and more than {MOST_SORTED}")
            entries = iter(sorted(entries, key=lambda entry: (key_of(entry.path), entry.start)))
        files = self._tasks(entries, left_out, header.serialization, set(names.empty) if names else set())
        tasks = in_turns(files, self._threads.width)
        work_through(tasks, self._check, self.progress, self._threads)
        self.result.files = self._names.files
        if names is not None and not self.result.findings:
            finding = other_names(self._names.names(), names)
            if finding is not None:
                self.add(finding)

    def _trusted(self, serialization: Serialization) -> Serialization:
        """Without what it leaves out where only a root digest is trusted: that covers what is listed, and no more."""
        is_covered = self._trust.wants_signature or not self._trust.digest
        return serialization if is_covered else replace(serialization, ignore_paths=())

    def _walked(self, left_out: frozenset[str]) -> Iterator[Item]:
        """Everything that must be listed."""
        for item in self._tree.walk():
            if not is_left_out(item.path, left_out):
                yield item
            elif (refusal := refusal_of_left_out(item)) is not None:
                self.add(refusal)

    def _tasks(
        self, entries: Iterator[Entry], left_out: frozenset[str], serialization: Serialization, empty: set[str]
    ) -> Iterator[FileTasks[Task]]:
        """Walks folder and manifest in parallel: a file in only one of them is a finding, one in both is hashed."""
        listed = groupby(entries, key=lambda entry: entry.path)
        here = self._walked(left_out)
        item, group = next(here, None), next(listed, None)
        while item is not None or group is not None:
            self.progress.steps += 1
            if group is None or (item is not None and key_of(item.path) < key_of(group[0])):
                assert item is not None  # noqa: S101 - one of the two is there
                self._only_here(item, serialization, empty)
                item = next(here, None)
            elif item is None or key_of(item.path) > key_of(group[0]):
                self.add(WeightsFinding(WeightsReason.FILE_MISSING, group[0], "a file", "none"))
                group = next(listed, None)
            else:
                yield self._both(item, group[1], serialization, left_out)
                item, group = next(here, None), next(listed, None)
        for path in empty - set(self._names.empty):
            self.add(WeightsFinding(WeightsReason.FILE_MISSING, path, "an empty file", "none"))

    def _only_here(self, item: Item, serialization: Serialization, empty: set[str]) -> None:
        if item.kind is EntryKind.FILE and item.size == 0 and item.path in empty and serialization.method != FILES:
            self._names.add(item.path, 0)
            return
        refusal = refusal_of(self._tree, item, links=True, method=FILES)
        observed = item.kind.value if item.kind is not EntryKind.FILE else f"a file of {item.size} bytes"
        self.add(refusal or WeightsFinding(WeightsReason.FILE_NOT_LISTED, item.path, "no file", observed))

    def _both(
        self, item: Item, entries: Iterator[Entry], serialization: Serialization, left_out: frozenset[str]
    ) -> FileTasks[Task]:
        ranges_listed = list(entries)
        links, method = serialization.allow_symlinks, serialization.method
        refusal = refusal_of(self._tree, item, links=links, method=method, left_out=left_out)
        content = None if refusal else content_of(self._tree, item)
        if content is None:
            self.add(refusal or WeightsFinding(WeightsReason.LINK_REFUSED, item.path, "a file", item.kind.value))
            return FileTasks(0, iter(()))
        self._names.add(item.path, content.size)
        if serialization.method == FILES:
            if len(ranges_listed) != 1:
                raise NotJsonError(f"it lists {item.path[:200]!r} twice")
        elif (size := ranges_listed[-1].end) != content.size:
            self.add(WeightsFinding(WeightsReason.SIZE_MISMATCH, item.path, f"{size} bytes", f"{content.size} bytes"))
            return FileTasks(0, iter(()))
        elif not _are_whole(ranges_listed, size, serialization):
            raise NotJsonError(f"the ranges of {item.path[:200]!r} are not the whole file")
        return FileTasks(len(ranges_listed), ((item, content, entry) for entry in ranges_listed))

    def _check(self, task: Task, buffer: memoryview) -> None:
        item, content, entry = task
        span = (0, content.size) if entry.end < 0 else (entry.start, entry.end)
        try:
            digest = hash_range(self._tree, content, span, buffer, self.progress)
        except WeightsStopped as stopped:
            self.add(stopped.finding)
            return
        self.progress.finished(item.path)
        if digest != entry.digest:
            where = "" if span == (0, content.size) else f" (bytes {span[0]} to {span[1]})"
            expected, actual = f"sha256:{entry.digest.hex()}{where}", f"sha256:{digest.hex()}"
            self.add(WeightsFinding(WeightsReason.DIGEST_MISMATCH, item.path, expected, actual))


def _are_whole(listed: list[Entry], size: int, serialization: Serialization) -> bool:
    """Whether these are the ranges of a file of this size. Counted first: a size is a number that anyone can write."""
    if len(listed) != how_many_spans(size, serialization):
        return False
    spans = ranges(size, serialization.shard_size)
    return all((entry.start, entry.end) == span for entry, span in zip(listed, spans, strict=True))

"""Sources of models: a folder, a NIM model store or cache, or a snapshot of a Hugging Face cache.

Links of a snapshot into `../../blobs` are followed, into that one folder only: the files behind them are listed and
copied. Links elsewhere are treated as in any folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from hermetic.weights.entries import FACTS, NAMES, NOT_LISTED
from hermetic.weights.selection import Selection
from hermetic.weights.tree import EntryKind, Item, Tree
from hermetic.weights.workers import Progress

_BLOB = re.compile(r"(?:\.\./)+blobs/(?P<blob>[0-9a-zA-Z._-]{1,255})")
NOT_COPIED = NOT_LISTED | {NAMES, FACTS}
"""Paths that staging writes itself."""


class HuggingFaceSnapshot(Tree):
    """The folder `snapshots/REVISION` of a cache. A link to a blob counts as the file it points to."""

    def __init__(self, root: Path, selection: Selection | None = None) -> None:
        super().__init__(root, selection)
        self._blobs = Tree(root / ".." / ".." / "blobs")

    def __exit__(self, *_: object) -> None:
        os.close(self._blobs.descriptor)
        super().__exit__()

    def _item(self, stat_result: os.stat_result, path: str) -> Item:
        item = super()._item(stat_result, path)
        if item.kind is EntryKind.LINK and (blob := self._blob(path)) is not None:
            behind = self._blobs.lstat(blob)
            if behind is not None and behind.kind is EntryKind.FILE:
                return Item(path, EntryKind.FILE, behind.size, behind.identity, behind.mode)
        return item

    def open(self, path: str) -> int:
        """As in any folder; for a link to a blob, opens the blob."""
        blob = self._blob(path)
        return super().open(path) if blob is None else self._blobs.open(blob)

    def _blob(self, path: str) -> str | None:
        try:
            target = os.readlink(path, dir_fd=self.descriptor)
        except OSError:
            return None
        matched = _BLOB.fullmatch(target)
        is_there = matched is not None and target.count("../") == path.count("/") + 2
        return matched["blob"] if matched is not None and is_there else None


class WatchedSource(Tree):
    """Another tree; `progress` shows what it was asked for and has not answered yet."""

    def __init__(self, tree: Tree, progress: Progress) -> None:
        self.root, self.descriptor, self.selection = tree.root, tree.descriptor, tree.selection
        self._tree, self._progress = tree, progress

    def walk(self) -> Iterator[Item]:
        items = self._tree.walk()
        path = ""
        while True:
            with self._progress.asking(path):
                item = next(items, None)
            if item is None:
                return
            path = item.path
            yield item

    def lstat(self, path: str) -> Item | None:
        with self._progress.asking(path):
            return self._tree.lstat(path)

    def open(self, path: str) -> int:
        with self._progress.asking(path):
            return self._tree.open(path)

    def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        with self._progress.asking(self._progress.at):
            return self._tree.read_into(descriptor, view, offset)

    def target(self, item: Item) -> str | None:
        with self._progress.asking(item.path):
            return self._tree.target(item)


def source_tree(folder: Path, excludes: tuple[str, ...] = ()) -> Tree:
    """The folder that a model is copied from, without what is no part of a model. Raises Unreachable and InputError."""
    absolute_folder = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
    is_snapshot = absolute_folder.parent.name == "snapshots" and (absolute_folder.parent.parent / "blobs").is_dir()
    selection = Selection(excludes)
    return HuggingFaceSnapshot(absolute_folder, selection) if is_snapshot else Tree(absolute_folder, selection)

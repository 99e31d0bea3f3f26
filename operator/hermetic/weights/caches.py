"""Compile caches that are staged with a model: a folder of a twin, listed below the model as if it were a part of it.

Their place is `.hermetic/caches/KEY`: `linked` holds what the engine reads, `copied` what it cannot use through a link.
They are listed, signed and verified like weights. Locks and temporary files of the twin are left out: an engine could
not open a link to a read-only lock.
"""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterator
from pathlib import Path

from hermetic.api.engine_caches import EngineCaches
from hermetic.api.staged_folders import CACHES
from hermetic.engines.compile_caches import COPIED, FOLDERS, NOT_STAGED, part_of
from hermetic.errors import InputError
from hermetic.weights.entries import key_of
from hermetic.weights.tree import EntryKind, Item, Tree

KEY_FILE = "hermetic-caches.json"
SCHEMA = "hermetic.dev/engine-caches/v1"
_TEMPORARY = (".lock", ".tmp")
_TEMPORARY_FOLDERS = frozenset({"locks", "tmp", "__pycache__"})


class WithCaches(Tree):
    """A model with the compile caches of one key, which take the place of those that it may have of that key.

    Raises InputError where the folder holds no cache that this engine could use, and Unreachable.
    """

    def __init__(self, model: Tree, caches: Path, key: EngineCaches) -> None:
        self.root, self.descriptor, self.selection = model.root, model.descriptor, model.selection
        self._model, self._caches, self.key = model, Tree(caches), key
        self._place = f"{CACHES}/{key.folder}/"
        self._key_path = f"{self._place}{COPIED}/{KEY_FILE}"
        self._key_file = _held(_as_bytes(key))
        self._paths = dict(self._staged())
        if not self._paths:
            folders = ", ".join(FOLDERS[key.engine])
            self._caches.__exit__()
            raise InputError(
                f"{caches}: holds no compile cache of {key.engine}: none of {folders} is there with a file in it",
                fix="copy $HOME/.cache of the engine's container once it serves: "
                "kubectl cp -c engine POD:/home/hermetic/.cache DIR",
            )

    def __exit__(self, *_: object) -> None:
        os.close(self._key_file)
        self._caches.__exit__()
        self._model.__exit__()

    @property
    def files(self) -> int:
        return len(self._paths)

    def walk(self) -> Iterator[Item]:
        """The model and its caches, in the order of a manifest."""
        model = (item for item in self._model.walk() if not item.path.startswith(self._place))
        yield from heapq.merge(model, self._cached(), key=lambda item: key_of(item.path))

    def lstat(self, path: str) -> Item | None:
        if not path.startswith(self._place):
            return self._model.lstat(path)
        if path == self._key_path:
            return self._item(os.fstat(self._key_file), path)
        stat_result = self._caches.lstat(self._paths[path]) if path in self._paths else None
        return _moved(stat_result, path) if stat_result is not None else None

    def open(self, path: str) -> int:
        if not path.startswith(self._place):
            return self._model.open(path)
        return os.dup(self._key_file) if path == self._key_path else self._caches.open(self._paths[path])

    def target(self, item: Item) -> str | None:
        """As in any folder; caches have no links."""
        return self._model.target(item)

    def _cached(self) -> Iterator[Item]:
        for path in sorted((*self._paths, self._key_path), key=key_of):
            if (item := self.lstat(path)) is not None:
                yield item

    def _staged(self) -> Iterator[tuple[str, str]]:
        """(path in the model, path in the folder of caches) of everything that is staged."""
        for item in self._caches.walk():
            *folders, name = item.path.split("/")
            usable = any(item.path.startswith(f"{folder}/") for folder in FOLDERS[self.key.engine])
            left = name in NOT_STAGED or name.endswith(_TEMPORARY) or _TEMPORARY_FOLDERS & set(folders)
            if usable and not left:
                yield f"{self._place}{part_of(name)}/{item.path}", item.path


def _moved(item: Item, path: str) -> Item:
    if item.kind is EntryKind.LINK:
        why = "is a link: copy caches with their content, 'cp -RL'"
        return Item(path, EntryKind.REFUSED, item.size, item.identity, item.mode, why)
    return Item(path, item.kind, item.size, item.identity, item.mode, item.why)


def _as_bytes(key: EngineCaches) -> bytes:
    form = {"schema": SCHEMA, "key": key.model_dump(by_alias=True)}
    return (json.dumps(form, indent=2, sort_keys=True) + "\n").encode()


def _held(content: bytes) -> int:
    """A descriptor of a file in memory: staging reads it like any other."""
    descriptor = os.memfd_create("caches")
    os.write(descriptor, content)
    return descriptor

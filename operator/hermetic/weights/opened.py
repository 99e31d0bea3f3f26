"""One file of a folder, opened once for the checks of its content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from hermetic.weights.tree import Item, Tree

_CHUNK = 2**18
_HEAD = 2**14
"""Most files of a model beside its weights are read at once."""


class OpenedFile:
    """`path` is the name by which it is listed, `content` the file that is read for it. `head`: its first bytes."""

    def __init__(self, tree: Tree, path: str, content: Item) -> None:
        self.path, self.size = path, content.size
        self.name = path.rpartition("/")[2]
        self._tree = tree
        self._descriptor = tree.open(content.path)
        try:
            self.head = tree.read(self._descriptor, path, 0, _HEAD)
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        os.close(self._descriptor)

    def bytes_at(self, offset: int, size: int) -> bytes:
        """Bytes from an offset, fewer at the end of the file."""
        if offset + size <= len(self.head) or len(self.head) == self.size:
            return self.head[offset : offset + size]
        return self._tree.read(self._descriptor, self.path, offset, size)

    def chunks(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` to `end`, the end of the file unless it is given, in pieces."""
        last = self.size if end is None else end
        while start < last and (chunk := self.bytes_at(start, min(_CHUNK, last - start))):
            start += len(chunk)
            yield chunk

"""The journal of staging: one line for each range that is on the destination's disk, with its digest.

A line is written after its data were synchronised. An incomplete line, and every line of a source file that changed, is
ignored: that range is copied again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermetic.weights.tree import Item

_LARGEST_LINE = 2**14


class Journal:
    """The journal of one destination, read as a whole and appended to.

    What is added is found again only by the next run, unless `remembers`: a million files fit into little memory.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.remembers = False
        self.damaged = 0
        self._known: dict[bytes, bytes] = {}
        self._lock = threading.Lock()
        for name, start, end, identity, digest in self._lines(path):
            self._known[_key(name, (start, end), identity)] = digest
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if path.stat().st_size:
            os.write(self._descriptor, b"\n")  # ends an incomplete line

    def _lines(self, path: Path) -> Iterator[tuple[str, int, int, list[int], bytes]]:
        if not path.exists():
            return
        with path.open("rb") as file:
            while line := file.readline(_LARGEST_LINE):
                if not line.strip():
                    continue
                check, _, text = line.rstrip(b"\n").partition(b" ")
                try:
                    name, start, end, identity, digest = json.loads(text if int(check, 16) == zlib.crc32(text) else b"")
                    yield str(name), int(start), int(end), list(identity), bytes.fromhex(digest)
                except (ValueError, TypeError):
                    self.damaged += 1

    def digest(self, item: Item, span: tuple[int, int]) -> bytes | None:
        """The digest of a range that is staged, of this same file; None where it is not."""
        return self._known.get(_key(item.path, span, item.identity))

    def add(self, item: Item, span: tuple[int, int], digest: bytes) -> None:
        """Records a range that is staged and synchronised."""
        text = json.dumps([item.path, *span, list(item.identity), digest.hex()]).encode()
        line = b"%08x %s\n" % (zlib.crc32(text), text)
        with self._lock:
            if self.remembers:
                self._known[_key(item.path, span, item.identity)] = digest
            os.write(self._descriptor, line)

    def close(self) -> None:
        """Synchronises the journal and closes it."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)


def _key(path: str, span: tuple[int, int], identity: Sequence[int]) -> bytes:
    """16 bytes for a range of a file in one state."""
    return hashlib.blake2b(repr((path, *span, *identity)).encode(), digest_size=16).digest()

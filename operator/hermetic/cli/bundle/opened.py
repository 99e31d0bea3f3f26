"""A verified bundle, opened again to read single files of it: nothing is unpacked."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hermetic.errors import BundleRefused, Unreachable


@dataclass(frozen=True, slots=True)
class BundleFiles:
    """Where each file of the tar begins, and its size in bytes."""

    _opened: IO[bytes]
    _positions: dict[str, tuple[int, int]]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files, in the order of the tar."""
        return tuple(self._positions)

    def size(self, name: str) -> int:
        """Bytes of a file. Raises BundleRefused where it is missing."""
        if name not in self._positions:
            raise BundleRefused(f"{name} is missing")
        return self._positions[name][1]

    def read(self, name: str, offset: int, length: int) -> bytes:
        """Bytes of a file from an offset on. Raises BundleRefused and Unreachable."""
        length = min(length, self.size(name) - offset)
        try:
            return os.pread(self._opened.fileno(), length, self._positions[name][0] + offset)
        except OSError as error:
            raise Unreachable(f"{name} of the bundle cannot be read: {error.strerror}", fix="check the disk") from None

    def content(self, name: str, largest: int) -> bytes:
        """All bytes of a file of at most this size. Raises BundleRefused and Unreachable."""
        if (size := self.size(name)) > largest:
            raise BundleRefused(f"{name} has {size} bytes; {largest} are the most")
        return self.read(name, 0, size)


@contextmanager
def opened(path: Path, verified: os.stat_result) -> Iterator[BundleFiles]:
    """The files of a bundle, which must be the file that was verified: the same inode, size and time of change."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror}", fix="name a file that can be read") from None
    with file:
        if _identity(os.fstat(file.fileno())) != _identity(verified):
            raise BundleRefused("was changed after it was verified")
        with tarfile.open(fileobj=file, mode="r:") as tar:
            positions = {member.name: (member.offset_data, member.size) for member in tar if member.isreg()}
        yield BundleFiles(file, positions)


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

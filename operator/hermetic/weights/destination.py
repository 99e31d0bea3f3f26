"""Files and folders that staging makes where others may write too: no link that is there already is followed.

A share can hold links of others, and the machine that stages would resolve them on its own disks.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path
from typing import IO

from hermetic.errors import StagingStopped

SYNCHRONISED = 2**28
"""Bytes after which what was written is synchronised, at the latest: fewer cost a disk time, more could take a slow one
longer than the limit for one that hangs."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_own_folder(path: Path) -> None:
    """Makes a folder unless it is there. Raises StagingStopped where a link or a file is there."""
    with suppress(FileExistsError):
        path.mkdir()
    must_not_lead_elsewhere(path)
    if path.exists() and not path.is_dir():
        raise StagingStopped(f"{path}: is there and no folder", fix="remove it, and run the same command again")


def must_not_lead_elsewhere(path: Path) -> None:
    """Raises StagingStopped for a symbolic link."""
    if path.is_symlink():
        raise StagingStopped(
            f"{path}: is a symbolic link, which is not followed: it could lead to files of this machine",
            fix="find who writes to the share beside you, remove the link, and run the same command again",
        )


def new_file(path: Path) -> IO[bytes]:
    """A new file in place of what is there; the folder it is in is no link."""
    must_not_lead_elsewhere(path.parent)
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, _NEW, 0o644), "wb")


def own_file(path: Path, flags: int) -> int:
    """A descriptor of a file that is there, or is made. Raises StagingStopped for a link or a special file."""
    must_not_lead_elsewhere(path)
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StagingStopped(f"{path}: is there and no file", fix="remove it, and run the same command again")
    return descriptor


def write_durably(descriptor: int, at: int, pieces: Iterable[bytes | memoryview]) -> int:
    """Writes pieces one behind the other, from an offset; all of it is on the disk then. Returns where it ends.

    A piece is written before the next one is asked for. Whole pages go to a disk of this machine past its page cache:
    the cache would cost a copy and, at the end, a time in which the disk works and the processor waits.
    """
    is_direct = os.major(os.fstat(descriptor).st_dev) != 0  # network file systems and memory have no device
    synchronised = at
    for piece in pieces:
        left = memoryview(piece)
        while left:
            count = 0
            if is_direct and at % PAGESIZE == 0 and len(left) >= PAGESIZE:
                count = _written_past_cache(descriptor, at, left[: len(left) // PAGESIZE * PAGESIZE])
                is_direct = count > 0
            count = count or os.pwrite(descriptor, left, at)
            at, left = at + count, left[count:]
        if at - synchronised >= SYNCHRONISED:
            os.fdatasync(descriptor)
            synchronised = at
    os.fdatasync(descriptor)
    return at


def _written_past_cache(descriptor: int, at: int, pages: memoryview) -> int:
    """How many bytes of whole pages were written; 0 where the file system, or the place of the pages, forbids it."""
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags | os.O_DIRECT)
        return os.pwrite(descriptor, pages, at)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return 0
    finally:
        fcntl.fcntl(descriptor, fcntl.F_SETFL, flags)

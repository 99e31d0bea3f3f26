"""The folder beside a destination in which staging works, until one rename makes the result appear."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermetic.errors import InputError, StagingBusy, StagingStopped, Unreachable
from hermetic.weights.destination import make_own_folder, own_file
from hermetic.weights.workers import Progress

LOCK = "lock"
JOURNAL = "journal"


def partial_of(path: Path) -> Path:
    """The folder that staging to this destination works in."""
    return path.with_name(f".{path.name}.hermetic-partial")


def must_be_free(path: Path, *, is_file: bool = False) -> None:
    """Raises Unreachable and InputError unless nothing is at the destination, or, for a folder, an empty one."""
    if not path.parent.is_dir():
        raise Unreachable(f"{path.parent}: is not a folder", fix="mount the share, and name a folder in it")
    if is_file and (path.is_symlink() or path.exists()):
        raise InputError(f"{path}: is there already", fix="name a file that is not there yet")
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InputError(f"{path}: is there and no folder", fix="name a folder that is not there yet")
    if path.is_dir() and any(path.iterdir()):
        raise InputError(
            f"{path}: is there and not empty", fix=f"hermetic verify {path}, or name a folder that is not there yet"
        )


@contextmanager
def alone(partial: Path) -> Iterator[None]:
    """At most one process per destination, on any machine: a POSIX lock, which NFS forwards to its server."""
    make_own_folder(partial)
    path = partial / LOCK
    finished = StagingBusy(f"{partial}: another process has just finished with it", fix="look at the destination")
    try:
        descriptor = own_file(path, os.O_RDWR)
    except FileNotFoundError:
        raise finished from None
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.EACCES}:
                raise
            owner = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            raise StagingBusy(f"{partial}: is in use: {owner or 'another process'}") from None
        if not path.exists() or path.stat().st_ino != os.fstat(descriptor).st_ino:
            raise finished
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def keep_only(partial: Path, progress: Progress, *names: str) -> None:
    """Removes what an earlier run in another format left in the folder."""
    for path in partial.iterdir():
        if path.name not in {LOCK, *names}:
            _remove(path, progress)


def is_kept(partial: Path) -> bool:
    """Whether the same command continues what is there, or a link is there that staging did not make."""
    journals = (partial / JOURNAL, *partial.glob(f"*/{JOURNAL}"))
    has_ranges = any(journal.is_symlink() or (journal.exists() and journal.stat().st_size) for journal in journals)
    return has_ranges or any(path.is_symlink() for path in partial.rglob("*"))


def discard(partial: Path, progress: Progress) -> None:
    """Removes the folder, as far as it can be removed. Another process may be making its lock in it."""
    with contextlib.suppress(OSError):
        _remove(partial, progress)


def _remove(path: Path, progress: Progress) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink()
        return
    for name, folders, files, descriptor in os.fwalk(path, topdown=False):
        folder = Path(name)
        for child in (*files, *(link for link in folders if (folder / link).is_symlink())):
            os.unlink(child, dir_fd=descriptor)
            progress.steps += 1
        folder.rmdir()


def publish(partial: Path, result: Path, path: Path, progress: Progress) -> str:
    """Renames the result to the destination; "", or why it is not known that the new name is on the disk.

    The result's folders are synchronised before: an error until then raises OSError, and nothing appears.
    """
    for folder, _, _ in os.walk(result, topdown=False):
        synchronise(Path(folder))
        progress.steps += 1
    if not result.is_dir():
        must_be_free(path, is_file=True)
    if progress.abandoned:
        raise StagingStopped(f"{path}: was not published, because the time limit has passed")
    try:
        result.rename(path)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise InputError(f"{path}: was made meanwhile", fix=f"hermetic verify {path}") from None
        raise
    unconfirmed = ""
    try:
        synchronise(path.parent)
    except OSError as error:
        unconfirmed = error.strerror or str(error)
    discard(partial, progress)
    return unconfirmed


def synchronise(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""The folder beside a destination in which staging works, until one rename makes the result appear."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermetic.errors import InputError, StagingBusy, Unreachable
from hermetic.weights.destination import make_own_folder, own_file

LOCK = "lock"


def partial_of(whole: Path) -> Path:
    """The folder that staging to this destination works in."""
    return whole.with_name(f".{whole.name}.hermetic-partial")


def must_be_free(whole: Path, *, is_file: bool = False) -> None:
    """Raises Unreachable and InputError unless nothing is at the destination, or, for a folder, an empty one."""
    if not whole.parent.is_dir():
        raise Unreachable(f"{whole.parent}: is no folder", fix="mount the share, and name a folder in it")
    if is_file and (whole.is_symlink() or whole.exists()):
        raise InputError(f"{whole}: is there already", fix="name a file that is not there yet")
    if whole.is_symlink() or (whole.exists() and not whole.is_dir()):
        raise InputError(f"{whole}: is there and no folder", fix="name a folder that is not there yet")
    if whole.is_dir() and any(whole.iterdir()):
        raise InputError(
            f"{whole}: is there and not empty", fix=f"hermetic verify {whole}, or name a folder that is not there yet"
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
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def keep_only(partial: Path, *names: str) -> None:
    """Removes what an earlier run in another format left in the folder."""
    for path in partial.iterdir():
        if path.name in {LOCK, *names}:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def publish(partial: Path, result: Path, whole: Path) -> None:
    """Renames the result to the destination. Folders are synchronised first, so that it is durable."""
    for folder, _, _ in os.walk(result, topdown=False):
        synchronise(Path(folder))
    if not result.is_dir():
        must_be_free(whole, is_file=True)
    try:
        result.rename(whole)
    except OSError as error:
        if error.errno in {errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            raise InputError(f"{whole}: was made meanwhile", fix=f"hermetic verify {whole}") from None
        raise
    synchronise(whole.parent)
    # one that comes late may make its lock in it meanwhile; the model is there all the same
    shutil.rmtree(partial, ignore_errors=True)


def synchronise(folder: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

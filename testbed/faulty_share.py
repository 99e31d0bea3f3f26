"""A folder mounted read-only through the kernel's FUSE, whose operations fail, wait or never end (root).

It stands for a share whose server fails: what the process under test sees comes from the kernel. The messages are those
of include/uapi/linux/fuse.h, protocol 7.31, with direct I/O, so that an error reaches the reader as it is.
"""

from __future__ import annotations

import ctypes
import errno
import heapq
import os
import select
import stat
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from testbed.errors import CannotRunError

HANGS = -1
"""In place of an errno: the operation gets no answer."""
DEVICE = Path("/dev/fuse")
LOOKUP, FORGET, GETATTR, READLINK, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 5, 14, 15, 17, 18
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 28, 29, 36, 42
UNANSWERED = {FORGET, BATCH_FORGET}
NAMES = {LOOKUP: "lookup", GETATTR: "getattr", OPEN: "open", READ: "read", OPENDIR: "opendir", READDIR: "readdir"}
_IN, _OUT = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MNT_DETACH, _DIRECT_IO = 1, 2, 4, 2, 1
_LIBC = ctypes.CDLL(None, use_errno=True)

Fault = Callable[[str, str, int], int]
"""(operation, path, offset) -> 0, an errno, or HANGS."""
Due = Callable[[str, int], float]
"""(path, bytes) -> when a read of so many bytes of this file is answered, by time.monotonic()."""
_POLL_SECONDS = 0.05


class FaultyShare:
    """`folder` at `mountpoint`, both absolute. Raises CannotRunError where FUSE cannot be mounted."""

    def __init__(
        self, folder: Path, mountpoint: Path, fault: Fault = lambda *_operation: 0, due: Due = lambda *_read: 0.0
    ) -> None:
        self.fault = fault
        self._due = due
        self._later: list[tuple[float, int, bytes]] = []
        self._folder, self._mountpoint = folder, mountpoint
        self._paths = {1: ""}
        self._ids = {"": 1}
        self._hanging = set[int]()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        if os.geteuid() != 0 or not DEVICE.exists():
            raise CannotRunError("a FUSE mount needs root and /dev/fuse")
        self._device = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self._device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
        flags = _MS_RDONLY | _MS_NOSUID | _MS_NODEV
        if _LIBC.mount(b"share", os.fsencode(self._mountpoint), b"fuse", flags, options):
            os.close(self._device)
            raise CannotRunError(f"FUSE cannot be mounted here: {os.strerror(ctypes.get_errno())}")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        os.close(self._device)  # what waits for an answer ends with an error
        _LIBC.umount2(os.fsencode(self._mountpoint), _MNT_DETACH)

    def _serve(self) -> None:
        while not self._stopping.is_set():
            wait = self._later[0][0] - time.monotonic() if self._later else _POLL_SECONDS
            is_asked = select.select([self._device], [], [], max(0.0, min(wait, _POLL_SECONDS)))[0]
            while self._later and self._later[0][0] <= time.monotonic():
                os.write(self._device, heapq.heappop(self._later)[2])
            if not is_asked:
                continue
            try:
                message = os.read(self._device, 2**20)
            except OSError:
                return
            _, operation, unique, node, *_ = _IN.unpack_from(message)
            if operation == INTERRUPT:
                self._interrupt(struct.unpack_from("<Q", message, _IN.size)[0])
            elif operation not in UNANSWERED:
                self._answer(operation, unique, node, message[_IN.size :])

    def _answer(self, operation: int, unique: int, node: int, body: bytes) -> None:
        code, content = 0, b""
        try:
            code = self.fault(NAMES.get(operation, ""), *self._what(operation, node, body))
            content = b"" if code else self._content(operation, node, body)
        except OSError as error:
            code = error.errno or errno.EIO
        if code == HANGS:
            self._hanging.add(unique)
            return
        answer = _OUT.pack(_OUT.size + len(content), -code, unique) + content
        due = self._due(self._what(operation, node, body)[0], len(content)) if operation == READ else 0.0
        if due > time.monotonic():
            heapq.heappush(self._later, (due, unique, answer))
        else:
            os.write(self._device, answer)

    def _interrupt(self, unique: int) -> None:
        """A process that ends may give up waiting, as one that waits for an NFS server may."""
        if unique in self._hanging:
            self._hanging.remove(unique)
            os.write(self._device, _OUT.pack(_OUT.size, -errno.EINTR, unique))

    def _what(self, operation: int, node: int, body: bytes) -> tuple[str, int]:
        path = self._paths.get(node, "")
        if operation == LOOKUP:
            path = f"{path}/{os.fsdecode(body.rstrip(bytes(1)))}".lstrip("/")
        return path, struct.unpack_from("<Q", body, 8)[0] if operation == READ else 0

    def _content(self, operation: int, node: int, body: bytes) -> bytes:
        path, offset = self._what(operation, node, body)
        file = self._folder / path
        answers: dict[int, Callable[[], bytes]] = {
            INIT: lambda: struct.pack("<4I2H2I2HI28x", 7, 31, 2**17, 0, 16, 12, 2**17, 1, 0, 0, 0),
            LOOKUP: lambda: struct.pack("<4Q2I", self._id(path), 0, 0, 0, 0, 0) + self._attributes(file, path),
            GETATTR: lambda: struct.pack("<Q2I", 0, 0, 0) + self._attributes(file, path),
            READLINK: lambda: os.fsencode(file.readlink()),
            OPEN: lambda: struct.pack("<Q2I", 0, _DIRECT_IO, 0),
            OPENDIR: lambda: bytes(16),
            READ: lambda: _read(file, offset, struct.unpack_from("<I", body, 16)[0]),
            READDIR: lambda: _entries(file, *struct.unpack_from("<QI", body, 8)),
            STATFS: lambda: struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0),
            RELEASE: bytes,
            RELEASEDIR: bytes,
        }
        if operation not in answers:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        return answers[operation]()

    def _id(self, path: str) -> int:
        if path not in self._ids:
            self._ids[path] = len(self._ids) + 1
            self._paths[self._ids[path]] = path
        return self._ids[path]

    def _attributes(self, file: Path, path: str) -> bytes:
        status = file.lstat()
        seconds = (status.st_atime_ns // 10**9, status.st_mtime_ns // 10**9, status.st_ctime_ns // 10**9)
        rest = (status.st_atime_ns % 10**9, status.st_mtime_ns % 10**9, status.st_ctime_ns % 10**9)
        return _ATTRIBUTES.pack(
            self._id(path), status.st_size, status.st_blocks, *seconds, *rest, status.st_mode, status.st_nlink, 0, 0, 0,
            4096, 0,
        )  # fmt: skip


def _read(file: Path, offset: int, size: int) -> bytes:
    with file.open("rb") as opened:
        return os.pread(opened.fileno(), size, offset)


def _entries(folder: Path, offset: int, size: int) -> bytes:
    content = b""
    for position, path in enumerate(sorted(folder.iterdir())):
        name = os.fsencode(path.name)
        entry = (
            struct.pack("<2Q2I", position + 2, position + 1, len(name), stat.S_IFMT(path.lstat().st_mode) >> 12) + name
        )
        entry += bytes(-len(entry) % 8)
        if position >= offset and len(content) + len(entry) <= size:
            content += entry
    return content

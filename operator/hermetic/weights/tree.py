"""A folder of weights, walked in the order of a manifest and read without following links.

Everything is opened relative to the folder's own descriptor, part by part and with O_NOFOLLOW: a part that is replaced
by a link between the walk and the read is an error, never another file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Self, TypeAlias

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import InputError, Unreachable
from hermetic.weights.entries import DEEPEST_PATH, wrong_with_path
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.selection import Selection

MOST_FILES = 8_000_000
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = _FLAGS | os.O_DIRECTORY
_STALE_IS_TRIED = 2
_MOST_LINKS = 8

Identity: TypeAlias = "tuple[int, int, int, int, int]"
"""Device, inode, size, and the times (ns) of the last change of content and of the inode."""


class WeightsStopped(Exception):
    """Reading the weights ended with this finding: nothing after it was read."""

    def __init__(self, finding: WeightsFinding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class EntryKind(Enum):
    """The kind of file at a path."""

    FILE = "file"
    LINK = "symbolic link"
    FOLDER = "folder"
    SPECIAL = "special file"
    REFUSED = "name that is refused"


@dataclass(slots=True)
class Item:
    """One item that is not a folder. `size` in bytes; `why`: the reason for a name that is refused."""

    path: str
    kind: EntryKind
    size: int
    identity: Identity
    mode: int
    why: str = ""


class Tree:
    """One folder, kept open. Raises InputError where it does not exist, Unreachable, and WeightsStopped later.

    What `selection` leaves out is not there: it is neither walked nor found by its path.
    """

    selection: Selection | None = None

    def __init__(self, root: Path, selection: Selection | None = None) -> None:
        self.root, self.selection = root, selection
        try:
            self.descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except NotADirectoryError:
            raise InputError(f"{root}: is not a folder", fix="name the folder that holds the weights") from None
        except FileNotFoundError:
            raise InputError(f"{root}: No such file or directory", fix="name a folder that exists") from None
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", "") or str(error)
            raise Unreachable(f"{root}: {problem}", fix="name a folder that can be read") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def walk(self) -> Iterator[Item]:
        """Every file, link and special file, in the order of a manifest; empty folders are skipped."""
        for count, item in enumerate(self._walk(os.dup(self.descriptor), "", 0)):
            if count == MOST_FILES:
                raise WeightsStopped(WeightsFinding(WeightsReason.TOO_MUCH, "", f"at most {MOST_FILES} files", "more"))
            yield item

    def _walk(self, folder: int, prefix: str, depth: int) -> Iterator[Item]:
        try:
            for name, is_folder in self._listed(folder, prefix):
                path = prefix + name
                if self.selection is not None and self.selection.leaves_out(path, is_folder=is_folder):
                    continue
                if (why := wrong_with_path(path)) is not None or depth == DEEPEST_PATH:
                    shown = path.encode(errors="surrogateescape").decode(errors="replace")
                    yield Item(shown, EntryKind.REFUSED, 0, (0, 0, 0, 0, 0), 0, why or "is too deep")
                elif is_folder:
                    inner = self._opened(name, path, folder, _FOLDER_FLAGS)
                    yield from self._walk(inner, f"{path}/", depth + 1)
                else:
                    yield self._item(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
        except OSError as error:
            raise _stopped(error, prefix) from None
        finally:
            os.close(folder)

    def _listed(self, folder: int, prefix: str) -> Iterator[tuple[str, bool]]:
        """Names in order. Stored as bytes, name and kind separated by a NUL: a folder may have a million."""
        names: list[bytes] = []
        with os.scandir(folder) as entries:
            for entry in entries:
                names.append(os.fsencode(entry.name) + (b"\0d" if entry.is_dir(follow_symlinks=False) else b"\0f"))
                if len(names) > MOST_FILES:
                    raise WeightsStopped(
                        WeightsFinding(WeightsReason.TOO_MUCH, prefix, f"at most {MOST_FILES} files", "more")
                    )
        names.sort()
        for name in names:
            yield os.fsdecode(name[:-2]), name.endswith(b"d")

    def _item(self, stat_result: os.stat_result, path: str) -> Item:
        kind = kind_of(stat_result.st_mode)
        return Item(path, kind, stat_result.st_size, identity_of(stat_result), stat_result.st_mode)

    def lstat(self, path: str) -> Item | None:
        """The item at a path now, links not followed; None where there is none."""
        try:
            item = self._item(os.stat(path, dir_fd=self.descriptor, follow_symlinks=False), path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise _stopped(error, path) from None
        is_folder = item.kind is EntryKind.FOLDER
        return None if self.selection is not None and self.selection.hides(path, is_folder=is_folder) else item

    def open(self, path: str) -> int:
        """A descriptor for reading a file. Raises WeightsStopped: a link in its path is ChangedWhileReading."""
        *folders, name = path.split("/")
        if not folders:
            return self._opened(name, path, self.descriptor, _FLAGS)
        at = os.dup(self.descriptor)
        try:
            for part in folders:
                inner = self._opened(part, path, at, _FOLDER_FLAGS)
                os.close(at)
                at = inner
            return self._opened(name, path, at, _FLAGS)
        finally:
            os.close(at)

    def _opened(self, name: str, path: str, folder: int, flags: int) -> int:
        for attempt in range(1, _STALE_IS_TRIED + 1):
            try:
                return os.open(name, flags | os.O_NONBLOCK, dir_fd=folder)
            except OSError as error:
                # an NFS server was restarted: the name is resolved once more
                if error.errno != errno.ESTALE or attempt == _STALE_IS_TRIED:
                    raise _stopped(error, path) from None
        raise AssertionError("the loop returns or raises")

    def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        """Fills the view from an offset of a file; returns the bytes that were read, 0 at the end of the file."""
        return os.preadv(descriptor, [view], offset)

    def small(self, path: str, largest: int) -> bytes | None:
        """The content of a small file; None where there is none. Raises WeightsStopped where it is larger."""
        if (item := self.lstat(path)) is None:
            return None
        if item.kind is not EntryKind.FILE:
            raise WeightsStopped(WeightsFinding(WeightsReason.LINK_REFUSED, path, "a file", f"a {item.kind.value}"))
        if item.size > largest:
            raise WeightsStopped(
                WeightsFinding(WeightsReason.TOO_MUCH, path, f"at most {largest} bytes", f"{item.size} bytes")
            )
        descriptor = self.open(path)
        try:
            return self.read(descriptor, path, 0, largest)
        finally:
            os.close(descriptor)

    def read(self, descriptor: int, path: str, offset: int, size: int) -> bytes:
        """Bytes of a file, fewer at its end."""
        content = bytearray(min(size, os.fstat(descriptor).st_size - offset) if size else 0)
        view = memoryview(content)
        done = 0
        try:
            while done < len(content) and (count := self.read_into(descriptor, view[done:], offset + done)):
                done += count
        except OSError as error:
            raise _stopped(error, path) from None
        return bytes(view[:done])

    def target(self, item: Item) -> str | None:
        """The target of a link if it is a file inside the folder; else None.

        The kernel follows a link in the middle of a path before a ".." after it (path_resolution(7)). Each
        part must be a folder, so that the path found here is the one that an engine opens.
        """
        path = item.path
        for _ in range(_MOST_LINKS):
            further = self._one_link_further(path)
            stat_result = None if further is None else self.lstat(further)
            if stat_result is None or stat_result.kind not in {EntryKind.FILE, EntryKind.LINK}:
                return None
            if stat_result.kind is EntryKind.FILE:
                return further
            path = stat_result.path
        return None

    def _one_link_further(self, path: str) -> str | None:
        """The path that a link holds, from the folder; None where it leaves the folder or its parts are no folders."""
        try:
            *through, name = os.readlink(path, dir_fd=self.descriptor).split("/")
        except OSError as error:
            raise _stopped(error, path) from None
        if (through and not through[0]) or name in {"", ".", ".."}:
            return None
        parts = path.split("/")[:-1]
        for part in through:
            if part == "..":
                if not parts:
                    return None
                parts.pop()
            elif part not in {"", "."}:
                parts.append(part)
                stat_result = self.lstat("/".join(parts))
                if stat_result is None or stat_result.kind is not EntryKind.FOLDER:
                    return None
        return "/".join((*parts, name))


def kind_of(mode: int) -> EntryKind:
    """The kind for a mode of stat."""
    if stat.S_ISREG(mode):
        return EntryKind.FILE
    if stat.S_ISLNK(mode):
        return EntryKind.LINK
    return EntryKind.FOLDER if stat.S_ISDIR(mode) else EntryKind.SPECIAL


def identity_of(stat_result: os.stat_result) -> Identity:
    """Values that change when a file is replaced or written."""
    return stat_result.st_dev, stat_result.st_ino, stat_result.st_size, stat_result.st_mtime_ns, stat_result.st_ctime_ns


def _stopped(error: OSError, path: str) -> WeightsStopped:
    return WeightsStopped(finding_of(error, path))


def finding_of(error: OSError, path: str) -> WeightsFinding:
    """The finding for an error of the file system."""
    problem = f"{errno.errorcode.get(error.errno or 0, '')} {error.strerror}".strip()
    if error.errno in {errno.ELOOP, errno.ENOENT, errno.ENOTDIR, errno.ENXIO}:
        return WeightsFinding(WeightsReason.CHANGED_WHILE_READING, path, "the file that was listed", problem)
    if error.errno in {errno.EACCES, errno.EPERM}:
        return WeightsFinding(WeightsReason.MODE_UNREADABLE, path, "readable", problem)
    return WeightsFinding(WeightsReason.READ_FAILED, path, "content", problem)

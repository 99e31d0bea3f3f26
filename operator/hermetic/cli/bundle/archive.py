"""A bundle's tar, read once from beginning to end: nothing is unpacked, nothing large is kept in memory.

Only plain files and the folders that they lie in are accepted. A link, a folder without a file, a device, a name
outside the bundle, a duplicate name, an extended header and bytes after the end are refused, because two programs could
unpack them differently.
"""

from __future__ import annotations

import hashlib
import tarfile
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from hermetic.cli.bundle.layout import ARTIFACTS, BLOBS, COMMAND_LINES, is_folder_name, is_name
from hermetic.errors import BundleRefused, InputError, Unreachable

LARGEST_BUNDLE = 4 * 2**30
LARGEST_BLOB = 2**30
LARGEST_FILE = 16 * 2**20
LARGEST_KEPT = 64 * 2**10
"""Bytes of a file whose content is kept; everything that is parsed as JSON or text is smaller."""
MOST_FILES = 2_000
_CHUNK = 2**20


@dataclass(slots=True)
class Archive:
    """Contents of the tar: SHA-256 and size of every file, and the bytes of small ones."""

    sha256: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)

    def content(self, name: str) -> bytes:
        """The content of a small file. Raises BundleRefused where there is none."""
        if name not in self.sha256:
            raise BundleRefused(f"{name} is missing")
        if name not in self.contents:
            raise BundleRefused(f"{name} has {self.sizes[name]} bytes; {LARGEST_KEPT} are the most")
        return self.contents[name]


def read_archive(path: Path) -> Archive:
    """The content of a bundle. Raises BundleRefused, InputError for a folder or a missing file, Unreachable."""
    try:
        with path.open("rb") as file:
            if (size := path.stat().st_size) > LARGEST_BUNDLE:
                raise BundleRefused(f"the file has {size} bytes; {LARGEST_BUNDLE} are the most")
            return _read(file)
    except tarfile.TarError as error:
        raise BundleRefused(f"is not a whole tar: {error}") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder", fix="name the tar, not what was unpacked from it") from None
    except FileNotFoundError:
        raise InputError(f"{path}: No such file or directory", fix="name a file that exists") from None
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror}", fix="name a file that can be read") from None


def _read(file: IO[bytes]) -> Archive:
    archive = Archive()
    with tarfile.open(fileobj=file, mode="r:") as tar:
        for member in tar:
            _must_be_acceptable(member, archive)
            if member.isdir():
                archive.folders.add(member.name)
            else:
                _add(tar, member, archive)
        file.seek(tar.offset)
    parents = {str(folder) for name in archive.sha256 for folder in PurePosixPath(name).parents}
    if empty := sorted(archive.folders - parents):
        raise BundleRefused(f"{empty[0]!r} is a folder in which no file of the bundle lies")
    while chunk := file.read(_CHUNK):
        if chunk.strip(b"\0"):
            raise BundleRefused("there are bytes after the end of the tar, or a damaged header ends it early")
    return archive


def _must_be_acceptable(member: tarfile.TarInfo, archive: Archive) -> None:
    name = member.name
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
        raise BundleRefused(f"{name!r} is a link or a device; a bundle holds only files and folders")
    if member.pax_headers or not (is_folder_name(name) and member.size == 0 if member.isdir() else is_name(name)):
        raise BundleRefused(f"{name!r} is not a name of a file in a bundle")
    if name in archive.sha256 or name in archive.folders:
        raise BundleRefused(f"{name} is there twice")
    large = (BLOBS, ARTIFACTS + BLOBS, COMMAND_LINES)
    largest = LARGEST_BLOB if name.startswith(large) else LARGEST_FILE
    if member.size > largest:
        raise BundleRefused(f"{name} has {member.size} bytes; {largest} are the most")
    if len(archive.sha256) + len(archive.folders) == MOST_FILES:
        raise BundleRefused(f"there are more than {MOST_FILES} files")


def _add(tar: tarfile.TarFile, member: tarfile.TarInfo, archive: Archive) -> None:
    opened = tar.extractfile(member)
    assert opened is not None  # noqa: S101 - a plain file
    digest, content = hashlib.sha256(), b""
    while chunk := opened.read(_CHUNK):
        digest.update(chunk)
        if member.size <= LARGEST_KEPT:
            content += chunk
    archive.sha256[member.name], archive.sizes[member.name] = digest.hexdigest(), member.size
    if member.size <= LARGEST_KEPT:
        archive.contents[member.name] = content

"""Image layers: tar bytes made from named files or from a folder, the same bytes for the same content.

Owners, times and order are fixed, so that a digest changes only when a file does.
"""

import hashlib
import io
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FILE, PROGRAM, FOLDER, SCRATCH_FOLDER = 0o644, 0o755, 0o755, 0o1777


TAR = "application/vnd.oci.image.layer.v1.tar"
GZIP_WINDOW = 31
"""zlib's `wbits` for the format of gzip; its header then has no name and no time."""


@dataclass(frozen=True)
class Layer:
    """One layer: its tar, and the blob that an image names, which is the tar or the tar compressed by gzip."""

    tar: bytes
    is_compressed: bool = False

    @cached_property
    def digest(self) -> str:
        """That of the tar, `diff_id` of the OCI image specification."""
        return "sha256:" + hashlib.sha256(self.tar).hexdigest()

    @cached_property
    def blob(self) -> bytes:
        return gzipped(self.tar) if self.is_compressed else self.tar

    @cached_property
    def blob_digest(self) -> str:
        return "sha256:" + hashlib.sha256(self.blob).hexdigest()

    @property
    def media_type(self) -> str:
        return f"{TAR}+gzip" if self.is_compressed else TAR


@dataclass(frozen=True)
class Entry:
    """One path of a layer: a file when it has content, a symbolic link when it has a target, else a folder."""

    path: str
    mode: int = FILE
    content: bytes | None = None
    target: str | None = None

    def header(self) -> tarfile.TarInfo:
        header = tarfile.TarInfo(self.path)
        header.mode = self.mode
        if self.content is not None:
            header.size = len(self.content)
        elif self.target is not None:
            header.type, header.linkname = tarfile.SYMTYPE, self.target
        else:
            header.type = tarfile.DIRTYPE
        return header


def text(path: str, content: str, mode: int = FILE) -> Entry:
    return Entry(path, mode, content.encode())


def program(path: str, content: str) -> Entry:
    return text(path, content, PROGRAM)


def link(path: str, target: str) -> Entry:
    return Entry(path, 0o777, target=target)


def folder(path: str, mode: int = FOLDER) -> Entry:
    return Entry(path, mode)


def files_under(source: Path, prefix: str, keep: Callable[[Path], bool] = lambda _: True) -> list[Entry]:
    """Every file of a folder, symbolic links followed, as entries under `prefix`.

    `keep` sees the path relative to `source`. The right to execute is kept, the rest of the mode is made plain:
    a container's user must be able to read what the builder could.
    """
    entries = []
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        if path.is_file() and keep(relative):
            mode = PROGRAM if path.stat().st_mode & 0o100 else FILE
            entries.append(Entry(f"{prefix}/{relative.as_posix()}".lstrip("/"), mode, path.read_bytes()))
    return entries


def layer(entries: Iterable[Entry]) -> Layer:
    """Entries in path order, each parent folder written before what is in it."""
    wanted = {entry.path: entry for entry in entries}
    for path in list(wanted):
        for parent in list(Path(path).parents)[:-1]:
            wanted.setdefault(parent.as_posix(), folder(parent.as_posix()))
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(wanted):
            entry = wanted[path]
            archive.addfile(entry.header(), io.BytesIO(entry.content) if entry.content else None)
    return Layer(out.getvalue())


def compressed(uncompressed: Layer) -> Layer:
    """The same layer with a blob that is compressed."""
    return Layer(uncompressed.tar, is_compressed=True)


def gzipped(content: bytes) -> bytes:
    """The content in the format of gzip: the same bytes for the same content and version of zlib, from every Python."""
    packer = zlib.compressobj(level=6, wbits=GZIP_WINDOW)
    return packer.compress(content) + packer.flush()


def layer_of_files(contents: Mapping[str, str]) -> Layer:
    """A layer of plain text files, by path."""
    return layer(text(path, content) for path, content in contents.items())

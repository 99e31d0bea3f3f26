"""Entries of a manifest: a file, or a range of one, with its SHA-256. Order and names are those of Model Signing v1.0.

A name is a relative POSIX path; of a range it is "PATH:START:END" with END exclusive. Entries are ordered by the parts
of their paths, then by range: as `pathlib` compares, so that "a/b" comes before "a.b". The root digest is the SHA-256
of the raw digests in that order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

SHARD_SIZE = 2**28
"""Default bytes of a range."""
SMALLEST_SHARD, LARGEST_SHARD = 2**20, 2**40
FOLDER = ".hermetic"
"""The folder in a model that contains the manifest and the files that belong to it."""
MANIFEST, SIGNATURE, NAMES = f"{FOLDER}/manifest.json", f"{FOLDER}/model.sig", f"{FOLDER}/names.json"
FACTS = f"{FOLDER}/model-facts.json"
"""Facts of the model for sizing; listed like any other file."""
NIM_PROFILES = "nim-profiles.txt"
"""At the root of a NIM cache: the profiles in it, which nothing else in it names."""
PARTIAL = ".partial"
_PARTIALS = (f"{path}{PARTIAL}" for path in (MANIFEST, SIGNATURE, NAMES))
NOT_LISTED = frozenset({MANIFEST, SIGNATURE, *_PARTIALS})
"""Files that a manifest cannot list, because they contain it or will contain it."""
LEFT_OUT_FOLDERS = frozenset({".git", ".github"})
"""Folders that the manifest of another tool may leave out with everything in them."""
MAY_BE_IGNORED = NOT_LISTED | LEFT_OUT_FOLDERS | {".gitattributes", ".gitignore", "model.sig", FOLDER}
"""Paths that the manifest of another tool may leave out. No engine reads them."""
LONGEST_PATH, DEEPEST_PATH, LONGEST_PART = 4096, 64, 255
SHARDS, FILES = "shards", "files"

_RANGE = re.compile(r"(?P<path>.+):(?P<start>[0-9]{1,18}):(?P<end>[0-9]{1,18})", re.DOTALL)

Key: TypeAlias = "tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class Serialization:
    """How files become entries: the method, the bytes of a range (0: whole files), whether links are followed."""

    method: str = SHARDS
    shard_size: int = SHARD_SIZE
    allow_symlinks: bool = False
    ignore_paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `end` is -1 for a whole file: a manifest by files does not list sizes."""

    path: str
    start: int
    end: int
    digest: bytes

    @property
    def name(self) -> str:
        """The name in the manifest."""
        return self.path if self.end < 0 else f"{self.path}:{self.start}:{self.end}"


def key_of(path: str) -> Key:
    """The sort key of a path."""
    return tuple(path.split("/"))


def position_of(name: str, method: str) -> tuple[Key, int]:
    """The sort key of an entry with this name: a manifest by files may list a file whose name looks like a range."""
    matched = None if method == FILES else _RANGE.fullmatch(name)
    return (key_of(name), 0) if matched is None else (key_of(matched["path"]), int(matched["start"]))


def ranges(size: int, shard_size: int) -> Iterator[tuple[int, int]]:
    """The ranges of a file in a manifest by shards; none for an empty file."""
    for start in range(0, size, shard_size):
        yield start, min(start + shard_size, size)


def entry(name: str, digest: bytes, method: str) -> Entry:
    """The entry of a name. Raises ValueError for a name that is invalid for this method."""
    if method == FILES:
        path, start, end = name, 0, -1
    elif (matched := _RANGE.fullmatch(name)) is None:
        raise ValueError(f"{name[:200]!r} is not PATH:START:END")
    else:
        path, start, end = matched["path"], int(matched["start"]), int(matched["end"])
        if not start < end or ":" in path:
            raise ValueError(f"{name[:200]!r} is not a range of a file")
    if (wrong := wrong_with_path(path)) is not None:
        raise ValueError(f"{path[:200]!r} {wrong}")
    return Entry(path, start, end, digest)


def wrong_with_path(path: str) -> str | None:
    """Why this path is not allowed in a model; None if it is."""
    parts = path.split("/")
    if any(part in {"", ".", ".."} for part in parts):
        return "is not a plain relative path"
    if "\0" in path:
        return "holds a NUL"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "is not UTF-8"
    if size > LONGEST_PATH or len(parts) > DEEPEST_PATH:
        return f"is longer than {LONGEST_PATH} bytes or deeper than {DEEPEST_PATH} folders"
    return None

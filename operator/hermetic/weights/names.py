"""`.hermetic/names.json`: a listed file through which the root digest covers names too.

The root digest of Model Signing v1.0 covers contents only: files could be renamed. This file contains the SHA-256 over
names and sizes of all others, and the names of empty ones, for which a manifest by shards has no entry.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from hermetic.weights.entries import FACTS, NAMES, NOT_LISTED
from hermetic.weights.streamed_json import NotJsonError, read_small

SCHEMA = "hermetic.dev/weights-names/v1"
LARGEST_NAMES = 2**24
BEGIN = f'{{\n "schema": "{SCHEMA}"'.encode()
"""How each file of this kind begins: it has one form, so that another one is recognised under any name."""
_NOT_COUNTED = NOT_LISTED | {NAMES, FACTS}


@dataclass(frozen=True, slots=True)
class NamesSummary:
    """Number and bytes of the files, "sha256:..." over their names and sizes, and the names of the empty ones.

    `excluded`: patterns of `--exclude` that left out something when it was staged. They take no part in comparisons.
    """

    files: int
    size: int
    digest: str
    empty: tuple[str, ...] = ()
    excluded: tuple[str, ...] = field(default=(), compare=False)

    def as_bytes(self) -> bytes:
        """The content of the file."""
        form: dict[str, Any] = {
            "schema": SCHEMA, "files": self.files, "bytes": self.size, "names": self.digest, "empty": list(self.empty),
        }  # fmt: skip
        if self.excluded:
            form["excluded"] = list(self.excluded)
        return json.dumps(form, indent=1).encode() + b"\n"


def names_from(content: bytes) -> NamesSummary:
    """Parses the file. Raises NotJsonError where it is not exactly as it is written."""
    match read_small(content):
        case {
            "schema": schema, "files": int(files), "bytes": int(size), "names": str(digest), "empty": [*empty], **more,
        }:  # fmt: skip
            if schema == SCHEMA and all(isinstance(path, str) for path in empty):
                summary = NamesSummary(files, size, digest, tuple(empty), _texts(more.get("excluded")))
                if summary.as_bytes() == content:
                    return summary
    raise NotJsonError(f"it does not have the form of {SCHEMA}")


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a list; () for anything else, so that such a file does not have the form that is written."""
    is_list = isinstance(value, list) and all(isinstance(text, str) for text in value)
    return tuple(value) if is_list else ()


@dataclass(slots=True)
class NamesDigest:
    """A running digest of names and sizes, added in the order of a manifest."""

    files: int = 0
    size: int = 0
    empty: list[str] = field(default_factory=list)
    _digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, path: str, size: int) -> None:
        """Adds one file; files that contain the manifest are ignored."""
        if path in _NOT_COUNTED:
            return
        self.files += 1
        self.size += size
        self._digest.update(f"{path}\0{size}\n".encode())
        if size == 0:
            self.empty.append(path)

    def names(self) -> NamesSummary:
        """The summary of all files added."""
        return NamesSummary(self.files, self.size, f"sha256:{self._digest.hexdigest()}", tuple(self.empty))

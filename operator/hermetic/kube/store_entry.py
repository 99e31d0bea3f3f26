"""One object of the store, kept as compressed JSON.

The programs that pods carry are most of a pod template, and the same in each: one byte stands for each of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hermetic.in_container import program
from hermetic.kube.json_text import compact, parse
from hermetic.kube.owners import Key, Manifest
from hermetic.objects.pod import verbatim

FASTEST = 1
"""The level of zlib; higher ones save little of so small texts."""
PROGRAMS: Mapping[bytes, bytes] = {
    b"\xfd": compact(verbatim(program("accelerator_checks"))),
    b"\xfe": compact(verbatim(program("error_capture"))),
    b"\xff": compact(verbatim(program("group_member"))),
}
"""Programs as JSON strings, by the byte that stands for each: JSON is UTF-8, which has no such byte."""


@dataclass(slots=True)
class StoredObject:
    """An object of the store: its identity, and what is kept of it."""

    uid: str
    version: int
    packed: bytes
    owners: tuple[Key, ...]
    """Keys of the ModelDeployments that it belongs to; a pod may have two (`owners_of`)."""

    @classmethod
    def of(cls, manifest: Manifest, version: int, body: bytes, owners: tuple[Key, ...]) -> StoredObject:
        """`body`: what is kept of the object, as JSON."""
        return cls(manifest["metadata"]["uid"], version, _packed(body), owners)

    @property
    def manifest(self) -> dict[str, Any]:
        """What is kept of the object; a new one at each access."""
        parsed: dict[str, Any] = parse(_unpacked(self.packed))
        return parsed

    def is_same(self, manifest: Manifest, version: int, body: bytes, owners: tuple[Key, ...]) -> bool:
        """Whether `of` these would keep what is kept already, apart from the resourceVersion: no decision changes."""
        if (self.uid, self.owners) != (manifest["metadata"]["uid"], owners):
            return False
        return _without(self.version, zlib.decompress(self.packed)) == _without(version, _shortened(body))

    @property
    def owner(self) -> Key | None:
        """The first owner; a pod may have a second one (`owners_of`)."""
        return next(iter(self.owners), None)


def _without(version: int, body: bytes) -> bytes:
    return body.replace(b'"resourceVersion":"%d"' % version, b"", 1)


def _packed(body: bytes) -> bytes:
    return zlib.compress(_shortened(body), FASTEST)


def _unpacked(packed: bytes) -> bytes:
    body = zlib.decompress(packed)
    for short, text in PROGRAMS.items():
        body = body.replace(short, text)
    return body


def _shortened(body: bytes) -> bytes:
    for short, text in PROGRAMS.items():
        body = body.replace(text, short)
    return body

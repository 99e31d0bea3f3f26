"""One object of the store, kept as compressed JSON."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

from hermetic.kube.json_text import parse
from hermetic.kube.owners import Key, Manifest

FASTEST = 1
"""The level of zlib; higher ones save little of so small texts."""


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
        return cls(manifest["metadata"]["uid"], version, zlib.compress(body, FASTEST), owners)

    @property
    def manifest(self) -> dict[str, Any]:
        """What is kept of the object; a new one at each access."""
        parsed: dict[str, Any] = parse(zlib.decompress(self.packed))
        return parsed

    def is_same(self, manifest: Manifest, version: int, body: bytes, owners: tuple[Key, ...]) -> bool:
        """Whether `of` these would keep what is kept already, apart from the resourceVersion: no decision changes."""
        if (self.uid, self.owners) != (manifest["metadata"]["uid"], owners):
            return False
        return _without(self.version, zlib.decompress(self.packed)) == _without(version, body)

    @property
    def owner(self) -> Key | None:
        """The first owner; a pod may have a second one (`owners_of`)."""
        return next(iter(self.owners), None)


def _without(version: int, body: bytes) -> bytes:
    return body.replace(b'"resourceVersion":"%d"' % version, b"", 1)

"""One object of the store, kept as compressed JSON."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any

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
        parsed: dict[str, Any] = json.loads(zlib.decompress(self.packed))
        return parsed

    @property
    def owner(self) -> Key | None:
        """The first owner; a pod may have a second one (`owners_of`)."""
        return next(iter(self.owners), None)

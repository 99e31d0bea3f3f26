"""A LeaseApi in memory: one Lease with resourceVersions, whose writes a test can hold up or refuse."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hermetic.errors import Conflict, NotFound

Manifest = dict[str, Any]


@dataclass
class LeaseInMemory:
    """The API server's side of one Lease: optimistic locking, nothing else.

    `trouble` is raised before a write; a write is stored after `seconds`, and never while `hangs`.
    """

    lease: Manifest | None = None
    writes: int = 0
    hangs: bool = False
    seconds: float = 0.0
    trouble: Callable[[], Exception | None] = field(default=lambda: None)

    async def get_lease(self, namespace: str, name: str) -> Manifest:
        assert (namespace, name) == ("ops", "hermetic")
        if self.lease is None:
            raise NotFound("no such lease", status=404)
        return copy.deepcopy(self.lease)

    async def create_lease(self, lease: Manifest) -> Manifest:
        if self.lease is not None:
            raise Conflict("already exists", status=409, reason="AlreadyExists")
        return self._write(lease)

    async def replace_lease(self, lease: Manifest) -> Manifest:
        if self.hangs:
            await asyncio.Event().wait()
        if self.seconds:
            await asyncio.sleep(self.seconds)
        if self.lease is None:
            raise NotFound("no such lease", status=404)
        if lease["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
            raise Conflict("modified", status=409, reason="Conflict")
        return self._write(lease)

    def _write(self, lease: Manifest) -> Manifest:
        if (trouble := self.trouble()) is not None:
            raise trouble
        self.writes += 1
        self.lease = copy.deepcopy(lease)
        self.lease["metadata"]["resourceVersion"] = str(self.writes)
        return copy.deepcopy(self.lease)

    @property
    def annotations(self) -> dict[str, str]:
        assert self.lease is not None
        annotations: dict[str, str] = self.lease["metadata"].get("annotations") or {}
        return annotations

    @property
    def spec(self) -> dict[str, Any]:
        assert self.lease is not None
        spec: dict[str, Any] = self.lease["spec"]
        return spec

    def touch(self, **spec: Any) -> None:
        """Another client writes."""
        assert self.lease is not None
        self._write(self.lease | {"spec": self.spec | spec})

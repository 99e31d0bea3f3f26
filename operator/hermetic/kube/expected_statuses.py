"""Statuses of ModelDeployments that are being written: the watch may bring one before the answer to the write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hermetic.kube.owners import Key, Manifest
from hermetic.kube.store_entry import StoredObject


class ExpectedStatuses:
    """The status that is being written of each ModelDeployment. To reconcile again for it changes nothing."""

    def __init__(self) -> None:
        self._expected: dict[Key, Mapping[str, Any]] = {}

    @contextmanager
    def expecting(self, key: Key, status: Mapping[str, Any]) -> Iterator[None]:
        """While entered, this status is expected."""
        self._expected[key] = status
        try:
            yield
        finally:
            del self._expected[key]

    def includes(self, key: Key, before: StoredObject, after: StoredObject) -> bool:
        """Whether only the status changed, to the expected one."""
        if (expected := self._expected.get(key)) is None:
            return False
        manifest = after.manifest
        return manifest.get("status") == expected and _rest(before.manifest) == _rest(manifest)


def _rest(manifest: Manifest) -> dict[str, Any]:
    metadata = {name: value for name, value in manifest["metadata"].items() if name != "resourceVersion"}
    return {**manifest, "metadata": metadata, "status": None}

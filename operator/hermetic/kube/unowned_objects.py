"""Serializes objects for the store, and bounds the memory for large ones whose ModelDeployment is not known.

Children may be listed before their ModelDeployment. Objects that name a ModelDeployment which does not
exist can be created at no cost, so all of them together are bounded. Of what exceeds the bound the head is kept; it is
read again before a decision about its ModelDeployment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.model_metadata import ModelMetadata
from hermetic.kinds import MODEL_DEPLOYMENT, Kind
from hermetic.kube.json_text import compact
from hermetic.kube.projections import lean
from hermetic.kube.size_limits import CUT, cut, head

LARGE = 16 * 2**10
MOST_BYTES = 32 * 2**20


class Unclaimed:
    """Accounts for the large objects without a known owner."""

    def __init__(self, platform: ModelMetadata) -> None:
        self._platform = platform
        self._sizes: dict[tuple[Kind, tuple[str, str]], int] = {}
        self._cut: set[tuple[Kind, tuple[str, str]]] = set()

    def kept(
        self, kind: Kind, manifest: Mapping[str, Any], owner: tuple[str, str] | None, is_owner_known: bool
    ) -> bytes:
        """The object as compact JSON, without what no decision reads."""
        metadata = manifest["metadata"]
        name = (metadata.get("namespace") or "", metadata["name"])
        self.forget(kind, name)
        body = compact(cut(kind, manifest, owner, self._platform) if kind in CUT else lean(manifest))
        if len(body) <= LARGE or is_owner_known or kind not in CUT or kind is MODEL_DEPLOYMENT:
            return body
        if sum(self._sizes.values()) + len(body) > MOST_BYTES:
            self._cut.add((kind, name))
            return compact(head(kind, manifest))
        self._sizes[kind, name] = len(body)
        return body

    def is_cut(self, kind: Kind, name: tuple[str, str]) -> bool:
        """Whether only the head of an object is kept for want of room."""
        return (kind, name) in self._cut

    def forget(self, kind: Kind, name: tuple[str, str]) -> None:
        """Drop an object that is deleted or replaced."""
        self._sizes.pop((kind, name), None)
        self._cut.discard((kind, name))

"""Manifests of the OCI image specification 1.1 that refer to another manifest, and the blobs that they name.

https://github.com/opencontainers/image-spec/blob/main/manifest.md, "Guidelines for Artifact Usage"
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from testbed.images.oci import MANIFEST, as_json, digest_of

EMPTY_TYPE, EMPTY = "application/vnd.oci.empty.v1+json", b"{}"
REFERENCE = "org.opencontainers.image.ref.name"


@dataclass(frozen=True)
class Blob:
    """Content with its media type, and the annotations of its descriptor."""

    media_type: str
    content: bytes
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """`sha256:...` of the content."""
        return digest_of(self.content)

    def descriptor(self) -> dict[str, Any]:
        """As manifests name it."""
        named = {"mediaType": self.media_type, "digest": self.digest, "size": len(self.content)}
        return {**named, **({"annotations": dict(self.annotations)} if self.annotations else {})}


@dataclass(frozen=True)
class Artifact:
    """A manifest and the blobs that it names. `tag`: under which a registry keeps it, empty for none."""

    manifest: bytes
    blobs: tuple[Blob, ...]
    tag: str = ""
    kind: str = ""

    @property
    def digest(self) -> str:
        """`sha256:...` of the manifest."""
        return digest_of(self.manifest)

    def entry(self) -> dict[str, Any]:
        """As an index names it."""
        entry: dict[str, Any] = {"mediaType": MANIFEST, "digest": self.digest, "size": len(self.manifest)}
        if self.kind:
            entry["artifactType"] = self.kind
        return {**entry, "annotations": {REFERENCE: self.tag}} if self.tag else entry


def subject_of(manifest: bytes) -> dict[str, Any]:
    """The descriptor by which a manifest refers to this one, or to this index."""
    media_type = json.loads(manifest).get("mediaType", MANIFEST)
    return {"mediaType": media_type, "digest": digest_of(manifest), "size": len(manifest)}


def referrer(
    kind: str,
    subject: bytes,
    blobs: tuple[Blob, ...],
    *,
    config: Blob | None = None,
    annotations: Mapping[str, str] | None = None,
    tag: str = "",
) -> Artifact:
    """An artifact of this type that refers to the manifest `subject`."""
    settings = config or Blob(EMPTY_TYPE, EMPTY)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "artifactType": kind,
        "config": settings.descriptor(),
        "layers": [blob.descriptor() for blob in blobs],
        "subject": subject_of(subject),
        **({"annotations": dict(annotations)} if annotations else {}),
    }
    return Artifact(as_json(manifest), (settings, *blobs), tag, kind)

"""The list of what refers to a manifest, for registries without the referrers API.

A client keeps it as an index under the tag `sha256-DIGEST` there: distribution specification 1.1, section "Referrers
Tag Schema". Azure Container Registry has the API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

INDEX_TYPE = "application/vnd.oci.image.index.v1+json"


def referrers_tag(subject: str) -> str:
    """The tag that lists what refers to a digest."""
    return subject.replace(":", "-", 1)


def referrer_descriptor(content: bytes, media_type: str, digest: str) -> dict[str, Any]:
    """The entry of a manifest in such a list: artifact type and annotations are those of the manifest."""
    manifest = json.loads(content)
    artifact_type = manifest.get("artifactType") or (manifest.get("config") or {}).get("mediaType", "")
    annotations = manifest.get("annotations")
    return {
        "mediaType": media_type,
        "digest": digest,
        "size": len(content),
        **({"artifactType": artifact_type} if artifact_type else {}),
        **({"annotations": annotations} if annotations else {}),
    }


def with_referrer(index: bytes, entry: Mapping[str, Any]) -> bytes:
    """The index with the entry; the same bytes where it has it. `index` is empty where there is none."""
    entries: list[Any] = []
    if index:
        try:
            listed = json.loads(index)
        except ValueError:
            listed = {}
        entries = listed.get("manifests") or [] if isinstance(listed, dict) else []
    if any(isinstance(present, dict) and present.get("digest") == entry["digest"] for present in entries):
        return index
    document = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [*entries, dict(entry)]}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()

"""What is pushed of a bundle: the image, the chart, and what refers to them, each with its repository and tag."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from hermetic.cli.bundle.helm_chart import CONFIG_TYPE, chart_documents
from hermetic.cli.bundle.layout import BLOBS, INDEX
from hermetic.cli.bundle.opened import BundleFiles
from hermetic.errors import BundleRefused, EnvelopeRefused
from hermetic.registry.pushing import Blob, Manifest
from hermetic.signing.canonical_json import read_json
from hermetic.weights.oci import LARGEST_DOCUMENT, MANIFEST_TYPE

IMAGE, CHART = "hermetic", "charts/hermetic"
"""Repositories below the prefix."""
LAYOUTS = ("", "artifacts/")
"""Folders of the OCI layouts in a bundle: the image's, and the chart's with what refers to both.

The second also names the image, whose blobs are in the first.
"""
_COSIGN_TAG = re.compile(r"sha256-[0-9a-f]{64}\.(?:sig|att|sbom)")
_LARGEST_CHART = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Push:
    """One manifest with its blobs, and the repository that it goes to. `is_platform`: an index names it."""

    repository: str
    manifest: Manifest
    blobs: tuple[Blob, ...]
    is_platform: bool = False


def pushes(files: BundleFiles, image: str, version: str) -> list[Push]:
    """Everything to push, each after what it refers to; `image` is the verified digest. Raises BundleRefused."""
    by_digest: dict[str, Push] = {}
    for folder in LAYOUTS:
        for push in _of_layout(files, folder, version):
            by_digest.setdefault(push.manifest.digest, push)
    if image not in by_digest:
        raise BundleRefused(f"{INDEX} does not name the image {image}")
    planned = list(by_digest.values())
    if not any(push.repository == CHART for push in planned):
        planned += _packaged_chart(files, version)
    return _with_referrers_last(planned)


def _of_layout(files: BundleFiles, folder: str, version: str) -> Iterator[Push]:
    if f"{folder}{INDEX}" in files.names:
        index = _object(files.content(f"{folder}{INDEX}", LARGEST_DOCUMENT), f"{folder}{INDEX}")
        for descriptor in _list(index, "manifests"):
            yield from _manifests(files, folder, descriptor, version)


def _manifests(files: BundleFiles, folder: str, descriptor: Mapping[str, Any], version: str) -> Iterator[Push]:
    """A manifest, or an index after its manifests."""
    blob = _blob(files, folder, descriptor)
    content = blob.read(0, min(blob.size, LARGEST_DOCUMENT))
    document = _object(content, blob.digest)
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != blob.digest:
        raise BundleRefused(f"{blob.digest} has other content than its digest")
    children = _list(document, "manifests")
    for child in children:
        yield from (
            Push(push.repository, _untagged(push.manifest), push.blobs, is_platform=True)
            for push in _manifests(files, folder, child, version)
        )
    parts = () if children else (document.get("config"), *_list(document, "layers"))
    blobs = tuple(_blob(files, folder, part) for part in parts)
    subject = str((document.get("subject") or {}).get("digest", ""))
    is_chart = (document.get("config") or {}).get("mediaType") == CONFIG_TYPE
    repository = CHART if is_chart else IMAGE
    tags = _tags_of_referrer(descriptor) if subject else (_as_tag(version),)
    media_type = str(descriptor.get("mediaType") or document.get("mediaType") or MANIFEST_TYPE)
    yield Push(repository, Manifest(content, media_type, tags, subject), blobs)


def _packaged_chart(files: BundleFiles, version: str) -> Iterator[Push]:
    for name in files.names:
        if name.startswith("chart/") and name.endswith(".tgz"):
            packaged = files.content(name, _LARGEST_CHART)
            config, manifest = chart_documents(packaged)
            blobs = (_blob_of(config), _blob_of(packaged))
            yield Push(CHART, Manifest(manifest, MANIFEST_TYPE, (_as_tag(version),)), blobs)


def _with_referrers_last(planned: list[Push]) -> list[Push]:
    """Each referrer goes to the repository of its subject, after it."""
    ordered = [push for push in planned if not push.manifest.subject]
    remaining = [push for push in planned if push.manifest.subject]
    while remaining:
        repositories = {push.manifest.digest: push.repository for push in ordered}
        ready = [push for push in remaining if push.manifest.subject in repositories]
        if not ready:
            raise BundleRefused(f"{remaining[0].manifest.digest} refers to nothing that the bundle holds")
        ordered += [Push(repositories[push.manifest.subject], push.manifest, push.blobs) for push in ready]
        remaining = [push for push in remaining if push not in ready]
    return ordered


def _tags_of_referrer(descriptor: Mapping[str, Any]) -> tuple[str, ...]:
    """The tag under which cosign looks for its signatures: SIGNATURE_SPEC.md of sigstore/cosign, "Discovery"."""
    tag = str((descriptor.get("annotations") or {}).get("org.opencontainers.image.ref.name", ""))
    return (tag,) if _COSIGN_TAG.fullmatch(tag) else ()


def _untagged(manifest: Manifest) -> Manifest:
    return Manifest(manifest.content, manifest.media_type, (), manifest.subject)


def _as_tag(version: str) -> str:
    """Helm writes '+' of a version as '_': a tag cannot hold it."""
    return version.replace("+", "_")


def _blob(files: BundleFiles, folder: str, descriptor: Any) -> Blob:
    match descriptor:
        case {"digest": str(digest), "size": int(size)} if digest.startswith("sha256:"):
            name = next(
                (name for root in (folder, "") if (name := f"{root}{BLOBS}{digest[7:]}") in files.names), digest
            )
            if files.size(name) != size:
                raise BundleRefused(f"{name} has {files.size(name)} bytes, and its descriptor {size}")
            return Blob(digest, size, partial(files.read, name))
    raise BundleRefused(f"{folder}{INDEX} leads to something that names no blob by SHA-256 and size")


def _blob_of(content: bytes) -> Blob:
    def read(offset: int, length: int) -> bytes:
        return content[offset : offset + length]

    return Blob(f"sha256:{hashlib.sha256(content).hexdigest()}", len(content), read)


def _object(content: bytes, name: str) -> dict[str, Any]:
    try:
        value = read_json(content, name)
    except EnvelopeRefused as refusal:
        raise BundleRefused(refusal.message) from refusal
    if not isinstance(value, dict):
        raise BundleRefused(f"{name} is not a JSON object")
    return value


def _list(document: Mapping[str, Any], field: str) -> list[Any]:
    value = document.get(field)
    return value if isinstance(value, list) else []

"""Verifies that a bundle is what was built: every checksum, every digest of the image, and the signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermetic.cli.bundle.archive import Archive, read_archive
from hermetic.cli.bundle.layout import (
    BLOBS,
    CHECKSUMS,
    DESCRIPTION,
    INDEX,
    LAYOUT,
    NOT_IN_CHECKSUMS,
    SCHEMA,
    SIGNATURE,
    read_checksums,
    signer,
)
from hermetic.errors import BundleRefused, EnvelopeRefused
from hermetic.signing.canonical_json import read_json
from hermetic.signing.envelope import envelope_from
from hermetic.signing.keys import PublicKey, TrustedKeys

_ALGORITHM = "sha256:"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle whose checksums and digests match. `signed_by` is None where no key was given."""

    version: str
    image: str
    files: int
    size: int
    has_signature: bool
    signed_by: PublicKey | None


def verify(path: Path, trusted: TrustedKeys) -> Bundle:
    """The bundle in a file; signed by one of the keys if any are given. Raises BundleRefused."""
    archive = read_archive(path)
    _must_match_checksums(archive)
    try:
        version, image = _description(archive)
        _must_be_the_image(archive, image)
        key = _signer(archive, version, trusted)
    except EnvelopeRefused as refusal:
        raise BundleRefused(f"{SIGNATURE}: {refusal.refusal}: {refusal.message}") from refusal
    has_signature = SIGNATURE in archive.sha256
    return Bundle(version, image, len(archive.sha256), sum(archive.sizes.values()), has_signature, key)


def _must_match_checksums(archive: Archive) -> None:
    listed = read_checksums(archive.content(CHECKSUMS))
    held = {name: sum_ for name, sum_ in archive.sha256.items() if name not in NOT_IN_CHECKSUMS}
    if unknown := sorted(held.keys() - listed.keys()):
        raise BundleRefused(f"{unknown[0]} is not listed in {CHECKSUMS}")
    if missing := sorted(listed.keys() - held.keys()):
        raise BundleRefused(f"{missing[0]} is missing; {CHECKSUMS} lists it")
    if changed := sorted(name for name in held if held[name] != listed[name]):
        name = changed[0]
        raise BundleRefused(f"{name} has the SHA-256 {held[name]}; {CHECKSUMS} lists {listed[name]}")


def _description(archive: Archive) -> tuple[str, str]:
    match _object(archive, DESCRIPTION):
        case {"schema": str(schema), **_fields} if schema != SCHEMA:
            raise BundleRefused(f"{DESCRIPTION} has the schema {schema!r}; this release reads {SCHEMA}")
        case {"schema": _, "version": str(version), "image": str(image), **rest} if not rest:
            return version, image
    raise BundleRefused(f"{DESCRIPTION} does not hold exactly schema, version and image")


def _must_be_the_image(archive: Archive, image: str) -> None:
    """The layout contains only this image: its manifest, configuration and layers, and no other blob."""
    if _object(archive, LAYOUT) != {"imageLayoutVersion": "1.0.0"}:
        raise BundleRefused(f"{LAYOUT} is not that of an OCI layout 1.0.0")
    named: set[str] = set()
    for manifest in _descriptors(_object(archive, INDEX), INDEX, "manifests"):
        digest = _blob(archive, manifest, INDEX, named)
        if not image.endswith(f"@{digest}"):
            raise BundleRefused(f"{INDEX} names the image {digest}; {DESCRIPTION} names {image}")
        name = BLOBS + digest.removeprefix(_ALGORITHM)
        content = _object(archive, name)
        for descriptor in (content.get("config"), *_descriptors(content, name, "layers")):
            _blob(archive, descriptor, name, named)
    if unknown := sorted(name for name in archive.sha256 if name.startswith(BLOBS) and name not in named):
        raise BundleRefused(f"{unknown[0]} is no part of the image")


def _descriptors(holder: Mapping[str, Any], where: str, field: str) -> Iterator[Any]:
    listed = holder.get(field)
    if not isinstance(listed, list) or not listed:
        raise BundleRefused(f"{where} has no list '{field}'")
    yield from listed


def _blob(archive: Archive, descriptor: Any, where: str, named: set[str]) -> str:
    """The digest in a descriptor, whose blob exists and has that digest and size."""
    match descriptor:
        case {"digest": str(digest), "size": int(size)} if digest.startswith(_ALGORITHM):
            name = BLOBS + digest.removeprefix(_ALGORITHM)
            if name not in archive.sha256:
                raise BundleRefused(f"{name} is missing; {where} names it")
            if _ALGORITHM + archive.sha256[name] != digest or archive.sizes[name] != size:
                found = f"{_ALGORITHM}{archive.sha256[name]} with {archive.sizes[name]} bytes"
                raise BundleRefused(f"{name} is {found}; {where} names {digest} with {size} bytes")
            named.add(name)
            return digest
    raise BundleRefused(f"{where} holds something that names no blob by SHA-256 and size")


def _signer(archive: Archive, version: str, trusted: TrustedKeys) -> PublicKey | None:
    if not trusted:
        return None
    if SIGNATURE not in archive.sha256:
        raise BundleRefused("is not signed, and a signature of the given key is asked for")
    envelope = envelope_from(read_json(archive.content(SIGNATURE), SIGNATURE))
    return signer(envelope, archive.content(CHECKSUMS), version, trusted)


def _object(archive: Archive, name: str) -> dict[str, Any]:
    try:
        value = read_json(archive.content(name), name)
    except EnvelopeRefused as refusal:
        raise BundleRefused(refusal.message) from refusal
    if not isinstance(value, dict):
        raise BundleRefused(f"{name} is no JSON object")
    return value

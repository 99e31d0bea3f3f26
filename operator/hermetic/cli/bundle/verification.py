"""Verifies that a bundle is what was built: every checksum, every digest of its layouts, and the signatures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hermetic.cli.bundle.archive import Archive, read_archive
from hermetic.cli.bundle.description import Description, read_description
from hermetic.cli.bundle.image_layout import must_be_the_artifacts, must_be_the_image, read_object
from hermetic.cli.bundle.layout import (
    CHECKSUMS,
    DESCRIPTION,
    NOT_IN_CHECKSUMS,
    PLAIN_SIGNATURE,
    SIGNATURE,
    must_be_signed_by,
    read_checksums,
    signer,
)
from hermetic.errors import BundleRefused, EnvelopeRefused
from hermetic.signing.canonical_json import read_json
from hermetic.signing.envelope import envelope_from
from hermetic.signing.keys import PublicKey, TrustedKeys


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle whose checksums and digests match. `signed_by` is None where no key was given."""

    description: Description
    files: int
    size: int
    has_signature: bool
    signed_by: PublicKey | None

    @property
    def version(self) -> str:
        """The version of Hermetic in it."""
        return self.description.version

    @property
    def image(self) -> str:
        """The operator's image by digest."""
        return self.description.image


def verify(path: Path, trusted: TrustedKeys) -> Bundle:
    """The bundle in a file; signed by one of the keys if any are given. Raises BundleRefused."""
    archive = read_archive(path)
    _must_match_checksums(archive)
    try:
        description = read_description(read_object(archive, DESCRIPTION))
        must_be_the_image(archive, description.image)
        must_be_the_artifacts(archive, description)
        key = _signer(archive, description, trusted)
    except EnvelopeRefused as refusal:
        raise BundleRefused(f"{SIGNATURE}: {refusal.refusal}: {refusal.message}") from refusal
    has_signature = SIGNATURE in archive.sha256
    return Bundle(description, len(archive.sha256), sum(archive.sizes.values()), has_signature, key)


def _must_match_checksums(archive: Archive) -> None:
    listed = read_checksums(archive.content(CHECKSUMS))
    digests = {name: sum_ for name, sum_ in archive.sha256.items() if name not in NOT_IN_CHECKSUMS}
    if unknown := sorted(digests.keys() - listed.keys()):
        raise BundleRefused(f"{unknown[0]} is not listed in {CHECKSUMS}")
    if missing := sorted(listed.keys() - digests.keys()):
        raise BundleRefused(f"{missing[0]} is missing; {CHECKSUMS} lists it")
    if changed := sorted(name for name in digests if digests[name] != listed[name]):
        name = changed[0]
        raise BundleRefused(f"{name} has the SHA-256 {digests[name]}; {CHECKSUMS} lists {listed[name]}")


def _signer(archive: Archive, description: Description, trusted: TrustedKeys) -> PublicKey | None:
    if not trusted:
        return None
    if SIGNATURE not in archive.sha256:
        raise BundleRefused("is not signed, and a signature of the given key is asked for")
    envelope = envelope_from(read_json(archive.content(SIGNATURE), SIGNATURE))
    sums = archive.content(CHECKSUMS)
    key = signer(envelope, sums, description.version, trusted, description.revision)
    if PLAIN_SIGNATURE in archive.sha256:
        must_be_signed_by(key, sums, archive.content(PLAIN_SIGNATURE))
    return key

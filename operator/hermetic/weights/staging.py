"""Staging: one pass copies a model, hashes it and writes its manifest; the model appears completely or not at all.

Everything is written below `.NAME.hermetic-partial` beside the destination: the files, a journal of staged ranges, and
a lock. The last step renames the folder of the files. The next run continues one that was killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermetic.errors import InputError, StagingStopped, WeightsRefused
from hermetic.weights.content import preflight
from hermetic.weights.copying import Copy, FolderPlaces, Staged
from hermetic.weights.entries import Serialization
from hermetic.weights.images import ImageOptions, ImageStaging
from hermetic.weights.journal import Journal
from hermetic.weights.manifests import Watched, names_in, staging_stopped
from hermetic.weights.names import NamesSummary
from hermetic.weights.partial import alone, keep_only, must_be_free, partial_of, publish
from hermetic.weights.sources import NOT_COPIED
from hermetic.weights.tree import EntryKind, Tree, WeightsStopped

if TYPE_CHECKING:
    from hermetic.weights.signing import Signer


@dataclass(frozen=True, slots=True)
class Options:
    """How to stage. `allowed`: files that may hold code; `read_back`: hash again what was written.

    `signer`: signs the manifest; `image`: as an OCI image, in place of a folder.
    """

    serialization: Serialization
    allowed: frozenset[str] = frozenset()
    read_back: bool = False
    signer: Signer | None = None
    image: ImageOptions | None = None


def stage(source: Tree, destination: Path, options: Options, watched: Watched) -> Staged:
    """Stages a model. The destination must not exist yet, or be an empty folder.

    Raises InputError, WeightsRefused (of the source, or where it changes meanwhile), StagingBusy, and StagingStopped,
    after which the same call continues.
    """
    following = replace(options.serialization, allow_symlinks=True)
    options = replace(options, serialization=following)
    whole = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow links
    if whole.is_relative_to(source.root):
        raise InputError(f"{whole}: is inside of {source.root}", fix="name a destination outside of the source")
    is_file = options.image is not None and options.image.archive
    must_be_free(whole, is_file=is_file)
    partial = partial_of(whole)
    try:
        with alone(partial):
            must_be_free(whole, is_file=is_file)
            return _staged(source, whole, options, watched)
    except WeightsStopped as stopped:
        raise WeightsRefused([stopped.finding], f"{source.root}: was not staged") from None
    except OSError as error:
        raise staging_stopped(error, partial) from None


def _staged(source: Tree, whole: Path, options: Options, watched: Watched) -> Staged:
    partial = partial_of(whole)
    names = names_in(source, options.serialization, NOT_COPIED)
    if findings := preflight(source, options.allowed):
        raise WeightsRefused(findings, f"{source.root}: was not staged")
    if options.image is None:
        return _as_folder(source, whole, options, names, watched)
    staging = ImageStaging(source, partial, options.image, options.serialization, watched[0])
    try:
        keep_only(partial, staging.work.name)
        _must_fit(partial, names)
        # named after its source: the image has the same bytes wherever it is written
        _copied(staging.copy, source.root.name, names, options, watched)
        with staging.tree() as tree:
            _read_back(tree, staging.copy.result.root, options, watched)
        staging.copy.result.image = staging.assemble(staging.copy.result.root)
    finally:
        staging.journal.close()
    publish(partial, staging.result, whole)
    return staging.copy.result


def _as_folder(source: Tree, whole: Path, options: Options, names: NamesSummary, watched: Watched) -> Staged:
    partial = partial_of(whole)
    keep_only(partial, "files", "journal")
    journal = Journal(partial / "journal")
    try:
        copy = Copy(source, FolderPlaces(partial / "files"), journal, options.serialization, watched[0])
        _must_fit(partial, names)
        _copied(copy, whole.name, names, options, watched)
    finally:
        journal.close()
    with Tree(partial / "files") as tree:
        _read_back(tree, copy.result.root, options, watched)
    publish(partial, partial / "files", whole)
    return copy.result


def _copied(copy: Copy, name: str, names: NamesSummary, options: Options, watched: Watched) -> None:
    copy.result.root = copy.run(name, names, watched)
    if options.signer is not None:
        from hermetic.weights.signing import sign_folder

        with Tree(copy.folder) as tree:
            sign_folder(tree, options.signer, copy.result.root, watched[1], watched[2])


def _must_fit(partial: Path, names: NamesSummary) -> None:
    """Checks free space before copying. A share may count differently: then the write fails later."""
    room = os.statvfs(partial)
    free = room.f_bavail * room.f_frsize
    there = sum(path.stat().st_blocks * 512 for path in partial.rglob("*") if path.is_file())
    if names.size - there > free:
        what = f"{names.size} bytes are to be staged, {there} of them are there, and {free} are free"
        raise StagingStopped(
            f"{partial.parent}: {what}", fix="make room or enlarge the share, and run the same command again"
        )


def _read_back(tree: Tree, root: str, options: Options, watched: Watched) -> None:
    """Hashes what was written, read from the destination instead of this machine's page cache where possible."""
    if not options.read_back:
        return
    from hermetic.weights.sealing import Trust
    from hermetic.weights.verification import verify

    for item in tree.walk():
        if item.kind is EntryKind.FILE:
            descriptor = tree.open(item.path)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
    found = verify(tree, Trust(digest=root), watched[1], watched[2])
    if not found.is_right:
        raise WeightsRefused(found.findings, f"{tree.root}: what was written is not what was read")

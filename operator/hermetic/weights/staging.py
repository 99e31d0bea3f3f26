"""Staging: one pass copies a model, hashes it and writes its manifest; the model appears completely or not at all.

Everything is written below `.NAME.hermetic-partial` beside the destination: the files, a journal of staged ranges, and
a lock. The last step renames the folder of the files. The next run continues one that was killed.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import HermeticError, InputError, StagingStopped, WeightsRefused, WeightsUnread
from hermetic.weights.content import Allowed, preflight
from hermetic.weights.copying import Copy, FolderPlaces, Staged
from hermetic.weights.entries import Serialization
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.journal import Journal
from hermetic.weights.manifests import Watched, excluded_before, names_in, staging_stopped
from hermetic.weights.names import NamesSummary
from hermetic.weights.partial import JOURNAL, alone, discard, is_kept, keep_only, must_be_free, partial_of, publish
from hermetic.weights.sources import NOT_COPIED, WatchedSource
from hermetic.weights.tree import EntryKind, Tree, WeightsStopped
from hermetic.weights.workers import Limits, Progress, within

if TYPE_CHECKING:
    from hermetic.weights.images import ImageOptions
    from hermetic.weights.signing import Signer

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Options:
    """How to stage. `allowed`: files that may hold code; `read_back`: hash again what was written.

    `signer`: signs the manifest; `image`: as an OCI image, in place of a folder.
    """

    serialization: Serialization
    allowed: Allowed = field(default_factory=Allowed)
    read_back: bool = False
    signer: Signer | None = None
    image: ImageOptions | None = None


def stage(source: Tree, destination: Path, options: Options, watched: Watched) -> Staged:
    """Stages a model. The destination must not exist yet, or be an empty folder.

    Raises InputError, WeightsRefused (of the source, or where it changes meanwhile), StagingBusy, and StagingStopped,
    after which the same call continues. What is staged by then is kept; a folder without any of it is removed.
    """
    source = WatchedSource(source, watched[0])
    following = replace(options.serialization, allow_symlinks=True)
    options = replace(options, serialization=following)
    absolute_destination = Path(os.path.abspath(destination))  # noqa: PTH100 - resolve() would follow links
    if absolute_destination.is_relative_to(source.root):
        raise InputError(
            f"{absolute_destination}: is inside of {source.root}", fix="name a destination outside of the source"
        )
    is_file = options.image is not None and options.image.archive
    must_be_free(absolute_destination, is_file=is_file)
    partial = partial_of(absolute_destination)
    try:
        with alone(partial), _tidied(partial, source, watched[0]):
            must_be_free(absolute_destination, is_file=is_file)
            return _staged(source, absolute_destination, options, watched)
    except OSError as error:
        raise staging_stopped(error, partial) from None


@contextmanager
def _tidied(partial: Path, source: Tree, progress: Progress) -> Iterator[None]:
    """Where staging ends early, keeps what the same command continues, says where it is, and removes anything else."""
    try:
        try:
            yield
        except WeightsStopped as stopped:
            raise WeightsRefused([stopped.finding], f"{source.root}: was not staged") from None
        except OSError as error:
            raise staging_stopped(error, partial) from None
    except HermeticError as error:
        if progress.abandoned:
            raise
        if not is_kept(partial):
            discard(partial, progress)
        elif partial.is_dir():
            error.fix = f"{error.fix.rstrip('.')}. {kept(partial)}"
        raise


def kept(partial: Path) -> str:
    """The report on a folder with ranges that the same command does not copy again."""
    return f"What is staged is kept for the same command; remove it with: rm -r {shlex.quote(str(partial))}"


def in_time(run: Callable[[], Result], progress: Progress, stall: float, destination: Path) -> Result:
    """What `run` returns, which stages to `destination`. Ends also where source or destination never answer.

    Raises WeightsUnread with ShareHangs for the source, StagingStopped with DestinationHangs for the destination.
    """
    try:
        return within(Limits(stall=stall), progress, run)
    except WeightsStopped as stopped:
        progress.abandoned = True
        answer, observed = stopped.finding.expected, stopped.finding.observed
        waiting = list(progress.unanswered.values())
    fix = kept(partial_of(destination))
    if waiting:
        finding = WeightsFinding(WeightsReason.SHARE_HANGS, waiting[0], answer, observed)
        raise WeightsUnread([finding], "the source: was not staged", fix=f"{finding.reason.remedy} {fix}")
    finding = WeightsFinding(WeightsReason.DESTINATION_HANGS, "", answer, observed)
    raise StagingStopped(f"{destination}: {finding.message}", fix=f"{finding.reason.remedy} {fix}")


def _staged(source: Tree, path: Path, options: Options, watched: Watched) -> Staged:
    names = names_in(source, options.serialization, NOT_COPIED)
    names = replace(names, excluded=_excluded(source))
    if findings := preflight(source, options.allowed):
        raise WeightsRefused(findings, f"{source.root}: was not staged")
    if options.image is None:
        return _as_folder(source, path, options, names, watched)
    return _as_image(source, path, options, names, watched)


def _excluded(source: Tree) -> tuple[str, ...]:
    """The patterns that left out something, of this staging and of the one that wrote the source.

    Leftovers of tools are not recorded: the same files have the same digest wherever they were downloaded to.
    """
    matched = source.selection.matched if source.selection is not None else set()
    return tuple(sorted({*excluded_before(source), *matched}))


def _as_image(source: Tree, path: Path, options: Options, names: NamesSummary, watched: Watched) -> Staged:
    from hermetic.weights.images import ImageStaging  # most models are staged as folders

    assert options.image is not None  # noqa: S101 - asked by the caller
    partial = partial_of(path)
    staging = ImageStaging(source, partial, options.image, options.serialization, watched[0])
    try:
        keep_only(partial, watched[0], staging.work.name)
        _must_fit(partial, names, watched[0])
        # named after its source: the image has the same bytes wherever it is written
        staging.copy.result.root = staging.copy.run(source.root.name, names, watched)
        with staging.tree() as tree:
            _sign(tree, staging.copy.result.root, options, watched)
            _read_back(tree, partial, staging.copy.result.root, options, watched)
        staging.copy.result.image = staging.assemble(staging.copy.result.root)
    finally:
        staging.journal.close()
    staging.copy.result.unconfirmed = publish(partial, staging.result, path, watched[0])
    return staging.copy.result


def _as_folder(source: Tree, path: Path, options: Options, names: NamesSummary, watched: Watched) -> Staged:
    partial = partial_of(path)
    keep_only(partial, watched[0], "files", JOURNAL)
    journal = Journal(partial / JOURNAL)
    try:
        copy = Copy(source, FolderPlaces(partial / "files"), journal, options.serialization, watched[0])
        _must_fit(partial, names, watched[0])
        copy.result.root = copy.run(path.name, names, watched)
    finally:
        journal.close()
    with Tree(partial / "files") as tree:
        _sign(tree, copy.result.root, options, watched)
        _read_back(tree, partial, copy.result.root, options, watched)
    copy.result.unconfirmed = publish(partial, partial / "files", path, watched[0])
    return copy.result


def _sign(tree: Tree, root: str, options: Options, watched: Watched) -> None:
    """Signs what was staged, where that was asked for."""
    if options.signer is not None:
        from hermetic.weights.signing import sign_folder

        sign_folder(tree, options.signer, root, watched[1], watched[2])


def _must_fit(partial: Path, names: NamesSummary, progress: Progress) -> None:
    """Checks free space before copying. A share may count differently: then the write fails later."""
    room = os.statvfs(partial)
    free = room.f_bavail * room.f_frsize
    there = 0
    for path in partial.rglob("*"):
        there += path.stat().st_blocks * 512 if path.is_file() else 0
        progress.steps += 1
    if names.size - there > free:
        explanation = f"{names.size} bytes are to be staged, {there} of them are there, and {free} are free"
        raise StagingStopped(
            f"{partial.parent}: {explanation}", fix="make room or enlarge the share, and run the same command again"
        )


def _read_back(tree: Tree, partial: Path, root: str, options: Options, watched: Watched) -> None:
    """Hashes what was written, read from the destination instead of this machine's page cache where possible.

    What is not as it was read is removed: its journal says that it is.
    """
    if not options.read_back:
        return
    from hermetic.weights.sealing import Trust
    from hermetic.weights.verification import verify

    progress, limits, on_progress = watched
    for item in tree.walk():
        progress.steps += 1
        if item.kind is EntryKind.FILE:
            descriptor = tree.open(item.path)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def report(reading: Progress) -> None:
        progress.steps += reading.steps - steps_counted[0]
        steps_counted[0] = reading.steps
        on_progress(reading)

    steps_counted = [0]
    verified = verify(tree, Trust(digest=root), limits, report)
    if not verified.is_right:
        if any(not finding.reason.is_unknown for finding in verified.findings):
            discard(partial, progress)
        raise WeightsRefused(verified.findings, f"{tree.root}: what was written is not what was read")

"""Whether a manifest has the names that its `.hermetic/names.json` says, without reading the files.

The root digest is one over digests: through the listed names.json alone it says which file has which content.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Iterator
from itertools import groupby

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.entries import FILES, NAMES, Entry, key_of
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.listing import content_of
from hermetic.weights.names import LARGEST_NAMES, NamesDigest, NamesSummary, names_from
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import Tree, WeightsStopped


def must_have_its_names(tree: Tree, entries: Iterable[Entry], method: str) -> None:
    """Raises WeightsStopped unless the entries, which are in order, list names.json and exactly the names in it.

    Sizes are those of the manifest, or of the files where it lists none.
    """
    content = tree.small(NAMES, LARGEST_NAMES)
    if content is None:
        raise WeightsStopped(WeightsFinding(WeightsReason.FILE_MISSING, NAMES, "a file", "none"))
    try:
        names = names_from(content)
    except NotJsonError as error:
        raise WeightsStopped(WeightsFinding(WeightsReason.DIGEST_MISMATCH, NAMES, "as listed", str(error))) from None
    empty = names.empty if method != FILES else ()
    files = heapq.merge(
        _files(tree, entries, content), ((path, 0) for path in empty), key=lambda file_entry: key_of(file_entry[0])
    )
    names_digest = NamesDigest()
    for path, size in files:
        names_digest.add(path, size)
    if (finding := other_names(names_digest.names(), names)) is not None:
        raise WeightsStopped(finding)


def other_names(names_summary: NamesSummary, names: NamesSummary) -> WeightsFinding | None:
    """The finding where files have other names or sizes than were listed; else None."""
    if names_summary == names:
        return None
    expected, other = (f"{summary.files} files, names {summary.digest}" for summary in (names, names_summary))
    return WeightsFinding(WeightsReason.FILE_NOT_LISTED, NAMES, expected, other)


def _files(tree: Tree, entries: Iterable[Entry], names: bytes) -> Iterator[tuple[str, int]]:
    """Path and size of each listed file. Raises WeightsStopped where the listed names.json is not `names`."""
    for path, group in groupby(entries, key=lambda entry: entry.path):
        if path == NAMES:
            _must_be_listed(list(group), names)
            continue
        *_, last = group
        if last.end >= 0:
            yield path, last.end
        elif (item := tree.lstat(path)) is None or (content := content_of(tree, item)) is None:
            raise WeightsStopped(WeightsFinding(WeightsReason.FILE_MISSING, path, "a file", "none"))
        else:
            yield path, content.size


def _must_be_listed(entries: list[Entry], names: bytes) -> None:
    at = 0
    for entry in entries:
        end = entry.end if entry.end >= 0 else len(names)
        digest = hashlib.sha256(names[at:end])
        if entry.start != at or digest.digest() != entry.digest:
            expected, actual = f"sha256:{entry.digest.hex()}", f"sha256:{digest.hexdigest()}"
            raise WeightsStopped(WeightsFinding(WeightsReason.DIGEST_MISMATCH, NAMES, expected, actual))
        at = end
    if at != len(names):
        details = f"{at} bytes", f"{len(names)} bytes"
        raise WeightsStopped(WeightsFinding(WeightsReason.SIZE_MISMATCH, NAMES, *details))

"""Which files of a folder a manifest lists, and which must not exist in it."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.entries import FACTS, FILES, FOLDER, LEFT_OUT_FOLDERS, NAMES, NOT_LISTED, Serialization, ranges
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.tree import EntryKind, Item, Tree


def listed(tree: Tree) -> Iterator[Item]:
    """Everything that is not a folder, in order, without the files that contain the manifest."""
    return (item for item in tree.walk() if item.path not in NOT_LISTED)


def paths_left_out(serialization: Serialization, manifest: str) -> frozenset[str]:
    """What a manifest does not list: paths of files, and folders as "NAME/".

    Of `.hermetic` only the files that Hermetic itself writes there can be left out: engines execute its caches.
    """
    paths = {*NOT_LISTED, manifest}
    for path in serialization.ignore_paths:
        if path == FOLDER:
            paths |= {NAMES, FACTS}
        else:
            paths |= {path, f"{path}/"} if path in LEFT_OUT_FOLDERS else {path}
    return frozenset(paths)


def is_left_out(path: str, left_out: frozenset[str]) -> bool:
    """Whether a path is one of these, or in one of these folders."""
    return path in left_out or f"{path.partition('/')[0]}/" in left_out


def refusal_of_left_out(item: Item) -> WeightsFinding | None:
    """Why an item may not be there although a manifest does not list it; None for a file.

    The target of a link that is left out is not verified, and other paths could lead through it.
    """
    if item.kind is EntryKind.FILE:
        return None
    if item.kind is EntryKind.LINK:
        return WeightsFinding(WeightsReason.LINK_REFUSED, item.path, "a file", item.kind.value)
    return _refusal_of_kind(item)


def refusal_of(
    tree: Tree, item: Item, *, links: bool, method: str, left_out: frozenset[str] = NOT_LISTED
) -> WeightsFinding | None:
    """Why this cannot be listed; None for a file, and for a link to a listed one where `links` is True."""
    if (refusal := _refusal_of_kind(item)) is not None:
        return refusal
    if method != FILES and ":" in item.path:
        return WeightsFinding(
            WeightsReason.NAME_REFUSED, item.path, observed="a manifest by shards cannot list a ':'; use --method files"
        )
    if item.kind is EntryKind.LINK:
        if not links:
            return WeightsFinding(WeightsReason.LINK_REFUSED, item.path, "a file", item.kind.value)
        if (problem := _wrong_with_target(tree.target(item), left_out)) is not None:
            return WeightsFinding(WeightsReason.LINK_REFUSED, item.path, "a link to a file in the folder", problem)
    return None


def _refusal_of_kind(item: Item) -> WeightsFinding | None:
    if item.kind is EntryKind.REFUSED:
        return WeightsFinding(WeightsReason.NAME_REFUSED, item.path, observed=item.why)
    if item.kind is EntryKind.SPECIAL:
        return WeightsFinding(WeightsReason.SPECIAL_FILE, item.path, "a file", item.kind.value)
    return None


def _wrong_with_target(path: str | None, left_out: frozenset[str]) -> str | None:
    """A share that ignores case takes a path in another case for one that is left out."""
    if path is None:
        return "a link to elsewhere"
    if is_left_out(path, left_out) or is_left_out(path.casefold(), left_out):
        return f"a link to {path}, which is not listed"
    return None


def spans(size: int, serialization: Serialization) -> Iterator[tuple[int, int]]:
    """The ranges by which a file of this size is listed."""
    if serialization.method == FILES:
        yield 0, size
    else:
        yield from ranges(size, serialization.shard_size)


def how_many_spans(size: int, serialization: Serialization) -> int:
    """The number of these ranges."""
    return 1 if serialization.method == FILES else -(-size // serialization.shard_size)


def content_of(tree: Tree, item: Item) -> Item | None:
    """The file that is read for an item: itself, or the target of a link; None where that is no file inside."""
    if item.kind is not EntryKind.LINK:
        return item
    path = tree.target(item)
    return None if path is None else tree.lstat(path)

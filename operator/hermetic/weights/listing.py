"""Which files of a folder a manifest lists, and which must not exist in it."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.entries import FILES, NOT_LISTED, Serialization, ranges
from hermetic.weights.findings import WeightsFinding
from hermetic.weights.tree import EntryKind, Item, Tree


def listed(tree: Tree) -> Iterator[Item]:
    """Everything that is not a folder, in order, without the files that contain the manifest."""
    return (item for item in tree.walk() if item.path not in NOT_LISTED)


def refusal_of(tree: Tree, item: Item, *, links: bool, method: str) -> WeightsFinding | None:
    """Why this cannot be listed; None for a file, and for a link to one inside the folder where `links` is True."""
    if item.kind is EntryKind.REFUSED:
        return WeightsFinding(WeightsReason.NAME_REFUSED, item.path, found=item.why)
    if item.kind is EntryKind.SPECIAL:
        return WeightsFinding(WeightsReason.SPECIAL_FILE, item.path, "a file", item.kind.value)
    if method != FILES and ":" in item.path:
        return WeightsFinding(
            WeightsReason.NAME_REFUSED, item.path, found="a manifest by shards cannot list a ':'; use --method files"
        )
    if item.kind is EntryKind.LINK:
        if not links:
            return WeightsFinding(WeightsReason.LINK_REFUSED, item.path, "a file", item.kind.value)
        if tree.target(item) is None:
            return WeightsFinding(
                WeightsReason.LINK_REFUSED, item.path, "a link to a file in the folder", "a link to elsewhere"
            )
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
    return None if path is None else tree.look(path)

"""Whether a model has all of its shards: by the numbers in their names, and by the index that names their tensors."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.findings import WeightsFinding

_NUMBERED = re.compile(
    r"(?P<stem>.*?)(?P<number>[0-9]{1,6})-of-(?P<total>[0-9]{1,6})(?P<ending>\.safetensors|\.gguf)", re.DOTALL
)
# `ShardedStateLoader` of vLLM: one file or more for each rank of the tensor parallel group.
_RANKED = re.compile(r"(?P<stem>.*?)rank-(?P<rank>[0-9]{1,5})-part-(?P<part>[0-9]{1,6})\.safetensors", re.DOTALL)
_MOST_SHARDS = 2**17
_MOST_TENSORS = 2**22
"""Names that are remembered of all files: 8 bytes each. Beyond, an index is not compared with them."""
_MOST_NAMED = 3


@dataclass(slots=True)
class Shards:
    """The shards of a folder and everything below it, as they are walked."""

    _numbers: dict[tuple[str, str, str, int], set[int]] = field(default_factory=dict)
    _ranks: dict[tuple[str, str], set[tuple[int, int]]] = field(default_factory=dict)
    _tensors: dict[str, array[int]] = field(default_factory=dict)
    _indexes: list[tuple[str, dict[str, array[int]]]] = field(default_factory=list)
    _unread: set[str] = field(default_factory=set)
    _remembered: int = 0

    def add(self, path: str) -> None:
        """Adds a file, by the numbers in its name."""
        folder, _, name = path.rpartition("/")
        if (matched := _NUMBERED.fullmatch(name)) is not None:
            group = folder, matched["stem"], f"{matched['total']}{matched['ending']}", len(matched["number"])
            self._numbers.setdefault(group, set()).add(int(matched["number"]))
        elif (matched := _RANKED.fullmatch(name)) is not None:
            self._ranks.setdefault((folder, matched["stem"]), set()).add((int(matched["rank"]), int(matched["part"])))

    def add_tensors(self, path: str, names: Iterable[str]) -> None:
        """Adds the tensors of a safetensors file."""
        if self._remembered <= _MOST_TENSORS:
            self._tensors[path] = array("q", map(hash, names))
            self._remembered += len(self._tensors[path])

    def add_index(self, path: str, weight_map: Mapping[str, str]) -> None:
        """Adds an index: which file of its folder has which tensor."""
        by_shard: dict[str, array[int]] = {}
        for tensor, shard in weight_map.items():
            by_shard.setdefault(shard, array("q")).append(hash(tensor))
        self._indexes.append((path, by_shard))

    def add_unread_index(self, path: str) -> None:
        """Adds an index that is invalid: which files of its folder an engine loads is not known."""
        self._unread.add(path.rpartition("/")[0])

    def findings(self) -> Iterator[WeightsFinding]:
        """What is missing. Without an index an engine loads every file; with one, those that it names."""
        for path, by_shard in self._indexes:
            yield from self._of_index(path, by_shard)
        named = {_beside(path, shard) for path, by_shard in self._indexes for shard in by_shard}
        for (folder, stem, total, digits), numbers in sorted(self._numbers.items()):
            names = (f"{stem}{number:0{digits}d}-of-{total}" for number in numbers)
            if folder not in self._unread and not any(
                _beside(f"{folder}/" if folder else "", name) in named for name in names
            ):
                yield from _of_numbers(folder, (stem, total, digits), numbers)
        for (folder, stem), ranks in sorted(self._ranks.items()):
            yield from _of_ranks(folder, stem, ranks)

    def _of_index(self, path: str, by_shard: Mapping[str, array[int]]) -> Iterator[WeightsFinding]:
        for shard, tensors in sorted(by_shard.items()):
            there = self._tensors.get(_beside(path, shard))
            if there is not None and (missing := len({*tensors} - {*there})):
                expected = f"{len(tensors)} tensors in {shard[:200]}"
                yield WeightsFinding(WeightsReason.WEIGHTS_CORRUPT, path, expected, f"{missing} of them are not there")


def _beside(path: str, name: str) -> str:
    folder = path.rpartition("/")[0]
    return f"{folder}/{name}" if folder else name


def _of_numbers(folder: str, form: tuple[str, str, int], numbers: set[int]) -> Iterator[WeightsFinding]:
    """Shards are counted from 1, and in some repositories from 0."""
    stem, total, digits = form
    count = int(total.partition(".")[0])
    first = 0 if 0 in numbers else 1
    if count > _MOST_SHARDS or {*range(first, first + count)} <= numbers:
        return
    missing = [number for number in range(first, first + count) if number not in numbers]
    names = ", ".join(f"{stem}{number:0{digits}d}-of-{total}" for number in missing[:_MOST_NAMED])
    path = _beside(f"{folder}/" if folder else "", f"{stem}{missing[0]:0{digits}d}-of-{total}")
    more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
    observed = f"{count - len(missing)}; missing: {names[:600]}{more}"
    yield WeightsFinding(WeightsReason.SHARD_MISSING, path, f"{count} shards, by the names of the others", observed)


def _of_ranks(folder: str, stem: str, ranks: set[tuple[int, int]]) -> Iterator[WeightsFinding]:
    parts: dict[int, set[int]] = {rank: set() for rank in range(max(rank for rank, _ in ranks) + 1)}
    for rank, part in ranks:
        parts[rank].add(part)
    for rank, of_rank in parts.items():
        missing = next((part for part in range(max(of_rank, default=0) + 1) if part not in of_rank), None)
        if missing is not None:
            path = _beside(f"{folder}/" if folder else "", f"{stem}rank-{rank}-part-{missing}.safetensors")
            expected = "a file, by the names of the others"
            yield WeightsFinding(WeightsReason.SHARD_MISSING, path, expected, "none")
            return

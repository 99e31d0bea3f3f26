"""Ranges of several files in turns: a share that caps each file is read from several at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermetic.weights import workers
from hermetic.weights.entries import Serialization
from hermetic.weights.manifests import write_manifest
from hermetic.weights.sealing import Trust
from hermetic.weights.staging import Options, stage
from hermetic.weights.tree import Tree
from hermetic.weights.verification import verify
from hermetic.weights.workers import FileTasks, Limits, Progress, in_turns
from tests.weights import a_model
from tests.weights_trees import HookedTree

SMALL = Serialization("shards", 2**15)


def of(*counts: int) -> list[FileTasks[str]]:
    names = [[f"{name}{number}" for number in range(count)] for name, count in zip("abcdef", counts, strict=False)]
    return [FileTasks(len(name), iter(name)) for name in names]


@pytest.mark.parametrize(
    ("counts", "width", "order"),
    [
        ((2, 3, 1), 1, "a0 a1 b0 b1 b2 c0"),
        ((2, 3, 1), 2, "a0 b0 a1 b1 b2 c0"),
        ((1, 1, 1), 2, "a0 b0 c0"),
        ((0, 2, 0, 1), 2, "b0 b1 d0"),
        ((), 2, ""),
    ],
)
def test_files_take_turns(counts: tuple[int, ...], width: int, order: str) -> None:
    assert " ".join(in_turns(of(*counts), width)) == order


def test_a_file_of_very_many_ranges_is_worked_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "MOST_IN_TURNS", 3)
    assert " ".join(in_turns(of(2, 4, 2), 4)) == "a0 a1 b0 b1 b2 b3 c0 c1"


class Meeting:
    """Ahead of a read: waits until another file is read too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: set[str] = set()
        self._met = threading.Event()
        self.happened: list[bool] = []

    def before(self, path: str, _offset: int, _size: int) -> None:
        if not path.endswith(".safetensors") or self.happened:
            return
        with self._lock:
            self._files.add(path)
            if len(self._files) > 1:
                self._met.set()
        self.happened.append(self._met.wait(20))


def test_two_threads_verify_two_files(tmp_path: Path) -> None:
    model, meeting = a_model(tmp_path / "model", shards=2), Meeting()
    with Tree(model) as tree:
        write_manifest(tree, SMALL, Limits(), lambda _progress: None)
    with HookedTree(model, meeting.before) as tree:
        assert verify(tree, Trust(), Limits(threads=2)).is_right
    assert meeting.happened[0]


def test_two_threads_stage_two_files(tmp_path: Path) -> None:
    model, meeting = a_model(tmp_path / "model", shards=2), Meeting()

    def content_only(path: str, offset: int, size: int) -> None:
        if size >= SMALL.shard_size:  # not the headers, which one thread reads
            meeting.before(path, offset, size)

    with HookedTree(model, content_only) as tree:
        stage(tree, tmp_path / "staged", Options(SMALL), (Progress(), Limits(threads=2), lambda _progress: None))
    assert meeting.happened[0]

"""Verification of a folder that fails while it is read: errors, a standstill, replacement, and limits of time.

The file system is the real one; faults come in at `Tree`, where every read of a share passes.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermetic.api.weights_reasons import WeightsReason
from hermetic.weights.entries import FACTS, NAMES, Serialization
from hermetic.weights.manifests import write_manifest
from hermetic.weights.sealing import Trust
from hermetic.weights.tree import Item, Tree
from hermetic.weights.verification import Verified, verify
from hermetic.weights.workers import Limits, Progress
from testbed.damaged_files import flip_a_bit
from tests.weights import a_model
from tests.weights_trees import HookedTree

SHARD = "model-00002-of-00003.safetensors"
SMALL = Serialization("shards", 2**16, False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = a_model(tmp_path / "model")
    with Tree(folder) as tree:
        write_manifest(tree, SMALL, Limits(), lambda _progress: None)
    return folder


def found(folder: Path, before: Callable[[str, int], None], limits: Limits = Limits()) -> Verified:  # noqa: B008 - frozen
    with HookedTree(folder, lambda path, offset, _size: before(path, offset)) as tree:
        return verify(tree, Trust(), limits)


def reasons(verified: Verified) -> list[tuple[WeightsReason, str]]:
    return [(finding.reason, finding.file) for finding in verified.findings]


def failing(path: str, code: int, at: int = 0, times: int = 10**6) -> Callable[[str, int], None]:
    left = [times]

    def before(reading: str, offset: int) -> None:
        if reading == path and offset >= at and left[0] > 0:
            left[0] -= 1
            raise OSError(code, os.strerror(code))

    return before


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ETIMEDOUT])
def test_a_block_that_cannot_be_read_decides_nothing(model: Path, code: int) -> None:
    verified = found(model, failing(SHARD, code, at=2**17))
    assert reasons(verified) == [(WeightsReason.READ_FAILED, SHARD)]
    assert errno.errorcode[code] in verified.findings[0].observed
    assert verified.findings[0].reason.is_unknown


def test_what_is_wrong_is_told_before_what_could_not_be_read(model: Path) -> None:
    flip_a_bit(model / "tokenizer.json")
    verified = found(model, failing("config.json", errno.EIO))
    assert reasons(verified) == [
        (WeightsReason.DIGEST_MISMATCH, "tokenizer.json"),
        (WeightsReason.READ_FAILED, "config.json"),
    ]


def test_a_share_that_hangs_is_told_in_time(model: Path) -> None:
    released = threading.Event()

    def hang(path: str, _offset: int) -> None:
        if path == SHARD:
            released.wait()

    try:
        verified = found(model, hang, Limits(stall=0.3))
    finally:
        released.set()
    assert [reason for reason, _ in reasons(verified)] == [WeightsReason.SHARE_HANGS]


def test_a_share_that_is_too_slow_is_told_with_its_rate(model: Path) -> None:
    done = threading.Event()

    def slow(_path: str, _offset: int) -> None:
        done.wait(0.2)

    try:
        verified = found(model, slow, Limits(timeout=0.5, stall=60, threads=1))
    finally:
        done.set()
    assert [reason for reason, _ in reasons(verified)] == [WeightsReason.TOO_SLOW]
    assert "MiB/s" in verified.findings[0].observed


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_name("copy"))
    path.symlink_to("copy")


def replaced_by_copy(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "link": replaced_by_link,
    "same content": replaced_by_copy,
    "shorter": lambda path: os.truncate(path, 10),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "one bit": flip_a_bit,
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_is_changed_while_it_is_read_is_told(model: Path, change: str) -> None:
    changed: list[str] = []

    def before(path: str, offset: int) -> None:
        if path == SHARD and offset > 0 and not changed:
            changed.append(path)
            CHANGES[change](model / path)

    verified = found(model, before, Limits(threads=1))
    assert changed == [SHARD]
    assert (WeightsReason.CHANGED_WHILE_READING, SHARD) in reasons(verified)


def test_a_folder_on_the_way_that_becomes_a_link_is_not_followed(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "chat_template.jinja").write_text("{{ other }}")

    class Swapping(Tree):
        def walk(self) -> Iterator[Item]:
            items = list(super().walk())
            (model / "extra").rename(model / "was-extra")
            (model / "extra").symlink_to(other)
            return iter(items)

    with Swapping(model) as tree:
        verified = verify(tree, Trust())
    assert (WeightsReason.CHANGED_WHILE_READING, "extra/chat_template.jinja") in reasons(verified)


def test_a_manifest_is_not_written_over_a_folder_that_changes(model: Path) -> None:
    changed: list[str] = []

    def before(path: str, _offset: int, _size: int) -> None:
        if path == SHARD and not changed:
            changed.append(path)
            (model / "zzz.txt").write_text("new")

    was = (model / ".hermetic" / "manifest.json").read_bytes()
    with HookedTree(model, before) as tree, pytest.raises(Exception, match="ChangedWhileReading"):
        write_manifest(tree, SMALL, Limits(), lambda _progress: None)
    assert (model / ".hermetic" / "manifest.json").read_bytes() == was


def test_progress_counts_what_was_read(model: Path) -> None:
    progress_reports: list[Progress] = []
    with Tree(model) as tree:
        verified = verify(tree, Trust(), Limits(), progress_reports.append)
    of_the_model = [path for path in model.rglob("*") if path.is_file() and ".hermetic" not in path.parts]
    listed = [*of_the_model, model / NAMES, model / FACTS]
    assert verified.bytes == sum(path.stat().st_size for path in listed)

"""How `hermetic stage` ends where it does not succeed: what is left, what is reported, and that it ends at all."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hermetic.errors import StagingStopped, WeightsRefused, WeightsUnread
from hermetic.weights import verification
from hermetic.weights.entries import Serialization
from hermetic.weights.images import ImageOptions
from hermetic.weights.staging import Options, in_time, stage
from hermetic.weights.tree import Tree
from hermetic.weights.verification import Verified
from hermetic.weights.workers import Limits, Progress
from testbed.damaged_files import flip_a_bit
from tests.commandline import hermetic
from tests.weights import a_model, contents
from tests.weights_trees import HookedTree

SHARD = "model-00002-of-00003.safetensors"
SMALL = Serialization("shards", 2**15)
FORMS = pytest.mark.parametrize("image", [None, ImageOptions()], ids=["folder", "image"])


def run(tree: Tree, destination: Path, options: Options, progress: Progress | None = None) -> None:
    stage(tree, destination, options, (progress or Progress(), Limits(threads=1), lambda _progress: None))


# ---------------------------------------------------------------- what is left


@FORMS
def test_of_what_is_refused_before_a_byte_is_copied_nothing_is_left(
    model: Path, share: Path, image: ImageOptions | None
) -> None:
    (model / "training_args.bin").write_bytes(b"pickle")
    with Tree(model) as tree, pytest.raises(WeightsRefused, match="ExecutableContent") as refused:
        run(tree, share / "llama", Options(SMALL, image=image))
    assert list(share.iterdir()) == []
    assert "rm -r" not in refused.value.fix


def test_a_model_that_does_not_fit_leaves_nothing(model: Path, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = os.statvfs(share)
    full = os.statvfs_result((*room[:3], 0, 0, *room[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: full)
    ran = hermetic("stage", model, share / "llama")
    assert ran.code == 1
    assert ran.errors[0].startswith("error: HRM-WGT-004: ")
    assert list(share.iterdir()) == []


@FORMS
def test_of_a_copy_that_ended_early_is_told_where_it_is_and_how_to_remove_it(
    model: Path, share: Path, image: ImageOptions | None
) -> None:
    def before(path: str, offset: int, _size: int) -> None:
        if path == SHARD and offset >= 2**17:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    partial = share / ".my model.hermetic-partial"
    with HookedTree(model, before) as tree, pytest.raises(WeightsRefused, match="ReadFailed") as refused:
        run(tree, share / "my model", Options(SMALL, image=image))
    assert list(share.iterdir()) == [partial]
    command = refused.value.fix.partition("remove it with: ")[2]
    assert shlex.split(command) == ["rm", "-r", str(partial)]


def test_what_was_not_written_as_it_was_read_is_not_taken_for_staged(
    model: Path, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaging = damaged_once(verification.verify, share / ".llama.hermetic-partial" / "files" / SHARD)
    monkeypatch.setattr(verification, "verify", damaging)
    options = Options(SMALL, read_back=True)
    with Tree(model) as tree:
        with pytest.raises(WeightsRefused, match=f"DigestMismatch: {SHARD}"):
            run(tree, share / "llama", options)
        assert list(share.iterdir()) == []
        run(tree, share / "llama", Options(SMALL))
    assert contents(share / "llama")[SHARD] == contents(model)[SHARD]


def damaged_once(verify: Callable[..., Verified], file: Path) -> Callable[..., Verified]:
    """Verification of what was written, before which one bit of a file changes the first time."""
    left = [1]

    def damaging(*arguments: object) -> Verified:
        if left:
            left.pop()
            flip_a_bit(file)
        return verify(*arguments)

    return damaging


# ---------------------------------------------------------------- published, and not confirmed


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_sync_that_fails_after_the_rename_is_told_as_what_it_is(
    model: Path, share: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    original = os.fsync

    def failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == share:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        original(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    ran = hermetic("stage", model, share / "llama", "-o", output)
    assert ran.code == 3
    assert ran.errors == [
        f"error: HRM-WGT-006: {share}/llama: is published and complete, but that its name is on the disk is not "
        "confirmed: Input/output error"
    ]
    assert list(share.iterdir()) == [share / "llama"]
    digest = (
        json.loads(ran.out.splitlines()[-1])["digest"] if output == "json" else ran.out.split("digest: ")[1].split()[0]
    )
    if output == "json":
        assert json.loads(ran.out.splitlines()[-1])["durable"] is False
    assert hermetic("verify", share / "llama", "--digest", digest.strip()).code == 0


def test_what_is_durable_says_so(model: Path, share: Path) -> None:
    assert json.loads(hermetic("stage", model, share / "llama", "-o", "json").out.splitlines()[-1])["durable"] is True


# ---------------------------------------------------------------- what never answers


def test_a_source_that_hangs_is_told_in_time(model: Path, share: Path) -> None:
    released = threading.Event()

    def hang(path: str, _offset: int, _size: int) -> None:
        if path == SHARD:
            released.wait()

    progress = Progress()
    with HookedTree(model, hang) as tree:
        try:
            with pytest.raises(WeightsUnread, match="ShareHangs: ") as refused:
                in_time(lambda: run(tree, share / "llama", Options(SMALL), progress), progress, 0.3, share / "llama")
        finally:
            released.set()
    assert "rm -r" in refused.value.fix


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "fsync"])
def test_a_destination_that_hangs_is_told_in_time_and_nothing_appears_later(
    model: Path, share: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    released, ended = threading.Event(), threading.Event()
    original: Callable[..., object] = getattr(os, call)

    def hang(*arguments: object) -> object:
        released.wait()
        return original(*arguments)

    monkeypatch.setattr(os, call, hang)
    progress = Progress()

    def staged() -> None:
        try:
            run(tree, share / "llama", Options(SMALL), progress)
        finally:
            ended.set()

    with Tree(model) as tree:
        try:
            with pytest.raises(StagingStopped, match="DestinationHangs: ") as stopped:
                in_time(staged, progress, 0.3, share / "llama")
        finally:
            released.set()
        assert ended.wait(60)
    assert stopped.value.message.startswith(f"{share}/llama: ")
    assert not (share / "llama").exists()
    shutil.rmtree(share)


def test_a_slow_destination_is_not_one_that_hangs(tmp_path: Path, share: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel takes everything at once, and each sync takes most of the limit."""
    model = a_model(tmp_path / "large", shards=1, size=2**17)
    monkeypatch.setattr("hermetic.weights.destination.SYNCHRONISED", 2**17)
    monkeypatch.setattr("hermetic.weights.workers.CHUNK", 2**17)
    original, pause = os.fdatasync, threading.Event()

    def slow(descriptor: int) -> None:
        pause.wait(0.4)
        original(descriptor)

    monkeypatch.setattr(os, "fdatasync", slow)
    progress = Progress()
    with Tree(model) as tree:
        options = Options(Serialization("shards", 2**30))
        in_time(lambda: run(tree, share / "llama", options, progress), progress, 1.2, share / "llama")
    assert hermetic("verify", share / "llama").code == 0

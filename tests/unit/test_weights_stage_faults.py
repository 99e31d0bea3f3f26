"""`hermetic stage` under kills, races and disk errors: what appears is the model, and work is not done twice."""

from __future__ import annotations

import errno
import filecmp
import mmap
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermetic.api.weights_reasons import WeightsReason
from hermetic.errors import StagingStopped, WeightsRefused
from hermetic.weights.entries import MANIFEST, Serialization
from hermetic.weights.images import ImageOptions
from hermetic.weights.staging import Options, stage
from hermetic.weights.tree import Tree
from hermetic.weights.workers import Limits, Progress
from tests.commandline import PROGRAM, hermetic
from tests.sampled_groups import LONG
from tests.sampling import Sample
from tests.weights import a_model, contents
from tests.weights_trees import HookedTree

MEMORY = Path("/dev/shm")
SHARD = "model-00002-of-00003.safetensors"
RANGES = Serialization("shards", 2**23)
SMALL = Serialization("shards", 2**15)


def run(tree: Tree, destination: Path, options: Options) -> None:
    stage(tree, destination, options, (Progress(), Limits(threads=1), lambda _progress: None))


# ---------------------------------------------------------------- kills


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory with room for a model of 2 GiB; else one on the disk."""
    folder = tmp_path
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 * 2**30:
        folder = MEMORY / f"hermetic-{os.getpid()}"
        folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def two_gib(folder: Path) -> Path:
    """Two shards of 1 GiB, mostly holes, in which no two MiB are alike."""
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    for number in (1, 2):
        header = f'{{"a":{{"dtype":"U8","shape":[{2**30}],"data_offsets":[0,{2**30}]}}}}'.encode()
        with (folder / f"model-{number:05d}-of-00002.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + 2**30)
            for mib in range(1, 2**10):
                file.seek(mib * 2**20 + 17 * mib)
                file.write(f"{number} {mib}".encode())
    return folder


def killed_at(source: Path, destination: Path, options: Options, at: tuple[int, int], read: mmap.mmap) -> int:
    """Stages in a process that gets SIGKILL ahead of the read of (shard, offset); returns its wait status.

    `read` counts the bytes that all processes read.
    """

    def before(path: str, offset: int, size: int) -> None:
        if path.startswith("model-") and (int(path[6:11]), offset + size) > at:
            os.kill(os.getpid(), signal.SIGKILL)
        read[:8] = (int.from_bytes(read[:8], "little") + size).to_bytes(8, "little")

    child = os.fork()
    if child == 0:
        status = 1
        try:
            with HookedTree(source, before) as tree:
                run(tree, destination, options)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


@LONG
def test_two_gib_survive_a_kill_at_every_hundredth(memory: Path, sample: Sample) -> None:
    """Each process goes on where the one before was killed: all of them together read the model once."""
    source, destination = two_gib(memory / "source"), memory / "staged"
    options = Options(RANGES)
    read = mmap.mmap(-1, 8)
    for hundredth in sample.of("kills", range(1, 100), 25):
        at = 2 * 2**30 * hundredth // 100
        shard = 1 if at < 2**30 else 2
        status = killed_at(source, destination, options, (shard, at % 2**30), read)
        assert os.WIFSIGNALED(status), hundredth
        assert os.WTERMSIG(status) == signal.SIGKILL
        assert not destination.exists()
    assert killed_at(source, destination, options, (3, 0), read) == 0
    total = sum(path.stat().st_size for path in source.iterdir())
    assert int.from_bytes(read[:8], "little") <= total + 100 * RANGES.shard_size
    for name in ("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"):
        assert filecmp.cmp(source / name, destination / name, shallow=False)
    assert hermetic("verify", destination).code == 0


# ---------------------------------------------------------------- races


def test_of_two_that_race_one_wins_and_the_other_says_so(tmp_path: Path) -> None:
    source, destination = a_model(tmp_path / "source", size=2**22), tmp_path / "llama"
    command = [*PROGRAM, "stage", str(source), str(destination)]
    lock = tmp_path / ".llama.hermetic-partial" / "lock"
    first = subprocess.Popen([*command, "--shard-size", str(2**20), "--threads", "1"], stderr=subprocess.DEVNULL)
    try:
        while first.poll() is None and not (lock.exists() and lock.read_text().strip()):
            time.sleep(0.001)
        first.send_signal(signal.SIGSTOP)
        second = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait() == 0
    assert second.returncode == 1
    assert second.stderr.startswith("error: HRM-WGT-005: ")
    assert f"process {first.pid} on " in second.stderr
    assert hermetic("verify", destination).code == 0
    assert hermetic("stage", source, destination).code == 2


def test_many_that_race_make_one_model(tmp_path: Path) -> None:
    source, destination = a_model(tmp_path / "source", size=2**20), tmp_path / "llama"
    command = [*PROGRAM, "stage", str(source), str(destination)]
    racing = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    ended = [(process.communicate()[1], process.returncode) for process in racing]
    # one that came late found the destination: that is wrong input, not a race
    assert sorted(code for _, code in ended)[0] == 0
    assert [code for _, code in ended].count(0) == 1
    assert all("HRM-WGT-005" in output or "is there and not empty" in output for output, code in ended if code)
    assert {path: content for path, content in contents(destination).items() if ".hermetic" not in path} == contents(
        source
    )
    assert hermetic("verify", destination).code == 0


# ---------------------------------------------------------------- errors of the disks


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
def test_a_block_of_the_source_that_cannot_be_read_stops_it(tmp_path: Path, code: int) -> None:
    source, destination = a_model(tmp_path / "source"), tmp_path / "llama"
    failures = [OSError(code, os.strerror(code))]

    def before(path: str, offset: int, _size: int) -> None:
        if path == SHARD and offset >= 2**17 and failures:
            raise failures.pop()

    with HookedTree(source, before) as tree:
        with pytest.raises(WeightsRefused) as refused:
            run(tree, destination, Options(SMALL))
        assert [(finding.reason, finding.file) for finding in refused.value.findings] == [
            (WeightsReason.READ_FAILED, SHARD)
        ]
        assert errno.errorcode[code] in refused.value.message
        assert not destination.exists()
        run(tree, destination, Options(SMALL))
    assert hermetic("verify", destination).code == 0


def refusal(source: Path, destination: Path, options: Options) -> str:
    """Why staging stopped; "" where it did not."""
    with HookedTree(source, lambda *_read: None) as tree:
        try:
            run(tree, destination, options)
        except StagingStopped as error:
            return error.message
    return ""


@pytest.mark.parametrize("image", [None, ImageOptions()], ids=["folder", "image"])
@pytest.mark.parametrize(
    ("call", "code", "expected"),
    [
        ("pwrite", errno.EIO, "Input/output error"),
        ("pwrite", errno.ENOSPC, "the destination is full"),
        ("pwrite", errno.EDQUOT, "the destination is full"),
        ("fdatasync", errno.EIO, "Input/output error"),
        ("fsync", errno.EIO, "Input/output error"),
    ],
)  # fmt: skip
def test_a_write_that_fails_anywhere_is_told_and_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, code: int, expected: str, image: ImageOptions | None
) -> None:
    """The error comes at one write after another, until one run has no write left to fail."""
    monkeypatch.setattr("hermetic.weights.layers.LARGE", 2**17)
    source, destination = a_model(tmp_path / "source", size=2**16), tmp_path / "llama"
    original: Callable[..., int] = getattr(os, call)
    left = [0]

    def failing(*arguments: int) -> int:
        left[0] -= 1
        if left[0] == 0:
            raise OSError(code, os.strerror(code))
        return original(*arguments)

    monkeypatch.setattr(os, call, failing)
    options = Options(SMALL, image=image)
    stopped = 0
    for number in range(1, 200):
        left[0] = number
        if (message := refusal(source, destination, options)) == "":
            break
        assert expected in message
        stopped += 1
    left[0] = 10**9
    assert stopped >= 3
    if image is None:
        assert (destination / MANIFEST).is_file()
        assert hermetic("verify", destination).code == 0
        return
    with HookedTree(source, lambda *_read: None) as tree:
        run(tree, tmp_path / "at-once", options)
    assert contents(destination) == contents(tmp_path / "at-once")

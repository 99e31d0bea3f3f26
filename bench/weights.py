"""Verifying and staging weights, beside what people do today: `sha256sum -c`, `model_signing verify`, `cp`.

The files lie in memory (tmpfs): no disk and no page cache takes part. The contestants take turns, the first round does
not count, and figures are ratios of medians of one run. The server that caps each stream is a reader that waits; the
share that caps each file is one of FUSE whose answers wait, mounted alike for `cp` and for Hermetic.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from hermetic.weights.entries import SIGNATURE
from hermetic.weights.sealing import Trust
from hermetic.weights.tree import Tree
from hermetic.weights.verification import verify
from hermetic.weights.workers import Limits, default_threads
from testbed.errors import CannotRunError
from testbed.faulty_share import FaultyShare
from testbed.model_signing import ENVIRONMENT

MEMORY = Path("/dev/shm")
FILES, FILE_SIZE = 8, 2**29
NEEDED = 7 * FILES * FILE_SIZE // 2
"""Memory for the model, a copy of twice its size, and the processes."""
CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}  # fmt: skip
ROUNDS = 3
CAP = 40 * 2**20
"""Bytes per second of one stream of the server."""
STREAMS = 16
CAPPED_SIZE, SEQUENTIAL_SIZE = 2**30, 2**27
SHARE_FILES, SHARE_FILE_SIZE = 8, 2**26
SHARE_CAP, BEHIND = 20 * 2**20, 0.1
"""Bytes per second of each file, low enough for a share that is served by Python; seconds."""
ON_DISK = 4
"""Files of the model that is staged on the disk."""
MANY = 50_000
START = "start_seconds"
"""A contestant that does the same with a model of one small file: what every run takes."""
TWICE = "hermetic_twice"
"""A contestant with a model of twice the size: the start is a smaller part of it."""
HERMETIC = Path(sys.executable).with_name("hermetic")
_PEAK = (
    "import sys; from hermetic.cli import main\n"
    "try: main(sys.argv[1:])\n"
    "finally: print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')), file=sys.stderr)"
)

Figures = dict[str, Any]


def measure() -> Figures:
    """Verification, staging, a server with a cap for each stream, and memory."""
    if not MEMORY.is_dir() or min(shutil.disk_usage(MEMORY).free, _available()) < NEEDED:
        raise CannotRunError(f"{MEMORY} and the memory have no room for {NEEDED} bytes")
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        folder = Path(name)
        _make(folder)
        return {
            "bytes": FILES * FILE_SIZE,
            "files": FILES,
            "rounds": ROUNDS,
            "cores": len(os.sched_getaffinity(0)),
            "priority": _has_priority(),
            "verify": _verified(folder),
            "stage": _staged(folder),
            "stage_on_disk": _staged_on_disk(folder),
            "capped": _capped(folder),
            "capped_share": _capped_share(folder),
            "memory": _memory(folder),
        }


def _available() -> int:
    line = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable:"))
    return int(line.split()[1]) * 1024


def _make(folder: Path) -> None:
    (folder / "small").mkdir()
    _write_model(folder / "small", 1, 8)
    (folder / "model").mkdir()
    _write_model(folder / "model", FILES, FILE_SIZE)
    _make_twice(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "key.pub").write_bytes(public)
    _run("hermetic", "manifest", folder / "model", "--method", "files")
    _run("hermetic", "manifest", folder / "small")
    _run("hermetic", "manifest", folder / "twice")
    for name in ("model", "small", "twice"):
        _run("hermetic", "sign", folder / name, "--key", folder / "key.pem")
    first = min((folder / "model").glob("*.safetensors")).name
    sums = subprocess.run(["sha256sum", first], cwd=folder / "model", capture_output=True, check=True)
    (folder / "sums").write_bytes(sums.stdout)


def _write_model(folder: Path, files: int, size: int) -> None:
    (folder / "config.json").write_text(json.dumps(CONFIGURATION))
    block = os.urandom(min(size, 2**24))
    header = f'{{"a":{{"dtype":"U8","shape":[{size}],"data_offsets":[0,{size}]}}}}'.encode()
    for number in range(files):
        with (folder / f"model-{number + 1:05d}-of-{files:05d}.safetensors").open("wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            for _ in range(size // len(block)):
                file.write(block)


def _make_twice(folder: Path) -> None:
    """The same files under two names each: as many bytes to read, in half of the memory."""
    (folder / "twice").mkdir()
    for file in (folder / "model").iterdir():
        (folder / "twice" / file.name).hardlink_to(file)
        if file.suffix == ".safetensors":
            (folder / "twice" / f"second-{file.name}").hardlink_to(file)


def _verified(folder: Path) -> Figures:
    model, key = folder / "model", folder / "key.pub"
    library = str(ENVIRONMENT.installed() / "bin" / "python")
    theirs = (
        library,
        "-m",
        "model_signing",
        "verify",
        "key",
        model,
        "--signature",
        model / SIGNATURE,
        "--public_key",
        key,
    )
    size = FILES * FILE_SIZE
    return _rates(
        {
            "hash_ceiling": (size, _ceiling),
            "read_ceiling": (size, lambda: _read_ceiling(model)),
            "sha256sum": (FILE_SIZE, lambda: _run("sha256sum", "--check", "--quiet", folder / "sums", cwd=model)),
            "model_signing": (size, lambda: _run(*theirs)),
            "hermetic": (size, lambda: _run("hermetic", "verify", model, "--public-key", key)),
            TWICE: (2 * size, lambda: _run("hermetic", "verify", folder / "twice", "--public-key", key)),
            START: (0, lambda: _run("hermetic", "verify", folder / "small", "--public-key", key)),
        },
    )


def _ceiling() -> None:
    """SHA-256 over as many bytes, of one buffer of 1 MiB in each thread, which its core keeps: nothing is read."""
    threads = default_threads()
    block = bytes(2**20)

    def work() -> None:
        digest = hashlib.sha256()
        for _ in range(FILES * FILE_SIZE // threads // len(block)):
            digest.update(block)

    _side_by_side(work)


def _read_ceiling(model: Path) -> None:
    """The same, and the files are read into that buffer, one in each thread: the least that a program does to read."""
    left = sorted(model.glob("*.safetensors"))

    def work() -> None:
        buffer = memoryview(bytearray(2**20))
        while left:
            digest = hashlib.sha256()
            with left.pop().open("rb", buffering=0) as file:
                while count := file.readinto(buffer):
                    digest.update(buffer[:count])

    _side_by_side(work)


def _side_by_side(work: Callable[[], None]) -> None:
    """On as many threads as Hermetic has: beside other processes more threads get more of the machine."""
    threads = [threading.Thread(target=work) for _ in range(default_threads())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _staged(folder: Path) -> Figures:
    model, copy = folder / "model", folder / "copy"

    def copied_and_hashed() -> None:
        copy.mkdir()
        _run("cp", min(model.glob("*.safetensors")), copy)
        subprocess.run("sha256sum *.safetensors > sums", shell=True, cwd=copy, check=True)

    size = FILES * FILE_SIZE
    return _rates(
        {
            "cp": (size, lambda: _run("cp", "-r", model, copy)),
            "cp_and_sha256sum": (FILE_SIZE, copied_and_hashed),
            "hermetic": (size, lambda: _run("hermetic", "stage", model, copy)),
            "cp_twice": (2 * size, lambda: _run("cp", "-r", folder / "twice", copy)),
            TWICE: (2 * size, lambda: _run("hermetic", "stage", folder / "twice", copy)),
            START: (0, lambda: _run("hermetic", "stage", folder / "small", copy)),
        },
        copy,
    )


def _staged_on_disk(folder: Path) -> Figures:
    """From memory to the disk of this machine, until it is durable."""
    model = folder / "part"
    model.mkdir()
    for file in sorted((folder / "model").glob("*.safetensors"))[:ON_DISK]:
        (model / file.name).hardlink_to(file)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        copy = Path(name) / "copy"

        def copied() -> None:
            _run("cp", "-r", model, copy)
            _run("sync", "--file-system", copy)

        def staged() -> None:
            _run("hermetic", "stage", model, copy)

        size = ON_DISK * FILE_SIZE
        return {"bytes": size, **_rates({"cp_and_sync": (size, copied), "hermetic": (size, staged)}, copy)}


def _rates(contestants: dict[str, tuple[int, Callable[[], object]]], path: Path | None = None) -> Figures:
    """GB a second of each, and GB a second of one core that does nothing else. Of START, the seconds.

    What they make is removed ahead of each, outside of the time that is measured.
    """
    durations: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for turn in range(ROUNDS + 1):
        for name, (_, run) in contestants.items():
            if path is not None:
                shutil.rmtree(path, ignore_errors=True)
                if not path.is_relative_to(MEMORY):
                    os.sync()
            started, used = time.monotonic(), _processor_seconds()
            run()
            if turn:
                durations[name].append((time.monotonic() - started, _processor_seconds() - used))
    medians = {
        name: [statistics.median(times) for times in zip(*rounds, strict=True)] for name, rounds in durations.items()
    }
    sizes = {name: size for name, (size, _) in contestants.items() if name != START}
    figures: Figures = {name: round(size / medians[name][0] / 1e9, 3) for name, size in sizes.items()}
    figures["of_one_core"] = {name: round(size / medians[name][1] / 1e9, 3) for name, size in sizes.items()}
    if START in contestants:
        figures[START] = round(medians[START][0], 3)
        figures["after_start"] = round(sizes["hermetic"] / (medians["hermetic"][0] - medians[START][0]) / 1e9, 3)
    return figures


def _has_priority() -> bool:
    """Whether the kernel prefers this process to all others, by its nice value or that of its session's autogroup."""
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        return True
    try:
        is_on = int(Path("/proc/sys/kernel/sched_autogroup_enabled").read_text())
        return bool(is_on) and int(Path("/proc/self/autogroup").read_text().split()[-1]) < 0
    except OSError:
        return False


def _processor_seconds() -> float:
    every = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in every)


class _CappedTree(Tree):
    """A server that delivers CAP bytes a second on each stream, from the moment when it is opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._free_at: dict[int, float] = {}

    def open(self, path: str) -> int:
        descriptor = super().open(path)
        self._free_at[descriptor] = time.monotonic()
        return descriptor

    def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
        count = super().read_into(descriptor, view, offset)
        self._free_at[descriptor] += count / CAP
        time.sleep(max(0.0, self._free_at[descriptor] - time.monotonic()))
        return count


def _capped(folder: Path) -> Figures:
    """One file, read by ranges on many streams, and by one."""
    rates = {}
    for name, threads, size in (("sharded", STREAMS, CAPPED_SIZE), ("sequential", 1, SEQUENTIAL_SIZE)):
        model = folder / name
        model.mkdir()
        with (model / "one.gguf").open("wb") as file:
            file.truncate(size)
        _run("hermetic", "manifest", model, "--shard-size", str(2**23))
        with _CappedTree(model) as tree:
            started = time.monotonic()
            verified = verify(tree, Trust(), Limits(threads=threads))
            assert verified.is_right
            rates[name] = size / (time.monotonic() - started)
    return {
        "streams": STREAMS,
        "cap_MBps": round(CAP * STREAMS / 1e6, 1),
        "sharded_MBps": round(rates["sharded"] / 1e6, 1),
        "sequential_MBps": round(rates["sequential"] / 1e6, 1),
        "of_the_cap": round(rates["sharded"] / (CAP * STREAMS), 3),
        "of_sequential": round(rates["sharded"] / rates["sequential"], 1),
    }


class _PerFile:
    """A share that delivers SHARE_CAP bytes a second of each file, however many read it.

    It makes up for BEHIND seconds at most in which other programs had the processor.
    """

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}

    def __call__(self, path: str, size: int) -> float:
        behind = max(time.monotonic() - BEHIND, self._free_at.get(path, 0.0))
        self._free_at[path] = behind + size / SHARE_CAP
        return self._free_at[path]


def _capped_share(folder: Path) -> Figures:
    """Copied from a share with a cap for each file: by cp, which reads one file after the other, and staged."""
    model, mounted, copy = folder / "shared", folder / "mounted", folder / "copy"
    model.mkdir()
    mounted.mkdir()
    _write_model(model, SHARE_FILES, SHARE_FILE_SIZE)
    durations = {}
    commands: dict[str, tuple[str | Path, ...]] = {"cp": ("cp", "-r"), "hermetic": ("hermetic", "stage")}
    with FaultyShare(model, mounted, due=_PerFile()):
        for name, command in commands.items():
            shutil.rmtree(copy, ignore_errors=True)
            started = time.monotonic()
            _run(*command, mounted, copy)
            durations[name] = time.monotonic() - started
    size = SHARE_FILES * SHARE_FILE_SIZE
    rates = {f"{name}_MBps": round(size / seconds / 1e6, 1) for name, seconds in durations.items()}
    return {
        "files": SHARE_FILES,
        "cap_MBps": round(SHARE_CAP / 1e6, 1),
        **rates,
        "of_cp": round(durations["cp"] / durations["hermetic"], 1),
        "of_the_cap": round(size / durations["hermetic"] / (SHARE_CAP * SHARE_FILES), 3),
    }


def _memory(folder: Path) -> Figures:
    """Most resident memory of `hermetic verify`, MiB: of the model, and of a folder with very many files."""
    many = folder / "many"
    many.mkdir()
    for number in range(MANY):
        (many / f"a-file-of-some-dataset-{number:06d}.txt").write_bytes(b"x")
    _run("hermetic", "manifest", many)
    return {
        "model_MiB": _peak("verify", folder / "model", "--public-key", folder / "key.pub"),
        "many_files": MANY,
        "many_files_MiB": _peak("verify", many),
    }


def _peak(*arguments: str | Path) -> float:
    command = [sys.executable, "-c", _PEAK, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return round(int(done.stderr.split("VmHWM:")[1].split()[0]) / 1024, 1)


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    arguments = [str(HERMETIC if word == "hermetic" else word) for word in command]
    return subprocess.run(arguments, check=True, capture_output=True, text=True, cwd=cwd).stdout

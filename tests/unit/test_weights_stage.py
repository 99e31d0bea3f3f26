"""`hermetic stage`: whole or not at all, from every source, after every kill, and one process at a time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from hermetic.errors import StagingStopped, WeightsRefused
from hermetic.weights.copying import Staged
from hermetic.weights.entries import FACTS, MANIFEST, NAMES, Serialization
from hermetic.weights.sources import source_tree
from hermetic.weights.staging import Options, stage
from hermetic.weights.tree import Tree
from hermetic.weights.workers import Limits, Progress
from testbed.damaged_files import flip_a_bit
from tests.commandline import PROGRAM, hermetic
from tests.sampled_groups import LONG
from tests.sampling import Sample
from tests.weights import a_model, contents
from tests.weights_trees import copied_until

SHARD = "model-00002-of-00003.safetensors"
SMALL = Serialization("shards", 2**15)


def staged(source: Path, destination: Path, *, read_back: bool = False, threads: int = 4) -> Staged:
    with source_tree(source) as tree:
        watched = (Progress(), Limits(threads=threads), lambda _progress: None)
        return stage(tree, destination, Options(SMALL, read_back=read_back), watched)


def without_manifest(folder: Path) -> dict[str, bytes]:
    return {path: content for path, content in contents(folder).items() if not path.startswith(".hermetic/")}


def test_a_staged_model_is_the_same_and_verifies(model: Path, share: Path) -> None:
    ran = hermetic("stage", model, share / "llama", "--read-back", "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out.splitlines()[-1])
    assert without_manifest(share / "llama") == contents(model)
    assert list(share.iterdir()) == [share / "llama"]
    assert hermetic("verify", share / "llama", "--digest", document["digest"]).code == 0
    assert hermetic("manifest", share / "llama", "-o", "json").code == 0
    assert json.loads(hermetic("verify", share / "llama", "-o", "json").out)["digest"] == document["digest"]


def test_modes_let_every_user_of_a_pod_read(model: Path, share: Path) -> None:
    (model / "config.json").chmod(0o600)
    (model / "extra").chmod(0o700)
    staged(model, share / "llama")
    for path in [share / "llama", *(share / "llama").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o755 if path.is_dir() else 0o644), path


def test_a_hugging_face_snapshot_becomes_plain_files(model: Path, share: Path, tmp_path: Path) -> None:
    repository = tmp_path / "hub" / "models--meta--llama"
    snapshot = repository / "snapshots" / "0123abc"
    expected = contents(model)
    for number, path in enumerate(expected):
        blob = repository / "blobs" / f"{number:040x}"
        blob.parent.mkdir(parents=True, exist_ok=True)
        (model / path).rename(blob)
        (snapshot / path).parent.mkdir(parents=True, exist_ok=True)
        (snapshot / path).symlink_to(Path("../" * (path.count("/") + 2)) / "blobs" / blob.name)
    staged(snapshot, share / "llama")
    assert without_manifest(share / "llama") == expected
    assert not any(path.is_symlink() for path in (share / "llama").rglob("*"))
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("../../refs/main")
    with pytest.raises(WeightsRefused, match=r"LinkRefused: config\.json"):
        staged(snapshot, share / "other")


def test_links_of_a_nim_cache_stay_links(model: Path, share: Path, tmp_path: Path) -> None:
    hub = tmp_path / "cache" / "ngc" / "hub" / "models--nim--meta--llama"
    (hub / "blobs").mkdir(parents=True)
    (hub / "snapshots" / "fp8").mkdir(parents=True)
    (model / SHARD).rename(hub / "blobs" / "abc")
    (hub / "snapshots" / "fp8" / "model.safetensors").symlink_to("../../blobs/abc")
    result = staged(tmp_path / "cache", share / "nim", threads=1)
    assert without_manifest(share / "nim") == contents(tmp_path / "cache")
    assert (share / "nim" / "ngc/hub/models--nim--meta--llama/snapshots/fp8/model.safetensors").is_symlink()
    assert result.names.files == 2
    assert hermetic("verify", share / "nim", "--digest", result.root).code == 0


@pytest.mark.parametrize("target", ["/etc/hostname", "../../outside", "nothing", "."])
def test_a_link_that_leads_elsewhere_is_refused(model: Path, share: Path, target: str) -> None:
    (model / "link").symlink_to(target)
    ran = hermetic("stage", model, share / "llama")
    assert (ran.code, "LinkRefused: link" in ran.err) == (1, True)
    assert not (share / "llama").exists()


def test_after_a_kill_at_every_hundredth_the_result_is_the_same(model: Path, share: Path, sample: Sample) -> None:
    """And no range that was finished is read again."""
    expected = staged(model, share / "expected")
    total = copied_until(model, share / "counted", Options(SMALL), 10**9)
    assert total > 80
    for hundredth in sample.of("kills", range(100), 25):
        destination = share / f"at-{hundredth}"
        copied_until(model, destination, Options(SMALL), total * hundredth // 100)
        assert not destination.exists()
        after = copied_until(model, destination, Options(SMALL), 10**9)
        per_range = SMALL.shard_size // 2**13
        assert after <= total - total * hundredth // 100 + per_range + 70, "more than what was missing was read"
        assert without_manifest(destination) == contents(model)
        assert (destination / MANIFEST).read_bytes().split(b'"subject"')[0] == (
            share / "expected" / MANIFEST
        ).read_bytes().split(b'"subject"')[0]
        shutil.rmtree(destination)
    assert expected.root


@LONG
def test_a_process_that_is_killed_is_taken_up(tmp_path: Path, share: Path) -> None:
    model = a_model(tmp_path / "large", shards=3, size=2**22)
    source, destination = contents(model), share / "llama"
    journal = share / ".llama.hermetic-partial" / "journal"
    kills = 0
    for attempt in range(40):
        command = [*PROGRAM, "stage", str(model), str(destination), "--shard-size", str(2**20), "--threads", "1"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        while process.poll() is None and kills < 6:
            with contextlib.suppress(OSError):
                if journal.read_bytes().count(b"\n") > lines + 3:
                    process.send_signal(signal.SIGKILL)
                    kills += 1
                    break
            time.sleep(0.001)
        if process.wait() == 0:
            break
        assert not destination.exists(), attempt
    assert kills >= 2
    assert without_manifest(destination) == source
    assert hermetic("verify", destination).code == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_journal_costs_time_and_nothing_else(model: Path, share: Path, seed: int) -> None:
    chance = random.Random(seed)
    copied_until(model, share / "llama", Options(SMALL), 70)
    journal = share / ".llama.hermetic-partial" / "journal"
    content = bytearray(journal.read_bytes())
    match seed % 3:
        case 0:
            content = content[: chance.randrange(len(content))]
        case 1:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case _:
            content += chance.randbytes(500)
    journal.write_bytes(content)
    staged(model, share / "llama")
    assert without_manifest(share / "llama") == contents(model)
    assert hermetic("verify", share / "llama").code == 0


def test_a_source_that_changed_between_two_runs_is_copied_anew(model: Path, share: Path) -> None:
    copied_until(model, share / "llama", Options(SMALL), 90)
    flip_a_bit(model / "model-00001-of-00003.safetensors")
    staged(model, share / "llama", read_back=True)
    assert without_manifest(share / "llama") == contents(model)


def test_what_the_source_no_longer_has_is_not_staged(model: Path, share: Path) -> None:
    copied_until(model, share / "llama", Options(SMALL), 90)
    (model / "config.json").unlink()
    (model / "extra" / "chat_template.jinja").rename(model / "chat_template.jinja")
    staged(model, share / "llama")
    assert without_manifest(share / "llama") == contents(model)
    assert hermetic("verify", share / "llama").code == 0


@pytest.mark.parametrize("change", ["content", "another file", "gone"])
def test_a_source_that_changes_meanwhile_is_not_published(model: Path, share: Path, change: str) -> None:
    class Changing(Tree):
        changed = False

        def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
            if offset > 2**17 and not self.changed:
                self.changed = True
                if change == "content":
                    flip_a_bit(model / "config.json")
                elif change == "gone":
                    (model / "tokenizer.json").unlink()
                else:
                    (model / "new.txt").write_text("x")
            return super().read_into(descriptor, view, offset)

    with Changing(model) as tree, pytest.raises(WeightsRefused, match="ChangedWhileReading"):
        stage(tree, share / "llama", Options(SMALL), (Progress(), Limits(threads=1), lambda _progress: None))
    assert not (share / "llama").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB. Root only."""
    folder = tmp_path / "small"
    folder.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("mounting needs root")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_destination_is_told_and_taken_up(
    model: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hermetic("stage", model, small_disk / "llama")
    assert (before.code, before.errors[0].startswith("error: HRM-WGT-004: ")) == (1, True)
    assert "are to be staged" in before.err
    # a share may count otherwise than statvfs says: then it is the write that fails
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_bavail=2**30, f_frsize=4096))
    with pytest.raises(StagingStopped, match="the destination is full"):
        staged(model, small_disk / "llama")
    assert not (small_disk / "llama").exists()
    subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
    result = staged(model, small_disk / "llama")
    assert result.bytes_kept > 0
    assert without_manifest(small_disk / "llama") == contents(model)


def test_of_two_stagers_one_wins_and_the_other_says_so(model: Path, share: Path) -> None:
    holder = (
        "import fcntl, os, sys; descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT); "
        "fcntl.lockf(descriptor, fcntl.LOCK_EX); os.write(descriptor, b'process 7 on jumpbox\\n'); "
        "print('held', flush=True); sys.stdin.read()"
    )
    partial = share / ".llama.hermetic-partial"
    partial.mkdir()
    command = [sys.executable, "-c", holder, str(partial / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        ran = hermetic("stage", model, share / "llama")
        assert other.stdin is not None
        other.stdin.close()
    assert ran.code == 1
    assert ran.errors[0].startswith("error: HRM-WGT-005: ")
    assert "process 7 on jumpbox" in ran.err
    assert hermetic("stage", model, share / "llama").code == 0


def test_what_is_there_is_not_written_over(model: Path, share: Path) -> None:
    (share / "llama").mkdir()
    (share / "llama" / "precious").write_text("x")
    ran = hermetic("stage", model, share / "llama")
    assert (ran.code, "not empty" in ran.err) == (2, True)
    assert contents(share / "llama") == {"precious": b"x"}
    assert hermetic("stage", model, share / "nowhere" / "llama").code == 4
    assert hermetic("stage", share / "nothing", share / "phi").code == 2
    assert hermetic("stage", model, model / "inside").code == 2
    assert hermetic("stage", model, model).code == 2


def test_an_old_manifest_of_the_source_is_not_carried_along(model: Path, share: Path) -> None:
    assert hermetic("manifest", model, "--method", "files").code == 0
    assert hermetic("stage", model, share / "llama").code == 0
    assert '"method": "shards"' in (share / "llama" / MANIFEST).read_text()
    assert hermetic("verify", share / "llama").code == 0
    assert json.loads((share / "llama" / NAMES).read_text())["files"] == len(without_manifest(model))


def test_the_facts_for_sizing_are_staged_and_listed(model: Path, share: Path) -> None:
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64}
    config |= {"num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100, "max_position_embeddings": 2048}
    (model / "config.json").write_text(json.dumps({**config, "torch_dtype": "bfloat16", "intermediate_size": 128}))
    assert hermetic("stage", model, share / "llama").code == 0
    facts = share / "llama" / FACTS
    assert json.loads(facts.read_text())["facts"]["modelType"] == "llama"
    assert f'"{FACTS}:0:' in (share / "llama" / MANIFEST).read_text()
    flip_a_bit(facts)
    assert f"DigestMismatch: {FACTS}" in hermetic("verify", share / "llama").err


@pytest.mark.parametrize(("throughput", "is_told"), [("300", False), ("900", False), ("1125", True), ("10340", True)])
def test_too_few_files_for_the_share_are_told(model: Path, share: Path, throughput: str, is_told: bool) -> None:
    ran = hermetic("stage", model, share / "llama", "--share-throughput", throughput)
    assert ("it needs" in ran.err) is is_told, ran.err


def test_progress_is_told_in_lines_of_json(model: Path, share: Path) -> None:
    ran = hermetic("stage", model, share / "llama", "-o", "json", "--threads", "1")
    events = [json.loads(line) for line in ran.out.splitlines()]
    assert events[-1]["event"] == "staged"
    assert {event["event"] for event in events[:-1]} <= {"progress"}

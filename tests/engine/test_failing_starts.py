"""Starts of the real vLLM that fail: what the kubelet keeps of them becomes the right reason."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermetic.api.engine_reasons import EngineReason
from hermetic.engines.failure_signatures import diagnose, telling_line
from testbed.real_engine.network import PodNetwork
from testbed.real_engine.pod import Machine, Mounts, pod
from tests.engine.conftest import dated, keep
from tests.scenarios import a_share_model
from tests.snapshots import rendered
from tests.termination_messages import message

SHARD = "model-00002-of-00002.safetensors"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 2888280\n"
Spoil = Callable[[Path], object]


def configured(**fields: object) -> Spoil:
    def spoil(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    return spoil


def cut_short(name: str) -> Spoil:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size // 2)


def without(*names: str) -> Spoil:
    return lambda folder: [(folder / name).unlink() for name in names]


FAILURES: dict[str, tuple[Spoil, tuple[str, ...], EngineReason]] = {
    "shard cut short": (cut_short(SHARD), (), EngineReason.MODEL_INCOMPLETE),
    "shard missing": (without(SHARD), (), EngineReason.MODEL_INCOMPLETE),
    "shard empty": (lambda folder: os.truncate(folder / SHARD, 0), (), EngineReason.MODEL_INCOMPLETE),
    "shard is a pointer": (lambda folder: (folder / SHARD).write_text(POINTER), (), EngineReason.MODEL_INCOMPLETE),
    "shard unreadable": (lambda folder: (folder / SHARD).chmod(0o600), (), EngineReason.MODEL_UNREADABLE),
    "configuration cut short": (cut_short("config.json"), (), EngineReason.MODEL_INCOMPLETE),
    "configuration unreadable": (
        lambda folder: (folder / "config.json").chmod(0o600),
        (),
        EngineReason.MODEL_UNREADABLE,
    ),
    "configuration missing": (without("config.json"), (), EngineReason.MODEL_INCOMPLETE),
    "tokenizer missing": (without("tokenizer.json", "tokenizer_config.json"), (), EngineReason.MODEL_INCOMPLETE),
    "architecture unknown": (configured(architectures=["FooBarForCausalLM"]), (), EngineReason.MODEL_UNSUPPORTED),
    "code in the folder": (
        configured(auto_map={"AutoConfig": "evil.Evil"}, model_type="evil"), (), EngineReason.REMOTE_CODE_REQUIRED,
    ),
    "context too long": (lambda _: None, ("--max-model-len", "300000"), EngineReason.CONTEXT_TOO_LONG),
    "heads not divisible": (lambda _: None, ("--tensor-parallel-size", "3"), EngineReason.TENSOR_PARALLEL_INVALID),
    "no integer": (lambda _: None, ("--max-num-seqs", "many"), EngineReason.ENGINE_ARGUMENTS_REFUSED),
    "no value": (lambda _: None, ("--max-num-seqs",), EngineReason.ENGINE_ARGUMENTS_REFUSED),
    "unknown flag": (lambda _: None, ("--no-such-flag",), EngineReason.ENGINE_ARGUMENTS_REFUSED),
    "parser not named": (lambda _: None, ("--enable-auto-tool-choice",), EngineReason.ENGINE_ARGUMENTS_REFUSED),
    "draft model by name": (
        lambda _: None,
        ("--speculative-config", '{"method": "draft_model", "model": "meta/draft", "num_speculative_tokens": 2}'),
        EngineReason.FETCH_ATTEMPTED,
    ),
    "tokenizer by name": (lambda _: None, ("--tokenizer", "meta/llama"), EngineReason.FETCH_ATTEMPTED),
}  # fmt: skip


@pytest.fixture(scope="module")
def explained() -> Iterator[set[str]]:
    """The starts that got their reason; how many is kept where that was tried of all."""
    figures_seen: set[str] = set()
    before = round(os.getloadavg()[0], 1)
    yield figures_seen
    if figures_seen == set(FAILURES):
        keep({"failing_starts": {**dated(), "explained": len(figures_seen)}}, before)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_start_that_fails_says_why_and_sends_no_request(
    failure: str, machine: Machine, network: PodNetwork, whole_model: Path, tmp_path: Path, explained: set[str]
) -> None:
    spoil, arguments, reason = FAILURES[failure]
    tmp_path.chmod(0o755)
    folder = shutil.copytree(whole_model, tmp_path / "weights")
    spoil(folder)
    deployment = rendered(a_share_model())["Deployment"]
    with pod(deployment, machine, Mounts(folder), more=("--enforce-eager", *arguments)) as started:
        code = started.ended(within=900)
        log, last_message = started.log.read_bytes(), started.words.read_bytes()
    if logs_folder := os.environ.get("HERMETIC_KEEP_LOGS"):
        (Path(logs_folder) / f"{failure.replace(' ', '-')}.log").write_bytes(log)
    assert code != 0
    assert diagnose(message(log, last_message)) is reason, (
        telling_line(message(log, last_message)),
        log[-3000:].decode(),
    )
    assert network.packets == []
    explained.add(failure)

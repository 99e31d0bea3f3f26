"""Whole logs of real engines that could not start, as much of them as a kubelet keeps, and what becomes of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermetic.api.engine_reasons import EngineReason
from hermetic.engines.failure_signatures import diagnose, telling_line
from hermetic.engines.launch import keeping_first_errors
from hermetic.in_container.error_capture import last_words
from tests.termination_messages import OF_A_FILE, message

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts" / "vllm-0.32.0"
CASES = {
    "config-cut-short": (EngineReason.MODEL_INCOMPLETE, "'/weights/config.json' is not a valid JSON file"),
    "config-unreadable": (EngineReason.MODEL_UNREADABLE, "Permission denied: '/weights/config.json'"),
    "custom-code": (EngineReason.REMOTE_CODE_REQUIRED, "contains custom code which must be executed"),
    "draft-model-by-name": (EngineReason.FETCH_ATTEMPTED, "'meta-llama/draft'"),
    "empty-folder": (EngineReason.MODEL_INCOMPLETE, "Invalid repository ID or local directory specified: '/weights'"),
    "model-path-missing": (EngineReason.MODEL_PATH_MISSING, "'/models/phi-4'"),
    "no-tokenizer": (EngineReason.MODEL_INCOMPLETE, "Couldn't instantiate the backend tokenizer"),
    "shard-cut-short": (EngineReason.MODEL_INCOMPLETE, "incomplete metadata, file not fully covered"),
    "shard-is-a-git-lfs-pointer": (EngineReason.MODEL_INCOMPLETE, "Error while deserializing header: header too large"),
    "shard-missing": (EngineReason.MODEL_INCOMPLETE, "missing: {'/weights/model-00002-of-00002.safetensors'}"),
    "shard-unreadable": (
        EngineReason.MODEL_UNREADABLE,
        "No such file or directory: /weights/model-00001-of-00002.safe",
    ),
    "tensor-parallel-3-of-8-heads": (EngineReason.TENSOR_PARALLEL_INVALID, "attention heads (8) must be divisible by"),
    "tokenizer-by-name": (EngineReason.FETCH_ATTEMPTED, "outgoing traffic has been disabled"),
    "tool-choice-without-parser": (EngineReason.ENGINE_ARGUMENTS_REFUSED, "requires --tool-call-parser"),
    "unknown-architecture": (
        EngineReason.MODEL_UNSUPPORTED,
        "Model architectures ['FooBarForCausalLM'] are not supported",
    ),
}
# A worker has said it, and the tracebacks of those that waited for it came after. The list of every architecture is
# longer than what is kept as well.
PUSHED_OUT = {
    "shard-cut-short",
    "shard-is-a-git-lfs-pointer",
    "shard-missing",
    "shard-unreadable",
    "unknown-architecture",
}
by_case = pytest.mark.parametrize("case", CASES)


def log_of(case: str) -> bytes:
    return (TRANSCRIPTS / f"{case}.log").read_bytes()


def test_every_transcript_is_a_case():
    assert {path.stem for path in TRANSCRIPTS.glob("*.log")} == set(CASES)


@by_case
def test_the_first_error_of_a_failed_start_reaches_the_status(case):
    reason, shown_line = CASES[case]
    termination_message = message(log_of(case), last_words(log_of(case)))
    assert diagnose(termination_message) is reason
    assert shown_line in telling_line(termination_message)
    assert reason.needs_human


@by_case
def test_the_kubelet_alone_would_have_kept_it_only_where_the_log_is_short(case):
    expected = None if case in PUSHED_OUT else CASES[case][0]
    assert diagnose(message(log_of(case))) is expected


@by_case
@pytest.mark.parametrize("workers", [1, 8])
def test_as_many_workers_as_there_are_gpus_may_fail_at_once(case, workers):
    log = log_of(case)
    termination_message = message(b"", last_words(log * workers))
    assert len(last_words(log * workers)) <= OF_A_FILE
    assert diagnose(termination_message) is CASES[case][0]


@pytest.mark.parametrize("case", sorted(PUSHED_OUT - {"unknown-architecture"}))
def test_an_error_that_is_in_no_catalogue_is_shown_in_its_own_words(case):
    log = re.sub(rb"(SafetensorError|FileNotFoundError): .*", b"NewError: the shard is of next year", log_of(case))
    termination_message = message(log, last_words(log))
    assert diagnose(termination_message) is None
    assert telling_line(termination_message).endswith("NewError: the shard is of next year")


@pytest.mark.parametrize("case", sorted(set(CASES) - {"custom-code"}))
def test_no_log_is_explained_by_what_came_before_the_failure(case):
    """Banner, warnings and the arguments that are printed: nothing there is an error. (Of custom code vLLM warns.)"""
    before = log_of(case).partition(b"Traceback")[0].rpartition(b"\n")[0]
    assert diagnose(before.decode()) is None
    assert b"--- end of the log" not in last_words(before)


# ---------------------------------------------------------------------- the program itself, as a pod runs it


def run(tmp_path: Path, *engine: str) -> tuple[subprocess.CompletedProcess[bytes], bytes]:
    """The rendered command around another engine; /dev/termination-log is a file of the test."""
    termination_log = tmp_path / "termination-log"
    termination_log.touch()
    command = [word.replace("/dev/termination-log", str(termination_log)) for word in keeping_first_errors(*engine)]
    ended = subprocess.run([sys.executable, *command[1:]], capture_output=True, timeout=60, check=False)
    return ended, termination_log.read_bytes()


def python(text: str) -> tuple[str, ...]:
    return sys.executable, "-c", text


def test_output_and_exit_code_are_the_engine_s(tmp_path):
    log = TRANSCRIPTS / "shard-missing.log"
    ended, termination_log = run(tmp_path, "sh", "-c", f"cat {log} >&2; exit 3")
    assert (ended.returncode, ended.stdout) == (3, log.read_bytes())
    assert diagnose(message(b"", termination_log)) is EngineReason.MODEL_INCOMPLETE


def test_an_engine_that_ends_well_leaves_no_words(tmp_path):
    ended, termination_log = run(tmp_path, "sh", "-c", "echo 'ValueError: of a request'")
    assert (ended.returncode, ended.stdout, termination_log) == (0, b"ValueError: of a request\n", b"")


def test_a_killed_engine_ends_as_a_shell_would_say_it(tmp_path):
    ended, termination_log = run(tmp_path, "sh", "-c", "echo last; kill -9 $$")
    assert (ended.returncode, termination_log) == (137, b"last\n")


def test_output_without_end_of_line_and_of_any_bytes_passes_unchanged(tmp_path):
    ended, termination_log = run(
        tmp_path, *python("import os,sys; os.write(2, bytes(range(256)) * 20_000); sys.exit(1)")
    )
    assert ended.stdout == bytes(range(256)) * 20_000
    assert 0 < len(termination_log) <= OF_A_FILE


def test_memory_stays_bounded_and_the_newest_errors_are_kept(tmp_path):
    flood = "for n in range(60_000): print('RuntimeError: of request', n, 'x' * 60)\nprint('NewError: at the end')"
    ended, termination_log = run(tmp_path, *python(f"import sys\n{flood}\nsys.exit(1)"))
    assert ended.stdout.count(b"\n") == 60_001
    assert telling_line(message(b"", termination_log)) == "NewError: at the end"


def test_a_worker_that_outlives_the_engine_does_not_hold_up_its_end(tmp_path):
    ended, termination_log = run(tmp_path, "sh", "-c", "sleep 40 & echo 'NewError: x'; exit 1")
    assert (ended.returncode, ended.stdout) == (1, b"NewError: x\n")
    assert termination_log.startswith(b"NewError: x\n")


def test_an_engine_that_is_not_there_ends_the_container(tmp_path):
    ended, _ = run(tmp_path, "no-such-engine")
    assert ended.returncode == 1
    assert b"no-such-engine" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_the_engine_and_it_drains_as_long_as_it_likes(number):
    engine = (
        "import signal,sys,time\n"
        "def stop(*_): print('draining', flush=True); time.sleep(0.5); print('drained'); sys.exit(0)\n"
        # pause() would miss a signal that comes just before it
        f"signal.signal({int(number)}, stop); print('serving', flush=True)\nwhile True: time.sleep(0.05)"
    )
    command = [sys.executable, *keeping_first_errors(*python(engine))[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == b"serving\n"
        os.kill(started.pid, number)
        assert started.stdout.read() == b"draining\ndrained\n"
    assert started.returncode == 0


def test_a_kubelet_finds_nothing_to_expand_in_the_command():
    assert not any("$(" in word or "$$" in word for word in keeping_first_errors("vllm", "serve"))

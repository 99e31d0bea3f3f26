"""How the engine stand-in takes its command line, and how it fails: in the words an operator must recognise."""

from __future__ import annotations

import ast
import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermetic.engines.vllm.tables import TABLES
from testbed.engine import VLLM_TABLES, image_files, vllm_environment
from testbed.engine.local import running, unpack
from testbed.engine.stand_in.arguments import parse
from testbed.engine.stand_in.behaviour import read_behaviour
from testbed.engine.stand_in.container_checks import check_shared_memory
from testbed.engine.stand_in.failures import ORDERED, StartFailure, cache_unwritable
from testbed.engine.stand_in.settings import EngineSettings, Settings
from testbed.engine.stand_in.tables import table_of
from testbed.images.model import stage_model
from tests.sampled_groups import ENGINE_STAND_IN

pytestmark = ENGINE_STAND_IN

NEWEST = TABLES.supported[-1]
TABLE = table_of(f"{NEWEST}.0", VLLM_TABLES)
SAMPLE = {"int": "1", "float": "0.5", "size": "4k", "json": "[1]", "object": '{"a": 1}', "text": "word"}
TERMINATION_MESSAGE_BYTES = 2048
Ended = Callable[..., tuple[int, str]]


def words_for(name: str, shape: dict[str, Any]) -> list[str]:
    if shape["value"] == "none":
        return [name]
    return [name, shape["choices"][0] if "choices" in shape else SAMPLE[shape.get("type", "text")]]


@pytest.mark.parametrize("minor", TABLES.supported)
@pytest.mark.parametrize("kind", ["name", "aliases", "negations"])
def test_every_flag_of_the_table_is_taken_in_every_spelling(minor, kind):
    table = table_of(f"{minor}.0", VLLM_TABLES)
    flags = {name: shape for name, shape in table.flags.items() if name not in {"--help", "--model"}}
    spelled = {name: [name] if kind == "name" else shape.get(kind, []) for name, shape in flags.items()}
    arguments = [
        word
        for name, spellings in spelled.items()
        for spelling in spellings
        for word in words_for(spelling, flags[name])
    ]
    given_flags = parse(["serve", "/m", *arguments], table)
    assert set(given_flags) == {"model", *(name.removeprefix("--") for name, spellings in spelled.items() if spellings)}


def accepted(word: str) -> bool:
    """Whether the stand-in takes the word for a flag, whatever value it wants."""
    for value in ([], *([sample] for sample in SAMPLE.values())):
        try:
            parse(["serve", "/m", word, *value], TABLE)
        except SystemExit:
            continue
        return True
    return False


@settings(deadline=None)
@given(st.sampled_from(sorted(TABLE.flags)), st.integers(3, 30), st.sampled_from(["", "x", "-"]))
def test_the_product_s_table_and_the_stand_in_agree_on_abbreviations(name, length, more):
    word = name[:length] + more
    understood = TABLES.table_for(NEWEST).understood_as(word)
    if any(flag.choices for flag in understood) or any(flag.name in {"--help", "--model"} for flag in understood):
        return
    assert accepted(word) == TABLES.table_for(NEWEST).knows(word)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--tensor_parallel_size=2"], {"tensor-parallel-size": 2}),
        (["-tp", "2"], {"tensor-parallel-size": 2}),
        (["--max-model-len", "32k"], {"max-model-len": 32000}),
        (["--max-model-len", "32K"], {"max-model-len": 32768}),
        (["--max-model-len", "auto"], {"max-model-len": -1}),
        (["--no-enable-prefix-caching"], {"enable-prefix-caching": False}),
        (["--disable-prefix-caching"], {"enable-prefix-caching": False}),
        (["-O3"], {"optimization-level": "3"}),
        (["-O", "2"], {"optimization-level": "2"}),
        (["--eplb-config.mode", "3", "--eplb-config.a.b=x"], {"eplb-config": {"mode": 3, "a": {"b": "x"}}}),
        (["--served-model-name", "a", "b"], {"served-model-name": ["a", "b"]}),
        (["--middleware", "a", "--middleware", "b"], {"middleware": ["a", "b"]}),
    ],
)  # fmt: skip
def test_values_are_read_as_vllm_reads_them(arguments, expected):
    assert parse(["serve", "/m", *arguments], TABLE) == {"model": "/m", **expected}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("image"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    stage_model(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def ended(root: Path, tmp_path: Path) -> Ended:
    """Runs `vllm ARGUMENTS` to its end; gives the exit code and everything it printed."""

    def run(*arguments: str, version: str = "0.32.0", **environment: str) -> tuple[int, str]:
        prepared = {**vllm_environment(version), "HOME": str(tmp_path), "USER": "hermetic", **environment}
        with running(root, "usr/local/bin/vllm", arguments, prepared) as engine:
            return engine.exit_code(), engine.text

    return run


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--no-such-flag", "1"], "vllm: error: unrecognized arguments: --no-such-flag 1"),
        (["--disable-prefix-caching"], "vllm: error: unrecognized arguments: --disable-prefix-caching"),
        (["--ssl-c", "x"], "vllm serve: error: ambiguous option: --ssl-c could match"),
        (["--port", "eight"], "vllm serve: error: argument --port: invalid int value: 'eight'"),
        (["--dtype", "int3"], "vllm serve: error: argument --dtype: invalid choice: 'int3'"),
        (["--port"], "vllm serve: error: argument --port: expected one argument"),
        (["--model", "/other"], "vllm: error: unrecognized arguments:"),
    ],
)
def test_bad_arguments_end_with_2_and_argparse_s_words(ended: Ended, model: Path, flags, message):
    code, text = ended("serve", str(model), *flags)
    assert code == 2
    assert message in text


def test_a_flag_is_refused_by_the_version_that_does_not_know_it(ended: Ended, model: Path):
    flags = ("--max-num-queued-reqs", "5", "--port", "none")
    assert "unrecognized" not in ended("serve", str(model), *flags, version="0.33.0")[1]
    code, text = ended("serve", str(model), "--max-num-queued-reqs", "5", version="0.24.0")
    assert (code, "unrecognized arguments: --max-num-queued-reqs 5" in text) == (2, True)


def change_config(model: Path, **changes: Any) -> None:
    file = model / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def cut_short(model: Path) -> None:
    file = model / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])


def close_weights(model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / "model.safetensors").symlink_to("gone")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda model: (model / "config.json").unlink(), "Invalid repository ID or local directory specified: '{}'"),
        (lambda model: (model / "model.safetensors").unlink(), "Cannot find any model weights with `{}`"),
        (close_weights, "FileNotFoundError: No such file or directory: {}/model.safetensors"),
        (cut_short, "incomplete metadata, file not fully covered"),
        (lambda model: (model / "tokenizer.json").unlink(), "Couldn't instantiate the backend tokenizer"),
        (lambda model: change_config(model, auto_map={"A": "a.B"}), "contains custom code which must be executed"),
    ],
)
def test_a_damaged_model_folder_fails_with_vllm_s_words(ended: Ended, model: Path, damage, message):
    damage(model)
    code, text = ended("serve", str(model))
    assert code == 1
    assert message.format(model) in text


def test_a_path_that_is_no_folder_is_taken_for_a_repository(ended: Ended):
    assert "Repo id must be in the form 'repo_name'" in ended("serve", "/models/not-there")[1]
    assert "Repo id must use alphanumeric chars" in ended("serve", "/not-there")[1]
    code, text = ended("serve", "meta/llama")
    assert (code, "outgoing traffic has been disabled" in text) == (1, True)


def test_a_context_or_parallel_size_that_the_model_has_not_is_refused(ended: Ended, model: Path):
    change_config(model, num_attention_heads=6, max_position_embeddings=4096)
    text = ended("serve", str(model), "--max-model-len", "8192")[1]
    assert "max_model_len (8192) is greater than the derived max_model_len (max_position_embeddings=4096" in text
    text = ended("serve", str(model), "--tensor-parallel-size", "4")[1]
    assert "attention heads (6) must be divisible by tensor parallel size (4)" in text


@pytest.mark.parametrize("name", sorted(ORDERED))
def test_any_failure_can_be_ordered_by_name(ended: Ended, model: Path, name):
    (model / "stand-in.json").write_text(json.dumps({"fail_with": name, "traceback": "short"}))
    code, text = ended("serve", str(model), "--port", "0")
    failure = ORDERED[name]
    assert code == 1
    assert failure.words.splitlines()[0] in text
    assert ("Engine core initialization failed. See root cause above." in text.splitlines()[-1]) == failure.in_core


def test_a_worker_s_root_cause_lies_too_far_up_for_a_termination_message(ended: Ended, model: Path):
    """The kubelet keeps 2048 bytes of the log; vLLM's last traceback alone is longer."""
    (model / "stand-in.json").write_text(json.dumps({"fail_with": "gpu-busy"}))
    text = ended("serve", str(model), "--port", "0")[1]
    assert "Free memory on device" in text
    assert "Free memory on device" not in text[-TERMINATION_MESSAGE_BYTES:]
    assert "Engine core initialization failed" in text[-TERMINATION_MESSAGE_BYTES:]


def test_a_typo_in_the_orders_is_an_error(tmp_path: Path):
    (tmp_path / "stand-in.json").write_text('{"fail_wiht": "gpu-busy"}')
    with pytest.raises(ValueError, match="unknown fail_wiht; there are die_after_seconds"):
        read_behaviour(tmp_path)


def test_an_unwritable_cache_or_temporary_folder_fails(ended: Ended, model: Path):
    code, text = ended("serve", str(model), VLLM_CACHE_ROOT="/dev/null/vllm")
    assert (code, "/dev/null/vllm/torch_compile_cache" in text) == (1, True)
    denied = cache_unwritable(PermissionError(13, "Permission denied", "/cache/torch_compile_cache"))
    assert denied.words == "PermissionError: [Errno 13] Permission denied: '/cache/torch_compile_cache'"


def test_workers_need_shared_memory(tmp_path: Path):
    free = os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize
    workers = free // (240 << 20) + 1
    many = Settings("vLLM", "0.32.0", (), "/m", ("m",), engine=EngineSettings(tensor_parallel_size=workers))
    with pytest.raises(StartFailure, match="Insufficient space in /dev/shm"):
        check_shared_memory(many, tmp_path)
    check_shared_memory(Settings("vLLM", "0.32.0", (), "/m", ("m",)), tmp_path / "not-there")


def test_the_environment_is_held_against_the_version_s_names(ended: Ended, model: Path):
    assert (
        "VLLM_PORT 'tcp://10.0.0.1:8000' appears to be a URI"
        in ended("serve", str(model), VLLM_PORT="tcp://10.0.0.1:8000")[1]
    )
    text = ended("serve", str(model), "--fail-on-environ-validation", VLLM_LOG_LEVEL="INFO")[1]
    assert "ValueError: Unknown vLLM environment variable detected: VLLM_LOG_LEVEL" in text
    (model / "config.json").unlink()
    assert "WARNING" in ended("serve", str(model), VLLM_LOG_LEVEL="INFO")[1]


def test_a_port_in_use_is_known_before_the_engine_loads(ended: Ended, model: Path):
    (model / "stand-in.json").write_text(json.dumps({"load_seconds": 60}))
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen()
        code, text = ended("serve", str(model), "--port", str(listener.getsockname()[1]))
    assert (code, "Address already in use" in text) == (1, True)


def test_the_image_s_files_are_the_same_every_time_and_readable_by_anyone():
    assert image_files() == image_files()
    for path, content, mode in image_files():
        assert not path.startswith("/")
        assert content
        assert mode in {0o644, 0o755}


def test_the_stand_in_needs_nothing_but_the_standard_library():
    for path, content, _ in image_files():
        if path.endswith(".json"):
            continue
        for node in ast.walk(ast.parse(content)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module or "")
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names | {"stand_in"}, path

"""What becomes of flags, variables, images and options of a container in a converted ModelDeployment.

Sources: docs.vllm.ai "Engine Arguments", "Using Docker", "LoRA Adapters" and "Speculative Decoding"; docs.sglang.ai
"Server Arguments"; docs.docker.com "docker container run".
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.engine_sglang import SGLANG_FLAGS
from hermetic.api.reserved_flags import VLLM_FLAGS
from hermetic.conversion import successors
from hermetic.conversion.engine_flags import MODEL_FLAGS, NAME_FLAG
from hermetic.conversion.field_flags import FIELD_FLAGS
from hermetic.conversion.server_command import FlagMember
from hermetic.engines.dropped_names import dropped_names
from hermetic.engines.registry import FLAG_ENGINES
from tests.conversions import VLLM_IMAGE, converted, of_sglang, of_vllm

FIELDS: list[tuple[tuple[str, ...], str, Any]] = [
    (("--tensor-parallel-size", "8"), "engine.vllm.tensorParallelSize", 8),
    (("-tp", "8"), "engine.vllm.tensorParallelSize", 8),
    (("-tp=8",), "engine.vllm.tensorParallelSize", 8),
    (("--tensor_parallel_size=8",), "engine.vllm.tensorParallelSize", 8),
    (("--tensor-par", "8"), "engine.vllm.tensorParallelSize", 8),
    (("-tp", "2", "-tp", "8"), "engine.vllm.tensorParallelSize", 8),
    (("-pp", "4"), "engine.vllm.pipelineParallelSize", 4),
    (("-tp", "8", "-pp", "2"), "accelerator.count", 16),
    (("-dp", "8"), "accelerator.count", 8),
    (("-tp", "2", "-dp", "4", "--enable-expert-parallel"), "accelerator.count", 8),
    ((), "accelerator.count", 1),
    (("--max-model-len", "8192"), "engine.vllm.maxModelLength", 8192),
    (("--max-model-len", "128k"), "engine.vllm.maxModelLength", 128_000),
    (("--max-model-len", "128K"), "engine.vllm.maxModelLength", 131_072),
    (("--max-model-len", "25.6k"), "engine.vllm.maxModelLength", 25_600),
    (("--max-model-len 8192",), "engine.vllm.maxModelLength", 8192),
    (("--gpu-memory-utilization", "0.9"), "engine.vllm.gpuMemoryUtilizationPercent", 90),
    (("--gpu-memory-utilization", ".95"), "engine.vllm.gpuMemoryUtilizationPercent", 95),
    (("--gpu-memory-utilization", "0.29"), "engine.vllm.gpuMemoryUtilizationPercent", 29),
    (("--gpu-memory-utilization", "0.955"), "engine.vllm.gpuMemoryUtilizationPercent", 95),
    (("--device-memory-utilization", "0.9"), "engine.vllm.gpuMemoryUtilizationPercent", 90),
    (("--kv-cache-dtype", "fp8_e4m3"), "engine.vllm.kvCacheDtype", "fp8_e4m3"),
    (("--port", "9000"), "endpoint.port", 9000),
    (("--shutdown-timeout", "60"), "drainSeconds", 60),
    (("--api-key", "k"), "endpoint.apiKey.secretName", "model-api-key"),
    (("--ssl-certfile", "/c", "--ssl-keyfile", "/k"), "endpoint.tls.secretName", "model-tls"),
    (("--served-model-name", "a", "b", "b"), "model.name", "a"),
    (("--served-model-name", "a", "b", "b"), "model.aliases", ["b"]),
    ((), "model.name", "org/model"),
]


def at(document: Any, path: str) -> Any:
    for step in path.split("."):
        document = document.get(step) if isinstance(document, dict) else None
    return document


@pytest.mark.parametrize(("arguments", "path", "value"), FIELDS)
def test_a_flag_with_a_field_becomes_the_field(arguments: tuple[str, ...], path: str, value: Any) -> None:
    assert at(of_vllm(*arguments).spec, path) == value


@pytest.mark.parametrize(
    ("arguments", "path", "value"),
    [
        (("--tp", "8"), "engine.sglang.tensorParallelSize", 8),
        (("--tp", "4", "--dp", "2"), "accelerator.count", 8),
        (("--tp", "8", "--dp", "8", "--enable-dp-attention"), "accelerator.count", 8),
        (("--context-length", "32Ki"), "engine.sglang.maxModelLength", 32_768),
        (("--context-length", "32k"), "engine.sglang.maxModelLength", 32_000),
        (("--mem-fraction-static", "0.85"), "engine.sglang.memFractionStaticPercent", 85),
        (("--port", "9000"), "endpoint.port", 9_000),
        ((), "endpoint.port", 30_000),
    ],
)
def test_a_flag_of_sglang_with_a_field_becomes_the_field(arguments: tuple[str, ...], path: str, value: Any) -> None:
    assert at(of_sglang(*arguments).spec, path) == value


@pytest.mark.parametrize(
    "arguments",
    [
        ("--max-model-len", "auto"),
        ("--max-model-len", "-1"),
        ("--max-model-len", "9" * 40),
        ("--gpu-memory-utilization", "0.99"),
        ("--gpu-memory-utilization", "nan"),
        ("--gpu-memory-utilization", "1e-1"),
        ("--kv-cache-dtype", "FP8"),
        ("--port", "443"),
        ("--tensor-parallel-size", "$(nvidia-smi -L | wc -l)"),
        ("--tensor-parallel-size", "$TP"),
        ("--tensor-parallel-size", "many"),
        ("--tensor-parallel-size", "0"),
        ("--max-num-seqs", "`id`"),
        ("--max-num-seqs", "many"),
        ("--no-such-flag", "x"),
        ("--max", "3"),
        ("--host", "0.0.0.0"),
        ("--trust-remote-code",),
        ("--download-dir", "/models"),
        ("--enable-auto-tool-choice",),
        ("--load-format", "custom"),
        ("--enable-lora",),
        ("--lora-modules", "sql=org/lora"),
        ("--lora-modules", '{"name":"sql","path":"org/lora"}'),
        ("--max-lora-rank", "64"),
    ],
)
def test_what_has_no_place_in_the_manifest_is_left_out_with_its_reason(arguments: tuple[str, ...]) -> None:
    result = of_vllm(*arguments)
    (note,) = result.notes("left out")
    assert note.subject == arguments[0]
    assert len(note.message) > 20
    assert arguments[0] not in result.arguments


@pytest.mark.parametrize(
    ("arguments", "items"),
    [
        (("--enable-expert-parallel",), ["--enable-expert-parallel"]),
        (("-ep",), ["--enable-expert-parallel"]),
        (("--enable-expert-par",), ["--enable-expert-parallel"]),
        (("--no-enable-prefix-caching",), ["--no-enable-prefix-caching"]),
        (("--no-enable-prefix-caching", "--enable-prefix-caching"), ["--enable-prefix-caching"]),
        (("-O3",), ["--optimization-level", "3"]),
        (("-O", "3"), ["--optimization-level", "3"]),
        (("-qfp8",), ["-qfp8"]),
        (("--max-num-seqs=8",), ["--max-num-seqs=8"]),
        (("--max_num_seqs", "8"), ["--max-num-seqs", "8"]),
        (("--limit-mm-per-prompt.image", "2"), ["--limit-mm-per-prompt.image", "2"]),
        (("--limit-mm-per-prompt", '{\n "image": 2\n}'), ["--limit-mm-per-prompt", '{"image":2}']),
        (
            ("--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
            ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
        ),
        (("--compilation-config", '{"mode": 3, "use_inductor": true}'), ["--compilation-config", '{"mode":3}']),
    ],
)
def test_the_rest_becomes_arguments_written_in_full(arguments: tuple[str, ...], items: list[str]) -> None:
    assert of_vllm(*arguments).arguments == items


STAGED: list[tuple[tuple[str, ...], str, str]] = [
    (("--speculative-config", '{"model":"org/draft","method":"eagle3"}'), "/weights/draft", "org/draft"),
    (("--speculative-config.model", "org/draft"), "/weights/draft", "org/draft"),
    (("--tokenizer", "org/tok"), "/weights/tok", "org/tok"),
    (("--default-mm-loras", '{"audio":"org/lora"}'), "/weights/lora", "org/lora"),
    (("--chat-template", "./my/chat.jinja"), "/weights/chat.jinja", "./my/chat.jinja"),
    (("--chat-template", "/home/me/chat.jinja"), "/weights/chat.jinja", "/home/me/chat.jinja"),
]


@pytest.mark.parametrize(("arguments", "path", "subject"), STAGED)
def test_a_model_or_file_of_elsewhere_is_named_below_the_weights(
    arguments: tuple[str, ...], path: str, subject: str
) -> None:
    result = of_vllm(*arguments)
    assert any(path in item for item in result.arguments)
    assert not any(subject in item for item in result.arguments)
    (note,) = result.notes("stage", subject)
    assert path.partition("=")[2] or path in note.message


@pytest.mark.parametrize(
    ("arguments", "items"),
    [
        (("--tokenizer", "org/model"), ["--tokenizer", "/weights"]),
        (
            ("--speculative-config", '{"method":"ernie_mtp","model":"org/model"}'),
            ["--speculative-config", '{"method":"ernie_mtp","model":"/weights"}'],
        ),
        (("--speculative-config", '{"method":"mtp"}'), ["--speculative-config", '{"method":"mtp"}']),
        (("--speculative-config", '{"method":"ngram","model":"ngram"}'), None),
        (("--chat-template", "{{ messages[0]['content'] }}"), None),
        (("--generation-config", "vllm"), None),
        (("--chat-template", "/vllm-workspace/examples/a.jinja"), None),
        (
            ("--chat-template", "examples/tool_chat_template_hermes.jinja"),
            ["--chat-template", "/vllm-workspace/examples/tool_chat_template_hermes.jinja"],
        ),
    ],
)
def test_what_the_model_or_the_image_holds_needs_no_staging(
    arguments: tuple[str, ...], items: list[str] | None
) -> None:
    result = of_vllm(*arguments)
    assert result.arguments == (items or list(arguments))
    assert [note.subject for note in result.notes("stage")] == ["org/model"]


def test_paths_below_a_mounted_model_are_those_of_the_weights() -> None:
    result = converted(
        f"docker run -v /srv:/models {VLLM_IMAGE} --model /models/llama --tokenizer /models/llama/tok "
        '--chat-template /app/chat.jinja --speculative-config \'{"model": "/models/draft"}\''
    )
    assert result.arguments == [
        *("--tokenizer", "/weights/tok"),
        *("--chat-template", "/app/chat.jinja"),
        *("--speculative-config", '{"model":"/weights/draft"}'),
    ]
    assert result.spec["model"]["name"] == "llama"
    assert [note.subject for note in result.notes("stage")] == ["/models/llama", "/models/draft"]


def test_the_parser_of_a_plug_in_goes_with_the_plug_in() -> None:
    result = of_vllm(
        *("--reasoning-parser-plugin", "nano.py", "--reasoning-parser", "nano_v3"),
        *("--tool-parser-plugin", "tools.py", "--tool-call-parser", "tools", "--enable-auto-tool-choice"),
    )
    assert result.arguments == []
    assert len(result.notes("left out")) == 5


def test_a_flag_goes_with_the_one_that_it_needs() -> None:
    result = of_vllm("--enable-auto-tool-choice", "--tool-call-parser", "hermez")
    needs, parser = result.notes("left out")
    assert needs.message == "it needs --tool-call-parser beside it, which the manifest does not have"
    assert "hermez" in parser.message


def test_a_parser_that_the_release_has_stays_without_the_plug_in() -> None:
    result = of_vllm("--reasoning-parser-plugin", "nano.py", "--reasoning-parser", "deepseek_r1")
    assert result.arguments == ["--reasoning-parser", "deepseek_r1"]
    assert [note.subject for note in result.notes("left out")] == ["--reasoning-parser-plugin"]


SUCCEEDED = [
    (("--task", "embed"), ["--runner", "pooling"]),
    (("--rope-scaling", '{"factor":4.0}'), ["--hf-overrides.rope_scaling", '{"factor":4.0}']),
    (("--guided-decoding-backend=xgrammar",), ["--structured-outputs-config.backend", "xgrammar"]),
    (("--override-pooler-config", '{"pooling_type":"MEAN"}'), ["--pooler-config", '{"pooling_type":"MEAN"}']),
    (("--disable-mm-preprocessor-cache",), ["--mm-processor-cache-gb", "0"]),
    (("--speculative-model", "org/draft"), ["--speculative-config.model", "/weights/draft"]),
]


@pytest.mark.parametrize(("arguments", "items"), SUCCEEDED)
def test_a_dropped_flag_becomes_its_successor(arguments: tuple[str, ...], items: list[str]) -> None:
    result = of_vllm(*arguments)
    assert result.arguments == items
    (note,) = result.notes("replaced")
    assert note.subject == arguments[0].partition("=")[0]
    assert items[0] in note.message


@pytest.mark.parametrize(
    ("variable", "value", "arguments", "variables"),
    [
        ("VLLM_ATTENTION_BACKEND", "FLASHINFER", ["--attention-backend", "FLASHINFER"], {}),
        ("VLLM_FLASHINFER_MOE_BACKEND", "latency", ["--moe-backend", "flashinfer_trtllm"], {}),
        ("VLLM_USE_TRTLLM_ATTENTION", "0", ["--attention-config.use_trtllm_attention", "false"], {}),
        ("VLLM_SKIP_DEEP_GEMM_WARMUP", "1", [], {"VLLM_DEEP_GEMM_WARMUP": "skip"}),
        ("AITER_SITUV2_A8W4", "1", [], {"VLLM_ROCM_USE_AITER_MOE_SITUV2": "a8w4"}),
    ],
)
def test_a_dropped_variable_becomes_its_successor(
    variable: str, value: str, arguments: list[str], variables: dict[str, str]
) -> None:
    result = of_vllm(environment={variable: value})
    assert (result.arguments, result.variables) == (arguments, variables)
    assert len(result.notes("replaced", variable)) == 1


def test_a_successor_that_the_command_has_already_keeps_its_own_value() -> None:
    result = of_vllm("--attention-backend", "TRITON_ATTN", environment={"VLLM_ATTENTION_BACKEND": "FLASHINFER"})
    assert result.arguments == ["--attention-backend", "TRITON_ATTN"]
    assert len(result.notes("left out", "VLLM_ATTENTION_BACKEND")) == 1


@pytest.mark.parametrize("variable", ["VLLM_USE_V1", "VLLM_USE_FLASHINFER_MOE_FP4", "VLLM_RPC_TIMEOUT"])
def test_a_dropped_variable_without_a_certain_successor_is_left_out(variable: str) -> None:
    result = of_vllm(environment={variable: "1"})
    assert (result.arguments, result.variables) == ([], {})
    (note,) = result.notes("left out", variable)
    assert dropped_names("vllm")[variable].instead in note.message


def test_a_dropped_switch_takes_no_model_for_its_value() -> None:
    result = converted("vllm", "serve", "--enable-reasoning", "org/model")
    assert result.spec["model"]["name"] == "org/model"


def test_a_name_that_the_release_still_has_is_no_dropped_one() -> None:
    result = of_vllm("--calculate-kv-scales", image="contoso.azurecr.io/vllm:v0.27.0")
    assert result.arguments == ["--calculate-kv-scales"]


REWRITTEN = {**successors._KEYS, **successors._SWITCHES, **successors._VALUES, **successors._VARIABLES}


@pytest.mark.parametrize("name", REWRITTEN)
def test_every_translated_value_is_of_a_dropped_name_and_its_successor(name: str) -> None:
    dropped = {**dropped_names("sglang"), **dropped_names("vllm")}[name]
    options = {
        *([successors._KEYS[name]] if name in successors._KEYS else []),
        *([successors._SWITCHES[name][0]] if name in successors._SWITCHES else []),
        *(words[0] for words in successors._VALUES.get(name, {}).values()),
        *([dropped.successor] if name in successors._VARIABLES else []),
    }
    assert {option.partition(".")[0] for option in options} == {dropped.successor}
    assert not dropped.keeps_value


@pytest.mark.parametrize(("member", "reserved"), [("vllm", VLLM_FLAGS), ("sglang", SGLANG_FLAGS)])
def test_every_flag_that_is_reserved_for_a_field_becomes_the_field(
    member: FlagMember, reserved: dict[str, str]
) -> None:
    tables = FLAG_ENGINES[member].tables
    names = tables.table_for(tables.supported[-1]).flags.keys()  # without aliases
    # Client certificates, ciphers and the refresh of certificates have no field: they are left out.
    of_tls = {flag for flag in reserved if "ssl-" in flag} - {"--ssl-certfile", "--ssl-keyfile"}
    with_field = {flag for flag, reason in reserved.items() if reason.startswith("set spec.")}
    of_model = {MODEL_FLAGS[member], NAME_FLAG}
    assert FIELD_FLAGS[member].keys() == (with_field & names) - of_tls - of_model


def test_a_secret_is_repeated_nowhere() -> None:
    secret = "sk-0123456789"
    result = of_vllm(
        *("--api-key", secret, "--hf-token", secret, f"--hf-tokn={secret}", "--watermark-config", secret),
        environment={"HF_TOKEN": secret, "VLLM_API_KEY": secret, "MY_PASSWORD": secret, "OTHER": secret},
    )
    assert secret not in str(result.conversion)
    assert result.spec["endpoint"]["apiKey"] == {"secretName": "model-api-key"}
    assert {note.subject for note in result.notes("left out")} >= {"HF_TOKEN", "MY_PASSWORD", "OTHER", "--hf-tokn"}


def test_variables_are_kept_where_the_reviewed_list_has_them() -> None:
    result = of_vllm(
        environment={
            "VLLM_LOGGING_LEVEL": "DEBUG",
            "NCCL_SOCKET_IFNAME": "$IFACE_NAME",
            "CUDA_VISIBLE_DEVICES": "0,1",
            "VLLM_ENGINE_READY_TIMEOUT_S": "3600",
            "HF_HOME": "/x",
            "HTTPS_PROXY": "http://proxy:3128",
        }
    )
    assert result.variables == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    assert result.spec["startupBudgetSeconds"] == 3600
    assert {note.subject for note in result.notes("left out")} == {
        *("NCCL_SOCKET_IFNAME", "CUDA_VISIBLE_DEVICES", "HF_HOME", "HTTPS_PROXY"),
    }

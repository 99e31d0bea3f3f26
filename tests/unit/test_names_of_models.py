"""Flags whose value an engine takes for a model, an adapter or a file: nothing that it would fetch is accepted.

Sources, in vLLM 0.33.0 and SGLang 0.5.23: vllm/config/model.py (`tokenizer`, `generation_config`, `hf_config_path`),
vllm/config/speculative.py (`model`), vllm/lora/utils.py (`get_adapter_absolute_path`), vllm/config/multimodal.py,
vllm/model_executor/models/ultravox.py (`audio_model_id`), vllm/entrypoints/chat_utils.py (`load_chat_template`);
sglang/srt/server_args.py and sglang/srt/arg_groups/fields.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.engine_sglang import SGLANG_FLAGS
from hermetic.api.reserved_flags import VLLM_FLAGS
from hermetic.engines import sglang, vllm
from hermetic.engines.sglang.tables import TABLES as SGLANG_TABLES
from hermetic.engines.vllm.tables import TABLES as VLLM_TABLES
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import Blocks
from hermetic.plan.gates import engine_flags_are_known
from tests.scenarios import SGLANG_IMAGE, VLLM_IMAGE, a_share_model
from tests.snapshots import a_snapshot, spec_of

IMAGES = {"vllm": VLLM_IMAGE, "sglang": SGLANG_IMAGE}
TABLES = {"vllm": VLLM_TABLES, "sglang": SGLANG_TABLES}
NEWEST = {"vllm": "0.33.0", "sglang": "0.5.23"}
ALLOWED = {"vllm": vllm.ALLOWED.flags, "sglang": sglang.ALLOWED.flags}

# (engine, arguments with {} for the name of a model or adapter)
MODELS: list[tuple[str, list[str]]] = [
    ("vllm", ["--tokenizer", "{}"]),
    ("vllm", ["--tokenizer={}"]),
    ("vllm", ["--generation-config", "{}"]),
    ("vllm", ["--generation-config={}"]),
    ("vllm", ["--generation_config={}"]),
    ("vllm", ["--generation-c={}"]),
    ("vllm", ["--spec-model", "{}"]),
    ("vllm", ["--speculative-config", '{"method":"eagle3","model":"{}"}']),
    ("vllm", ["--speculative-config.model", "{}"]),
    ("vllm", ["-sc.model={}"]),
    ("vllm", ["--default-mm-loras", '{"audio":"{}"}']),
    ("vllm", ["--hf-overrides", '{"audio_model_id":"{}"}']),
    ("vllm", ["--hf-overrides", '{"text_config":{"_name_or_path":"{}"}}']),
    ("vllm", ["--hf-overrides.text_model_id", "{}"]),
    ("vllm", ["--hf_overrides.vision_config.tower={}"]),
    ("sglang", ["--speculative-draft-model-path", "{}"]),
    ("sglang", ["--speculative-draft-model-path={}"]),
    ("sglang", ["--speculative-draft-model={}"]),
]
REPOSITORIES = ("org/model", "meta-llama/Llama-3.2-1B", "a/b.c_d-e")

# Flags that fetch or name a model whatever their value: no value of them is accepted.
NEVER = {
    "vllm": (
        "--model",
        "--hf-config-path",
        "--revision",
        "--tokenizer-revision",
        "--code-revision",
        "--download-dir",
        "--io-processor-plugin",
        "--lora-modules",
        "--reasoning-parser-plugin",
        "--tool-parser-plugin",
        "--tool-server",
    ),
    "sglang": (
        "--model-path",
        "--tokenizer-path",
        "--revision",
        "--lora-paths",
        "--uno-lora-path",
        "--download-dir",
        "--speculative-token-map",
        "--speculative-draft-model-revision",
        "--json-model-override-args",
        "--tool-server",
        "--custom-weight-loader",
        "--remote-instance-weight-loader-backend",
        "--modelexpress-config",
    ),
}
# Files of the image or the weights; what is no file is refused or taken for a template by the engine, never fetched.
FILES = {
    "vllm": {"--chat-template", "--mm-encoder-fp8-scale-path"},
    "sglang": {"--chat-template", "--completion-template", "--speculative-ngram-external-corpus-path"},
}
MODEL_FLAGS = {
    "vllm": {"--tokenizer", "--generation-config", "--spec-model", "--default-mm-loras"} | {"--hf-overrides"},
    "sglang": {"--speculative-draft-model-path"},
}
# Settings, texts and routes: their descriptions name neither a file nor a model.
NEITHER = {
    "vllm": {
        "--allowed-headers",
        "--allowed-methods",
        "--allowed-origins",
        "--attention-backend",
        "--attention-config",
        "--aux-output-config",
        "--cohere-format",
        "--cpu-offload-params",
        "--custom-histogram-buckets",
        "--default-chat-template-kwargs",
        "--device-ids",
        "--diffusion-config",
        "--disable-access-log-for-endpoints",
        "--engram-config",
        "--eplb-config",
        "--fingerprint-value",
        "--ignore-patterns",
        "--ir-op-priority",
        "--kernel-config",
        "--kv-cache-dtype-skip-layers",
        "--limit-mm-per-prompt",
        "--lora-target-modules",
        "--mamba-backend",
        "--media-io-kwargs",
        "--mm-encoder-attn-backend",
        "--mm-processor-device",
        "--mm-processor-kwargs",
        "--model-impl",
        "--numa-bind-cpus",
        "--offload-params",
        "--override-attention-dtype",
        "--override-generation-config",
        "--pooler-config",
        "--pt-load-map-location",
        "--quantization",
        "--quantization-config",
        "--reasoning-config",
        "--reasoning-effort-map",
        "--response-role",
        "--root-path",
        "--show-hidden-metrics-for-version",
        "--sleep-preserve-parameter-names",
        "--structured-outputs-config",
        "--tokenizer-mode",
        "--watchdog-config",
    },
    "sglang": {
        "--constrained-json-whitespace-pattern",
        "--cuda-graph-config",
        "--default-chat-template-kwargs",
        "--dllm-algorithm",
        "--eplb-algorithm",
        "--extra-metric-labels",
        "--flashinfer-autotune-skip-ops",
        "--generation-tokens-buckets",
        "--hf-chat-template-name",
        "--hisparse-config",
        "--limit-mm-data-per-request",
        "--log-level",
        "--log-level-http",
        "--offload-mode",
        "--ple-offload-dir",
        "--prompt-tokens-buckets",
        "--radix-eviction-policy-config",
        "--speculative-draft-attention-backend",
        "--uvicorn-access-log-exclude-prefixes",
        "--weight-version",
    },
}


def refusal(engine: str, arguments: list[str], version: str = "") -> str:
    """The message of the first gate that refuses the arguments; "" where none does."""
    chosen = {"image": IMAGES[engine], "version": version or NEWEST[engine], "extraArgs": arguments}
    spec = spec_of(a_share_model(engine={engine: chosen}))
    for gate in (engine_flags_are_known, engine_settings_are_allowed):
        verdict = gate(spec, a_snapshot(policy=Configuration()))
        if isinstance(verdict, Blocks):
            return verdict.message
    return ""


def filled(arguments: list[str], name: str) -> list[str]:
    return [argument.replace("{}", name) for argument in arguments]


@pytest.mark.parametrize("repository", REPOSITORIES)
@pytest.mark.parametrize(("engine", "arguments"), MODELS, ids=str)
def test_a_repository_is_refused_with_the_fix(engine: str, arguments: list[str], repository: str) -> None:
    message = refusal(engine, filled(arguments, repository))
    assert f"'{repository}', which the engine takes for " in message
    assert " to fetch" in message
    assert "stage " in message
    assert "absolute path" in message


@pytest.mark.parametrize(("engine", "arguments"), MODELS, ids=str)
def test_the_fix_of_a_repository_is_accepted(engine: str, arguments: list[str]) -> None:
    for folder in ("/weights/draft", "/opt/models/draft", "/weights"):
        assert refusal(engine, filled(arguments, folder)) == ""


@pytest.mark.parametrize("path", ["/tls/tls.key", "/proc/self/environ", "/weights/../tls", "/run/secrets/x"])
@pytest.mark.parametrize(("engine", "arguments"), MODELS, ids=str)
def test_a_folder_that_holds_no_model_is_refused(engine: str, arguments: list[str], path: str) -> None:
    assert "here" in refusal(engine, filled(arguments, path))


@pytest.mark.parametrize("name", ["https://hub.example/org/model", "hf://org/model", "s3://bucket/model"])
@pytest.mark.parametrize(("engine", "arguments"), MODELS, ids=str)
def test_a_url_is_refused_when_the_manifest_is_read(engine: str, arguments: list[str], name: str) -> None:
    with pytest.raises(ValidationError, match="URL"):
        refusal(engine, filled(arguments, name))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--generation-config", "auto"],
        ["--generation-config=vllm"],
        ["--spec-model", "ngram"],
        ["--speculative-config", '{"model":"[ngram]","num_speculative_tokens":3}'],
        ["--hf-overrides", '{"architectures":["Qwen3ForSequenceClassification"],"is_original_qwen3_reranker":true}'],
        ["--hf-overrides", '{"rope_scaling":{"rope_type":"yarn","factor":4.0}}'],
        ["--reasoning-config", '{"reasoning_end_str":"</think>"}'],
    ],
    ids=str,
)
def test_words_and_settings_that_name_no_model_are_accepted(arguments: list[str]) -> None:
    assert refusal("vllm", arguments) == ""


@pytest.mark.parametrize("word", ["auto", "vllm", "ngram", "[ngram]"])
def test_a_word_of_one_flag_is_a_repository_for_another(word: str) -> None:
    """The Hub has repositories without an owner, such as 'gpt2'."""
    assert " to fetch" in refusal("vllm", ["--tokenizer", word])
    other = "--spec-model" if word in ("auto", "vllm") else "--generation-config"
    assert " to fetch" in refusal("vllm", [other, word])


def test_the_message_offers_the_words_of_the_flag() -> None:
    assert refusal("vllm", ["--generation-config", "org/x"]).endswith("'/weights/draft', or give auto or vllm")


@pytest.mark.parametrize(("engine", "flag"), [(engine, flag) for engine in NEVER for flag in NEVER[engine]])
def test_a_flag_that_is_never_accepted_is_refused(engine: str, flag: str) -> None:
    for value in ("org/model", "/weights/model"):
        with pytest.raises(ValidationError, match="reserved flag"):
            refusal(engine, [flag, value])


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_release_refuses_repositories(engine: str) -> None:
    suffix = ".0" if engine == "vllm" else ""
    for release in TABLES[engine].supported:
        table = TABLES[engine].table_for(release)
        for flag in sorted(MODEL_FLAGS[engine] & table.flags.keys()):
            value = '{"audio_model_id":"org/x"}' if flag == "--hf-overrides" else "org/x"
            message = refusal(engine, [f"{flag}={value}"], f"{release}{suffix}")
            assert message, f"{flag} of {engine} {release}"


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_every_flag_that_takes_a_text_is_in_one_of_the_tables(engine: str) -> None:
    reviewed, reserved = ALLOWED[engine], {"vllm": VLLM_FLAGS, "sglang": SGLANG_FLAGS}[engine]
    texts = {
        name
        for release in TABLES[engine].supported
        for name, flag in TABLES[engine].table_for(release).flags.items()
        if flag.value != "none" and not flag.choices and flag.type in ("text", "json", "object")
    }
    bounded = reviewed.values.keys() | {name.partition(".")[0] for name in reviewed.keys}
    open_values = (texts & reviewed.allowed) - bounded - reserved.keys()
    sorted_into = (FILES[engine], MODEL_FLAGS[engine], NEITHER[engine])
    unsorted = [name for name in sorted(open_values) if sum(name in names for names in sorted_into) != 1]
    assert not unsorted, f"{unsorted}: read what the value may name, then add the flag to one of the tables"


SGL = [
    # (name, what the message says to write); a name of its own in `_DEPRECATED_ENVS` of srt/environ.py goes first.
    ("SGL_LOG_MS", "write 'SGLANG_LOG_MS' with this value"),
    ("SGL_ENABLE_JIT_DEEPGEMM", "write 'SGLANG_ENABLE_JIT_DEEPGEMM' with this value"),
    ("SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK", "'SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK' with the opposite value"),
    ("SGL_GC_LOG", "write 'SGLANG_LOG_GC' with this value"),
    ("SGL_QUEUED_TIMEOUT_MS", "write 'SGLANG_REQ_WAITING_TIMEOUT' with the number of seconds"),
]


@pytest.mark.parametrize("release", SGLANG_TABLES.supported)
@pytest.mark.parametrize(("name", "instead"), SGL)
def test_a_variable_with_the_old_prefix_of_sglang_is_told_with_its_successor(
    name: str, instead: str, release: str
) -> None:
    engine = {"image": SGLANG_IMAGE, "version": release, "extraEnv": [{"name": name, "value": "1"}]}
    verdict = engine_settings_are_allowed(spec_of(a_share_model(engine={"sglang": engine})), a_snapshot())
    assert isinstance(verdict, Blocks)
    assert f"holds '{name}', which SGLang {release} does not read" in verdict.message
    assert instead in verdict.message
    assert "engineSettings" not in verdict.message


@pytest.mark.parametrize("name", ["SGL_PLUGINS", "SGL_EXTERNAL_MODEL_PACKAGE", "SGL_HOST_IP", "SGL_USE_MODELSCOPE"])
def test_the_old_prefix_opens_no_reserved_variable(name: str) -> None:
    engine = {"image": SGLANG_IMAGE, "version": "0.5.23", "extraEnv": [{"name": name, "value": "1"}]}
    with pytest.raises(ValidationError, match="reserved variable"):
        spec_of(a_share_model(engine={"sglang": engine}))
    with pytest.raises(ValidationError, match="reserved variable"):
        Configuration.model_validate(
            {"engineSettings": [{"engine": "sglang", "variables": [name], "namespaces": ["*"]}]}
        )


@pytest.mark.parametrize("name", ["SGL_LOG_MS", "SGL_TEST_RETRACT"])
def test_the_configuration_allows_variables_by_their_present_name(name: str) -> None:
    line = {"engine": "sglang", "variables": [name], "namespaces": ["*"]}
    with pytest.raises(ValidationError, match=f"write '{name.replace('SGL_', 'SGLANG_')}'"):
        Configuration.model_validate({"engineSettings": [line]})
    present = {**line, "variables": [name.replace("SGL_", "SGLANG_")]}
    assert Configuration.model_validate({"engineSettings": [present]})

"""What is said about a flag or a variable that an engine would not take: one cause, and what to write instead."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import launch
from hermetic.engines.vllm import VLLM
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS, Blocks
from hermetic.plan.gates import engine_flags_are_known
from tests.scenarios import NIM_IMAGE, SGLANG_IMAGE, VLLM_IMAGE, a_nim_model, a_share_model, changed
from tests.snapshots import a_snapshot, spec_of

IMAGES = {"vllm": VLLM_IMAGE, "sglang": SGLANG_IMAGE}


def spec(
    *arguments: str, engine: str = "vllm", version: str = "0.33.0", variables: dict[str, str] | None = None
) -> ModelDeploymentSpec:
    chosen = {
        "image": IMAGES[engine],
        "version": version,
        "extraArgs": list(arguments),
        "extraEnv": [{"name": name, "value": value} for name, value in (variables or {}).items()],
    }
    return spec_of(a_share_model(engine={engine: chosen}))


def nim_spec(*arguments: str, line: str = "2.1", **variables: str) -> ModelDeploymentSpec:
    engine = {
        "image": NIM_IMAGE,
        "line": line,
        "extraArgs": list(arguments),
        "extraEnv": [{"name": name, "value": value} for name, value in variables.items()],
    }
    return spec_of(changed(a_nim_model(), engine={"nim": engine}))


def message(deployment: ModelDeploymentSpec) -> str:
    """What the two gates say; "" where both let the deployment pass."""
    gates = (engine_flags_are_known, engine_settings_are_allowed)
    verdicts = [gate(deployment, a_snapshot()) for gate in gates]
    return " | ".join(verdict.message for verdict in verdicts if isinstance(verdict, Blocks))


# Sources: the deprecation messages of the releases, named beside each entry of dropped.toml.
DROPPED = [
    (("--task", "embed"), "releases from 0.13 on do not have it; write '--runner generate'"),
    (("--rope-scaling", "{}"), "write '--hf-overrides' with the value '{\"rope_scaling\": …}'"),
    (("--rope_scaling={}",), "write '--hf-overrides'"),
    (("--enable-reasoning",), "'--reasoning-parser NAME' alone switches reasoning on"),
    (("--override-pooler-config", "{}"), "write '--pooler-config' with this value"),
    (("--guided-decoding-backend", "xgrammar"), "'--structured-outputs-config.backend'"),
    (("--calculate-kv-scales",), "releases from 0.28 on do not have it"),
    (("--swap-space", "4"), "preempted requests are computed again"),
]


@pytest.mark.parametrize(
    ("arguments", "advice"), DROPPED, ids=lambda value: value[0] if isinstance(value, tuple) else ""
)
def test_a_flag_that_the_release_dropped_is_told_with_its_successor(arguments, advice):
    objection = message(spec(*arguments))
    assert advice in objection
    assert "did you mean" not in objection


def test_a_flag_is_told_as_dropped_only_by_releases_that_dropped_it():
    assert message(spec("--calculate-kv-scales", version="0.27.0")) == ""
    assert "releases from 0.28 on" in message(spec("--calculate-kv-scales", version="0.28.0"))


def test_a_flag_of_a_later_release_is_told_with_that_release():
    assert "vLLM 0.29 is the first release that has it" in message(spec("--max-num-queued-reqs", "8", version="0.24.0"))


def test_several_unknown_flags_are_told_each_with_its_own_cause():
    objection = message(spec("--task", "embed", "--swap-space", "4", "--no-such-thing"))
    assert objection.count("does not know") == 3
    assert objection.count("do not have it") == 2


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("VLLM_ATTENTION_BACKEND", "write '--attention-backend' with this value in `extraArgs`"),
        ("VLLM_USE_V1", "the engine that it chose is the only one"),
        ("VLLM_USE_FLASHINFER_MOE_FP4", "write '--moe-backend'"),
        ("VLLM_USE_FLASHINFER_MOE_FP8", "write '--moe-backend flashinfer_trtllm'"),
        ("VLLM_FLASHINFER_MOE_BACKEND", "flashinfer_trtllm for 'latency'"),
        ("VLLM_RPC_TIMEOUT", "nothing read it any more"),
        ("VLLM_USE_DEEP_GEMM_E8M0_HOPPER", "nothing took its place"),
    ],
)
def test_a_variable_that_the_release_dropped_is_told_with_its_successor_and_not_as_unreviewed(name, advice):
    objection = message(spec(variables={name: "1"}))
    assert f"holds '{name}', which vLLM 0.33.0 does not read: releases from" in objection
    assert advice in objection
    for misleading in ("did you mean", "engineSettings", "reviewed"):
        assert misleading not in objection


def test_a_variable_of_a_later_release_is_told_with_that_release():
    objection = message(spec(version="0.24.0", variables={"VLLM_USE_DIRECT_DCP_A2A": "1"}))
    assert "vLLM 0.24.0 does not read: vLLM 0." in objection
    assert "is the first release that has it" in objection


def test_a_dropped_variable_of_a_nim_is_told_with_its_successor():
    objection = message(nim_spec(VLLM_ATTENTION_BACKEND="FLASHINFER"))
    assert "which vLLM from 0.16 on does not read; write '--attention-backend'" in objection


def test_a_dropped_name_of_sglang_is_told_with_its_successor():
    sglang = {"engine": "sglang", "version": "0.5.23"}
    assert "write '--incremental-streaming-output'" in message(spec("--stream-output", **sglang))
    assert "write '--cuda-graph-bs-decode' with this value" in message(spec("--cuda-graph-bs", "1", **sglang))
    assert "'SGLANG_LOG_GC'" in message(spec(variables={"SGLANG_GC_LOG": "1"}, **sglang))


@pytest.mark.parametrize(
    "arguments",
    [
        ["-cc.mode=3"],
        ["-cc.mode", "3"],
        ["-cc.pass_config.fuse_rope_kvcache=True"],
        ["-cc.cudagraph_capture_sizes+", "1,2,4"],
        ["-cc", '{"mode": 3}'],
        ['-cc={"mode": 3}'],
        ["-ac.backend", "FLASHINFER"],
        ["-sc.method", "ngram", "-sc.num_speculative_tokens=4"],
        ["--compilation-config.mode=3"],
        ["--compilation_config.pass_config.fuse_rope_kvcache", "true"],
        ["-O3"],
        ["-O=2"],
        ["-O", "1"],
        ["--optimization-level", "0"],
    ],
)
def test_documented_short_and_dotted_spellings_are_accepted(arguments):
    """`FlexibleArgumentParser.parse_args` of 0.24.0 to 0.33.0 reads '-cc.mode=3' as '-cc {"mode": 3}'."""
    for version in ("0.24.0", "0.33.0"):
        assert message(spec(*arguments, version=version)) == ""


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["-cc.backend=evil.module.Class"], "sets the key 'backend', which is not on the reviewed list"),
        (["-cc.inductor_compile_config.x=1"], "sets the key 'inductor_compile_config'"),
        (["-cc.mode"], "without a value"),
        (["-cc.mode", "--enforce-eager"], "value"),
        (["-sc.model=org/repo"], "which the engine takes for a model to fetch"),
        (["-sc.method=custom_class"], "imports code by its name"),
        (["-sc.model", "/etc/../tls"], "must not contain '..'"),
        (["-cc.cache_dir=/tls"], "sets the key 'cache_dir'"),
        (["-O4"], "knows: 0, 1, 2, 3"),
        (["-O.mode=3"], "--optimization-level takes no keys"),
        (["-O"], "without the value"),
    ],
)
def test_short_and_dotted_spellings_pass_the_same_lists_as_long_ones(arguments, advice):
    assert advice in message(spec(*arguments))


@pytest.mark.parametrize(
    "argument",
    ["-sc.trust_remote_code=true", "-sc.code_revision=x", "-cc.x.plugin=y", "-tp.x=1", "-pp.x", "-n.x", "-dpa.x=1"],
)
def test_short_dotted_spellings_of_what_is_reserved_are_refused_by_the_api_server_s_rules(argument):
    with pytest.raises(ValidationError, match=r"must not (be a reserved flag|set a key)"):
        spec(argument)


@pytest.mark.parametrize(
    ("arguments", "version", "advice"),
    [
        (["--tool-call-parser", "hermez"], "0.33.0", "did you mean 'hermes'?"),
        (["--tool-call-parser", "auto"], "0.33.0", "has 'auto' for --tool-call-parser"),
        (["--reasoning-parser", "qwen33"], "0.33.0", "did you mean 'qwen3'?"),
        (["--reasoning-parser=kimi_k3"], "0.24.0", "has 'kimi_k3' for --reasoning-parser"),
        (["--reasoning-parser=kimi_k3"], "0.33.0", ""),
        (["--tool-call-parser", "hermes", "--enable-auto-tool-choice"], "0.24.0", ""),
        (["--reasoning-parser", "qwen3"], "0.24.0", ""),
    ],
)
def test_a_parser_is_checked_against_the_registry_of_the_release(arguments, version, advice):
    """`validate_api_server_args` compares with the registries of vllm/tool_parsers and vllm/reasoning."""
    objection = message(spec(*arguments, version=version))
    assert advice in objection
    assert bool(advice) is bool(objection)


def test_a_command_line_in_one_item_is_told_to_be_split():
    objection = message(spec("--tool-call-parser hermes --enable-auto-tool-choice"))
    assert "write each word as an item of its own, '--tool-call-parser' first" in objection


def test_quotes_of_a_shell_around_json_are_named():
    objection = message(spec("--limit-mm-per-prompt", "'{\"image\": 2}'"))
    assert "without the quotes around it: no shell takes them off" in objection


@pytest.mark.parametrize(
    ("argument", "advice"),
    [
        ("--max-model-len", "set spec.engine.vllm.maxModelLength"),
        ("-tp", "set spec.engine.vllm.tensorParallelSize"),
        ("--served-model-name=x", "set spec.model.name"),
        ("--kv_cache_dtype", "set spec.engine.vllm.kvCacheDtype"),
        ("--port", "set spec.endpoint.port"),
        ("--middleware=x.Y", "names a class to import"),
        ("--hf-token=x", "would let the pod fetch"),
    ],
)
def test_a_reserved_flag_is_told_with_its_own_field_or_reason(argument, advice):
    with pytest.raises(ValidationError) as refused:
        spec(argument)
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    "arguments", [["--gpu-memory-utilization", "0.9"], ["--kv-cache-dtype=fp8"], ["--device-memory-utilization=0.9"]]
)
def test_settings_of_a_nim_without_a_field_may_be_given_as_arguments(arguments):
    assert engine_settings_are_allowed(nim_spec(*arguments), a_snapshot()) == HOLDS
    with pytest.raises(ValidationError, match="reserved flag"):
        spec(*arguments)


def test_reserved_flags_of_a_nim_are_told_with_its_own_fields():
    with pytest.raises(ValidationError, match=r"set spec\.engine\.nim\.maxModelLength"):
        nim_spec("--max-model-len=4096")


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        (["--config-format", "mistral", "--tokenizer-mode", "mistral", "--load-format", "mistral"], True),
        (["--config_format=hf"], True),
        (["--config-format", "someones_plugin"], False),
        (["--logits_processors", "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor"], True),
        (["--logits-processors", "evil:Processor"], False),
        (["--logits-processors", "vllm.model_executor.models.deepseek_ocr:NGramPerReqLogitsProcessor", "os:x"], False),
    ],
)
def test_values_that_name_code_of_the_engine_itself_are_accepted(arguments, accepted):
    assert (message(spec(*arguments)) == "") is accepted


@pytest.mark.parametrize(
    ("argument", "reserved"), [("--tool-call-parser-plugin", "--tool-parser-plugin"), ("--usp", "--uds")]
)
def test_a_reserved_flag_is_never_suggested(argument, reserved):
    objection = message(spec(argument))
    assert "does not know" in objection
    assert reserved not in objection


def test_nothing_is_suggested_for_a_flag_that_was_reviewed_and_refused():
    objection = message(spec("--additional-config", "{}"))
    assert "names code" in objection
    assert "did you mean" not in objection


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("VLLM_ENGINE_READY_TIMEOUT_S", "set spec.startupBudgetSeconds"),
        ("VLLM_API_KEY", "set spec.endpoint.apiKey"),
        ("MY_TOKEN", "accepted in no form"),
        ("VLLM_PLUGINS", "would open a second way into the pod"),
    ],
)
def test_a_reserved_variable_is_told_with_its_own_field_or_reason(name, advice):
    with pytest.raises(ValidationError) as refused:
        spec(variables={name: "x"})
    assert f"{name}: " in str(refused.value)
    assert advice in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        (["--default-mm-loras", '{"audio": "/weights/audio"}'], True),
        (["--default-mm-loras.audio=/weights/audio"], True),
        (["--default-mm-loras", '{"audio": "org/audio"}'], False),
        (["--default-mm-loras.audio", "org/audio"], False),
        (["--default-mm-loras.audio", "/weights/../tls"], False),
        (["--default-mm-loras.audio", "org/x=/weights/audio"], False),
        (["--default-mm-loras", '{"path": "/weights/audio", "audio": "org/audio"}'], False),
        (["--default-mm-loras", '["/weights/audio"]'], False),
    ],
)
def test_adapters_are_named_by_their_folders_and_never_fetched(arguments, accepted):
    """Offline, vLLM resolves a name that is no folder by the Hub and ends after the model is loaded."""
    assert (message(spec(*arguments)) == "") is accepted


def test_the_longest_context_that_fits_may_be_asked_for_as_one_item():
    for version in ("0.24.0", "0.33.0"):
        assert message(spec("--max-model-len=auto", version=version)) == ""
    assert "--max-model-len=auto" in launch(spec("--max-model-len=auto")).args


@pytest.mark.parametrize(
    "arguments",
    [["--max-model-len", "auto"], ["--max_model_len=auto"], ["--max-model-len=-1"], ["--max-model-len=8192"]],
)
def test_another_spelling_of_the_context_is_refused_with_the_field_and_the_accepted_item(arguments):
    with pytest.raises(ValidationError, match=r"maxModelLength, or give '--max-model-len=auto' as one item"):
        spec(*arguments)


def test_the_context_is_given_once():
    engine = {"image": VLLM_IMAGE, "version": "0.33.0", "maxModelLength": 8192, "extraArgs": ["--max-model-len=auto"]}
    with pytest.raises(ValidationError, match="must not set both `maxModelLength` and"):
        spec_of(a_share_model(engine={"vllm": engine}))


def test_memory_of_an_open_context_is_not_computed():
    (clause,) = VLLM.serving(spec("--max-model-len=auto")).not_computed
    assert "--max-model-len" in clause


def test_a_nim_takes_its_context_from_the_field_only():
    with pytest.raises(ValidationError, match=r"set spec\.engine\.nim\.maxModelLength"):
        nim_spec("--max-model-len=auto")

"""How an SGLang server is started by every release: exact arguments, exact environment, nothing that calls out."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.engine_reasons import EngineReason
from hermetic.api.engine_sglang import RESERVED_OF_SGLANG, SGLANG_FLAGS
from hermetic.api.reserved_flags import ENVIRONMENT, reserved_variable
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.allow_list import COMMON, WHY
from hermetic.engines.failure_signatures import diagnose
from hermetic.engines.launch import keeping_first_errors
from hermetic.engines.registry import engine_of, launch
from hermetic.engines.sglang import ALLOWED
from hermetic.engines.sglang.tables import TABLES
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS
from hermetic.plan.gates import engine_flags_are_known
from tests.renderings import RENDERINGS
from tests.scenarios import SGLANG_IMAGE, an_sglang_model, changed
from tests.snapshots import a_snapshot, rendered, spec_of

EVERY = [TABLES.table_for(release) for release in TABLES.supported]
by_release = pytest.mark.parametrize("table", EVERY, ids=lambda table: table.version)
SGLANG_MANIFESTS = {name: m for name, m in RENDERINGS.items() if "sglang" in m["spec"]["engine"]}
every_manifest = pytest.mark.parametrize("manifest", SGLANG_MANIFESTS.values(), ids=list(SGLANG_MANIFESTS))


def a_model(*arguments: str, version: str = "0.5.23", env: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in (env or {}).items()]
    engine = {"image": SGLANG_IMAGE, "version": version, "extraArgs": list(arguments), "extraEnv": variables}
    return an_sglang_model(**{"engine": {"sglang": engine}, **spec})


def words_of(manifest: dict[str, Any]) -> list[str]:
    return list(launch(spec_of(manifest)).args)


def literals(manifest: dict[str, Any]) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in launch(spec_of(manifest)).env if "value" in variable}


def refusal(manifest: dict[str, Any], **policy: Any) -> str:
    """ "" when the gates let it pass, else the message of the first that does not."""
    snapshot = a_snapshot(policy=Configuration.model_validate(policy))
    for gate in (engine_flags_are_known, engine_settings_are_allowed):
        verdict = gate(spec_of(manifest), snapshot)
        if verdict != HOLDS:
            return f"{verdict.reason.name}: {verdict.message}"
    return ""


# ---------------------------------------------------------------------- releases


def test_the_three_newest_releases_have_a_table():
    assert TABLES.supported == ("0.5.21", "0.5.22", "0.5.23")


@pytest.mark.parametrize("version", ["0.5.22", "v0.5.22", "0.5.22.post3"])
def test_a_post_release_reads_the_table_of_its_release(version):
    assert TABLES.table_for(version).version == "0.5.22"


@pytest.mark.parametrize("version", ["0.5.20", "0.5.24", "0.4.10", "0.5.2", "0.5.230", "1.0.0"])
def test_an_unknown_release_is_refused_with_the_known_ones(version):
    message = refusal(a_model(version=version))
    assert message.startswith(
        f"ENGINE_VERSION_UNSUPPORTED: `engine.sglang.version` '{version}' is not supported; use a"
    )
    assert message.endswith("release of 0.5.21, 0.5.22, 0.5.23")


@by_release
def test_every_flag_of_a_release_is_reviewed_exactly_once(table):
    judged = [ALLOWED.flags.allowed, frozenset(ALLOWED.flags.refused), frozenset(SGLANG_FLAGS)]
    for flag in table.flags:
        assert sum(flag in names for names in judged) == 1, f"{flag} of SGLang {table.version}: judge it"


def test_no_list_names_what_no_release_knows():
    spellings = {spelling for table in EVERY for flag in table.flags.values() for spelling in flag.spellings}
    assert ALLOWED.flags.allowed | ALLOWED.flags.refused.keys() <= spellings
    assert SGLANG_FLAGS.keys() <= spellings
    listed = {name for table in EVERY for name in ALLOWED.variables.read_by(table).allowed}
    assert listed
    assert not [name for name in listed if reserved_variable(name)]


def test_what_is_said_of_values_is_of_allowed_flags():
    assert set(ALLOWED.flags.paths) | set(ALLOWED.flags.values) <= ALLOWED.flags.allowed
    assert set(ALLOWED.flags.refused.values()) <= set(WHY)


@by_release
def test_whole_flags_that_begin_a_reserved_one_are_excepted_and_nothing_else_is(table):
    spellings = {spelling for flag in table.flags.values() for spelling in flag.spellings}
    begin = {s for s in spellings if s not in SGLANG_FLAGS and any(r.startswith(s) for r in SGLANG_FLAGS)}
    harmless = {
        spelling for name in ALLOWED.flags.allowed if name in table.flags for spelling in table.flags[name].spellings
    }
    assert begin <= set(RESERVED_OF_SGLANG.whole) <= harmless


# ---------------------------------------------------------------------- exact values


def test_short_form_starts_the_server_with_exactly_these_arguments():
    started = launch(spec_of(an_sglang_model()))
    assert started.command == keeping_first_errors("sglang", "serve", "--model-type", "llm")
    assert list(started.args) == [
        "--model-path", "/weights",
        "--served-model-name", "meta/llama-3.1-8b-instruct",
        "--host", "0.0.0.0",
        "--allowed-media-domains", "255.255.255.255",
        "--port", "8000",
        "--tp-size", "1",
    ]  # fmt: skip


def test_what_the_spec_says_reaches_the_engine():
    engine_arguments = words_of(RENDERINGS["sglang-guarded"])
    for flag, value in {
        "--tp-size": "2", "--pp-size": "2", "--context-length": "32768", "--mem-fraction-static": "0.85",
        "--kv-cache-dtype": "fp8_e4m3", "--ssl-keyfile": "/tls/tls.key", "--ssl-certfile": "/tls/tls.crt",
        "--port": "8443", "--chunked-prefill-size": "4096",
    }.items():  # fmt: skip
        assert engine_arguments[engine_arguments.index(flag) + 1] == value
    assert "--enable-ssl-refresh" in engine_arguments
    assert engine_arguments[-1] == "--log-requests"


@by_release
@every_manifest
def test_every_rendered_flag_is_known_to_the_release_with_the_values_it_takes(table, manifest):
    sglang = {**manifest["spec"]["engine"]["sglang"], "version": table.version}
    engine_arguments = words_of(changed(manifest, engine={"sglang": sglang}))
    for position, word in enumerate(engine_arguments):
        if word.startswith("--"):
            flag = table.flag(word)
            assert flag is not None, word
            values = [w for w in engine_arguments[position + 1 : position + 2] if not w.startswith("--")]
            assert len(values) == (0 if flag.value == "none" else 1)
            assert not flag.choices or set(values) <= set(flag.choices)
    rendered_names = {name for name in literals(changed(manifest, engine={"sglang": sglang})) if "SGLANG" in name}
    assert rendered_names <= table.environment


@by_release
def test_word_of_a_user_cannot_become_a_value_of_a_flag_of_ours(table):
    for endpoint in ({}, {"tls": {"secretName": "s"}}):
        engine_arguments = words_of(a_model(version=table.version, endpoint=endpoint))
        last = next(word for word in reversed(engine_arguments) if word.startswith("--"))
        assert table.flags[last].value in ("none", "one")


def test_environment_is_exactly_the_offline_one():
    cache = "/home/hermetic/.cache"
    assert literals(an_sglang_model()) == {
        "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1", "FLASHINFER_NO_DOWNLOAD": "1",
        "FLASHINFER_CUBINS_REPOSITORY": "/nonexistent", "SGLANG_USE_MODELSCOPE": "0",
        "SGLANG_ENABLE_HEALTH_ENDPOINT_GENERATION": "0", "SGLANG_WARMUP_TIMEOUT": "1200",
        "SGLANG_CACHE_DIR": f"{cache}/sglang", "HOME": "/home/hermetic", "USER": "hermetic", "LOGNAME": "hermetic",
        "TMPDIR": "/tmp", "XDG_CACHE_HOME": cache, "XDG_CONFIG_HOME": "/home/hermetic/.config",
        "HF_HOME": "/home/hermetic/hf", "TRITON_CACHE_DIR": f"{cache}/triton", "CUDA_CACHE_PATH": f"{cache}/cuda",
        "FLASHINFER_WORKSPACE_BASE": "/home/hermetic", "DG_JIT_CACHE_DIR": f"{cache}/deep_gemm",
        "TORCHINDUCTOR_CACHE_DIR": f"{cache}/torchinductor",
        "NUMBA_CACHE_DIR": f"{cache}/numba", "OUTLINES_CACHE_DIR": f"{cache}/outlines",
    }  # fmt: skip


@every_manifest
def test_every_variable_of_ours_is_reserved_and_named_once(manifest):
    variable_names = {variable["name"] for variable in manifest["spec"]["engine"]["sglang"].get("extraEnv", ())}
    names = [variable["name"] for variable in launch(spec_of(manifest)).env]
    assert len(names) == len(set(names))
    assert all(reserved_variable(name) for name in set(names) - variable_names)
    assert {"SGLANG_HOST_IP", "SGLANG_PLUGINS", "SGLANG_EXTERNAL_MODEL_PACKAGE"} <= ENVIRONMENT.keys()


def test_no_connection_can_be_opened_to_the_one_media_domain():
    address = "255.255.255.255"
    with socket.socket() as connection, pytest.raises(OSError, match=r"unreachable|denied|not permitted"):
        connection.connect((address, 80))


# ---------------------------------------------------------------------- keys


def container(manifest: dict[str, Any]) -> dict[str, Any]:
    return rendered(manifest)["Deployment"]["spec"]["template"]["spec"]["containers"][0]


@every_manifest
def test_routes_that_change_the_engine_need_a_key_that_is_the_uid_of_the_pod(manifest):
    engine = container(manifest)
    assert "--admin-api-key=$(SGLANG_SERVER_ADMIN_KEY)" in engine["args"]
    key = next(v for v in engine["env"] if v["name"] == "SGLANG_SERVER_ADMIN_KEY")
    assert key["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.uid"


def test_the_api_key_is_named_and_never_read():
    engine = container(RENDERINGS["sglang-guarded"])
    assert engine["args"][0] == "--api-key=$(SGLANG_SERVER_API_KEY)"
    key = next(v for v in engine["env"] if v["name"] == "SGLANG_SERVER_API_KEY")
    assert key["valueFrom"] == {"secretKeyRef": {"name": "sglang-key", "key": "token"}}
    assert not [word for word in container(an_sglang_model())["args"] if "--api-key" in word]


def test_a_user_s_own_dollar_is_not_expanded():
    engine_arguments = container(a_model("--weight-version=$(SGLANG_SERVER_ADMIN_KEY)"))["args"]
    assert engine_arguments[-1] == "--weight-version=$$(SGLANG_SERVER_ADMIN_KEY)"


# ---------------------------------------------------------------------- what a tenant may say


@pytest.mark.parametrize(
    "arguments",
    [
        ("--chunked-prefill-size", "4096"),
        ("--cuda-graph-prefill-max-context", "64k"),
        ("--attention-backend=fa3",),
        ("--uvicorn-access-log-exclude-prefixes",),
        ("--uvicorn-access-log-exclude-prefixes", "/health", "/metrics"),
        ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/weights/draft"),
        ("--chat-template", "/weights/chat.jinja"),
        ("--ep", "2"),
    ],
)
def test_reviewed_settings_pass(arguments):
    assert refusal(a_model(*arguments, version="0.5.23")) == ""


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--no-such-flag",), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--enable-prefix-caching",), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--chunked_prefill_size", "1"), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("stray",), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--chunked-prefill-size", "many"), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--chunked-prefill-size",), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--cuda-graph-prefill-max-context", "1.5Ki"), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--attention-backend", "none-of-them"), SpecReason.ENGINE_FLAG_UNKNOWN),
        (("--init-expert-location", "/weights/x.pt"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--preferred-sampling-params", "{}"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--deepep-config", "{}"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--moe-a2a-backend", "mooncake"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--speculative-algorithm", "MY_PLUGIN"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--speculative-draft-model-path", "org/draft"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--chat-template", "/proc/self/environ"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--chat-template", "10.0.0.7:80"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
        (("--ple-offload-dir", "/weights/out"), SpecReason.ENGINE_SETTING_NOT_ALLOWED),
    ],
)
def test_other_settings_are_refused_with_their_reason(arguments, reason):
    assert refusal(a_model(*arguments)).startswith(reason.name)


def test_a_format_that_the_release_does_not_know_is_refused():
    engine = {"image": SGLANG_IMAGE, "version": "0.5.23", "kvCacheDtype": "fp9"}
    assert "`engine.sglang.kvCacheDtype` has 'fp9'" in refusal(an_sglang_model(engine={"sglang": engine}))


@pytest.mark.parametrize("flag", sorted(SGLANG_FLAGS.keys() - set(RESERVED_OF_SGLANG.except_for)))
def test_every_reserved_flag_is_refused_in_full_with_a_value_and_abbreviated(flag):
    assert RESERVED_OF_SGLANG.reached(flag)
    assert RESERVED_OF_SGLANG.reached(f"{flag}=x")
    assert RESERVED_OF_SGLANG.reached(flag.replace("-", "_").replace("__", "--", 1))
    with pytest.raises(ValidationError, match="reserved flag"):
        spec_of(a_model(flag))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SGLANG_LOG_REQUEST_HEADERS", "x"),
        ("SGLANG_TEST_RETRACT", "1"),
        ("VLLM_LOGGING_LEVEL", "INFO"),
        ("LANG", "a:/b"),
    ],
)
def test_variables_that_are_not_reviewed_are_refused(name, value):
    assert refusal(a_model(env={name: value})).startswith("ENGINE_SETTING_NOT_ALLOWED")


def test_reviewed_variables_pass_and_those_of_the_configuration_too():
    assert refusal(a_model(env={"SGLANG_LOG_MS": "1", "NCCL_DEBUG": "WARN"})) == ""
    allowed = {"engine": "sglang", "variables": ["SGLANG_TEST_RETRACT"], "namespaces": ["*"]}
    assert refusal(a_model(env={"SGLANG_TEST_RETRACT": "1"}), engineSettings=[allowed]) == ""
    other = {**allowed, "engine": "vllm"}
    assert refusal(a_model(env={"SGLANG_TEST_RETRACT": "1"}), engineSettings=[other]) != ""


@pytest.mark.parametrize(
    "name", ["SGLANG_PLUGINS", "SGLANG_HTTP_SERVER_APP_PATH", "SGLANG_SERVER_ADMIN_KEY", "EXA_API_KEY"]
)
def test_variables_that_load_code_or_hold_keys_are_accepted_in_no_form(name):
    with pytest.raises(ValidationError, match="reserved variable"):
        spec_of(a_model(env={name: "x"}))


def test_common_variables_hold_none_of_sglang():
    assert not [name for name in COMMON.variables.allowed if name.startswith("SGLANG")]


# ---------------------------------------------------------------------- last words

LAST_WORDS = {
    "sglang serve: error: unrecognized arguments: --enable-prefix-caching": EngineReason.ENGINE_ARGUMENTS_REFUSED,
    "ValueError: Warning: User-specified context_length (300000) is greater than the derived context_length (131072). "
    "This may lead to incorrect model outputs": EngineReason.CONTEXT_TOO_LONG,
    "AssertionError: 28 is not divisible by 8": EngineReason.TENSOR_PARALLEL_INVALID,
    "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.": EngineReason.GPU_MEMORY_TOO_SMALL,
    "ValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.5.": (
        EngineReason.GPU_MEMORY_TOO_SMALL
    ),
    "RuntimeError: The memory capacity is unbalanced. "
    "Some GPUs may be occupied by other processes. ": EngineReason.GPU_BUSY,
    "RuntimeError: Cannot find any model weights with `/weights`": EngineReason.MODEL_INCOMPLETE,
    "ValueError: Model architectures ['New'] are not supported for now. Supported architectures": (
        EngineReason.MODEL_UNSUPPORTED
    ),
}


@pytest.mark.parametrize("last_words", LAST_WORDS)
def test_last_words_become_one_reason(last_words):
    signatures = engine_of(spec_of(an_sglang_model())).signatures
    assert diagnose(last_words, signatures) is LAST_WORDS[last_words]


def test_a_warning_of_a_draft_model_is_no_cause():
    warning = "[2026-11-23] Warning: Target model's context_length (9) is greater than the derived context_length (8)."
    assert diagnose(warning, engine_of(spec_of(an_sglang_model())).signatures) is None

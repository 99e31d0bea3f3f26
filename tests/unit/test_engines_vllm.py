"""How a vLLM server is started by every version: exact arguments, exact environment, nothing that calls out."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.engine_rules import LEAVES_CACHE
from hermetic.api.engine_vllm import Vllm
from hermetic.api.reserved_flags import ENVIRONMENT, NOWHERE, VLLM_FLAGS
from hermetic.engines.flag_objections import unknown_flags
from hermetic.engines.launch import keeping_first_errors
from hermetic.engines.registry import launch
from hermetic.engines.vllm import VLLM
from hermetic.engines.vllm.tables import TABLES
from tests.renderings import RENDERINGS
from tests.scenarios import VLLM_IMAGE, a_baked_model, a_share_model, an_image_volume_model
from tests.snapshots import spec_of

every_version = pytest.mark.parametrize("minor", TABLES.supported)
REFUSED_BESIDE = VLLM.cache_offload_settings
"""Flags of a field that are refused only beside it: tests/unit/test_cache_offload.py."""


def a_model_of_version(minor: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with this release; without a field that a rule of the API refuses with it."""
    vllm = {**manifest["spec"]["engine"]["vllm"], "version": f"{minor}.0"}
    spec = {**manifest["spec"], "engine": {"vllm": vllm}}
    if re.search(LEAVES_CACHE, vllm["version"]):
        spec.pop("kvCacheOffload", None)
    return {**manifest, "spec": spec}


def arguments(manifest: dict[str, Any]) -> list[str]:
    return list(launch(spec_of(manifest)).args)


def environment(manifest: dict[str, Any]) -> dict[str, Any]:
    return {variable["name"]: variable for variable in launch(spec_of(manifest)).env}


def value_after(flag: str, arguments: list[str]) -> str:
    return arguments[arguments.index(flag) + 1]


VLLM_MANIFESTS = {name: m for name, m in RENDERINGS.items() if "vllm" in m["spec"]["engine"]}
every_manifest = pytest.mark.parametrize("manifest", VLLM_MANIFESTS.values(), ids=list(VLLM_MANIFESTS))


# ---------------------------------------------------------------------- every version's own table


@every_version
@every_manifest
def test_every_rendered_flag_is_one_that_the_version_knows_with_values_it_takes(minor, manifest):
    table, (model, *options) = TABLES.table_for(minor), arguments(a_model_of_version(minor, manifest))
    assert not model.startswith("-")
    for flag, values in _as_flags(options):
        known_flag = table.flag(flag)
        assert known_flag is not None, f"vLLM {table.version} does not know {flag}"
        _assert_arity(known_flag.value, flag, values)
        assert not known_flag.choices or set(values) <= set(known_flag.choices)


def _as_flags(arguments: list[str]) -> list[tuple[str, list[str]]]:
    flags: list[tuple[str, list[str]]] = []
    for word in arguments:
        if word.startswith("--"):
            flags.append((word, []))
        else:
            flags[-1][1].append(word)
    return flags


def _assert_arity(arity: str, flag: str, values: list[str]) -> None:
    allowed = {"none": range(1), "one": range(1, 2), "optional": range(2), "many": range(1, 1000)}[arity]
    assert len(values) in allowed, f"{flag} takes {arity}, got {values}"


@every_version
@every_manifest
def test_every_rendered_vllm_variable_is_one_that_the_version_reads(minor, manifest):
    table = TABLES.table_for(minor)
    rendered = {name for name in environment(a_model_of_version(minor, manifest)) if name.startswith("VLLM_")}
    assert rendered <= table.environment | _user_variables(manifest)
    # what keeps the engine from calling out must not be dropped for any version
    assert {"VLLM_NO_USAGE_STATS", "VLLM_DO_NOT_TRACK", "VLLM_HOST_IP", "VLLM_MEDIA_URL_ALLOW_REDIRECTS"} <= rendered


def _user_variables(manifest: dict[str, Any]) -> set[str]:
    return {variable["name"] for variable in manifest["spec"]["engine"]["vllm"].get("extraEnv", ())}


@every_version
def test_api_key_variable_exists_in_every_version_so_that_no_version_serves_without_asking(minor):
    assert "VLLM_API_KEY" in TABLES.table_for(minor).environment


@every_version
def test_media_guard_and_drain_are_rendered_for_every_version(minor):
    engine_arguments = arguments(a_model_of_version(minor, a_share_model()))
    assert value_after("--allowed-media-domains", engine_arguments) == NOWHERE
    assert value_after("--shutdown-timeout", engine_arguments) == "120"


@every_version
def test_word_of_a_user_cannot_become_a_value_of_a_flag_of_ours(minor):
    """`--allowed-media-domains NOWHERE.invalid evil.example` would open a domain: our last flag takes no more."""
    for endpoint in ({}, {"tls": {"secretName": "s"}}):
        engine_arguments = arguments(a_model_of_version(minor, a_share_model(endpoint=endpoint)))
        last, values = _as_flags(engine_arguments[1:])[-1]
        arity = TABLES.table_for(minor).flags[last].value
        assert arity == "none" or (arity == "one" and len(values) == 1)


def test_no_host_can_be_the_domain_that_media_may_come_from():
    """vLLM compares the host of a URL, lower-cased by its reader of URLs, with the words of the list as they are."""
    assert NOWHERE.lower() != NOWHERE
    assert NOWHERE.endswith(".invalid")


@pytest.mark.parametrize(("minor", "reads"), [("0.24", True), ("0.30", True), ("0.31", False), ("0.33", False)])
def test_vocabulary_of_gpt_oss_is_read_from_the_model_where_the_release_would_fetch_it(minor, reads):
    """vLLM's requirements: openai-harmony up to 0.30, oss-harmony from 0.31 on, which would refuse the empty folder."""
    for manifest, folder in ((a_share_model(), "/weights"), (a_baked_model(), "/models/phi-4")):
        variable = environment(a_model_of_version(minor, manifest)).get("TIKTOKEN_ENCODINGS_BASE")
        assert variable == ({"name": "TIKTOKEN_ENCODINGS_BASE", "value": folder} if reads else None)


def test_another_folder_for_the_vocabulary_takes_the_place_of_the_model_s():
    named = {"name": "TIKTOKEN_ENCODINGS_BASE", "value": "/opt/vocabulary"}
    manifest = a_share_model(engine={"vllm": {"image": VLLM_IMAGE, "version": "0.28.0", "extraEnv": [named]}})
    variables = [variable for variable in launch(spec_of(manifest)).env if variable["name"] == named["name"]]
    assert variables == [named]


CODE_FROM_A_FOLDER = [
    "SAGEMAKER_MODEL_PATH",
    "CUSTOM_SCRIPT_FILENAME",
    "CUSTOM_FASTAPI_PING_HANDLER",
    "CUSTOM_FASTAPI_INVOCATION_HANDLER",
    "CUSTOM_FASTAPI_MIDDLEWARE_THROTTLE",
    "CUSTOM_FASTAPI_MIDDLEWARE_PRE_POST_PROCESS",
    "CUSTOM_PRE_PROCESS",
    "CUSTOM_POST_PROCESS",
    "VLLM_LOGGING_CONFIG_PATH",
    "VLLM_PLUGINS",
    "NIM_MIDDLEWARE_CONFIG_PATH",
    "PYTHONPATH",
    "LD_PRELOAD",
]


@pytest.mark.parametrize("name", CODE_FROM_A_FOLDER)
@pytest.mark.parametrize("value", ["/weights", "/weights/evil.py", "evil", ""])
def test_no_variable_lets_the_engine_import_what_lies_beside_the_weights(name, value):
    with pytest.raises(ValidationError, match="reserved variable"):
        spec_of(a_share_model(engine={"vllm": {"extraEnv": [{"name": name, "value": value}]}}))


@pytest.mark.parametrize(
    "flag",
    ["--tool-parser-plugin", "--reasoning-parser-plugin", "--io-processor-plugin", "--middleware", "--worker-cls",
     "--worker-extension-cls", "--scheduler-cls", "--model-class-overrides", "--log-config-file", "--trust-remote-cod",
     "--tool-server", "--config"],
)  # fmt: skip
def test_no_argument_lets_the_engine_import_what_lies_beside_the_weights(flag):
    with pytest.raises(ValidationError, match="reserved flag"):
        spec_of(a_share_model(engine={"vllm": {"extraArgs": [flag, "/weights/evil.py"]}}))


def test_younger_flag_is_left_out_for_a_version_that_does_not_know_it():
    assert "--sse-keep-alive-interval" not in arguments(a_model_of_version("0.28", a_share_model()))
    assert value_after("--sse-keep-alive-interval", arguments(a_model_of_version("0.29", a_share_model()))) == "30"


# ---------------------------------------------------------------------- exact values


def test_short_form_starts_the_server_with_exactly_these_arguments():
    assert arguments(a_share_model()) == [
        "/weights",
        "--served-model-name",
        "meta/llama-3.1-8b-instruct",
        "--port",
        "8000",
        "--tensor-parallel-size",
        "1",
        "--shutdown-timeout",
        "120",
        "--allowed-media-domains",
        "NOWHERE.invalid",
        "--enable-offline-docs",
        "--sse-keep-alive-interval",
        "30",
        "--disable-access-log-for-endpoints",
        "/health,/metrics,/ping",
    ]


def test_what_the_spec_says_reaches_the_engine():
    engine_arguments = arguments(RENDERINGS["everything-said"])
    assert engine_arguments[engine_arguments.index("--served-model-name") + 1 :][:2] == [
        "meta/llama-3.3-70b-instruct",
        "llama-70b",
    ]
    assert value_after("--port", engine_arguments) == "8443"
    assert value_after("--tensor-parallel-size", engine_arguments) == "2"
    assert value_after("--pipeline-parallel-size", engine_arguments) == "2"
    assert value_after("--max-model-len", engine_arguments) == "32768"
    assert value_after("--gpu-memory-utilization", engine_arguments) == "0.92"
    assert value_after("--kv-cache-dtype", engine_arguments) == "fp8"
    assert value_after("--ssl-keyfile", engine_arguments) == "/tls/tls.key"
    assert value_after("--ssl-certfile", engine_arguments) == "/tls/tls.crt"
    assert "--enable-ssl-refresh" in engine_arguments
    assert engine_arguments[-1] == "--enable-prefix-caching"


@pytest.mark.parametrize(("percent", "text"), [(10, "0.10"), (29, "0.29"), (57, "0.57"), (98, "0.98")])
def test_percent_becomes_the_fraction_that_was_meant(percent, text):
    vllm = {"image": VLLM_IMAGE, "version": "0.32.0", "gpuMemoryUtilizationPercent": percent}
    assert value_after("--gpu-memory-utilization", arguments(a_share_model(engine={"vllm": vllm}))) == text


@pytest.mark.parametrize(
    ("fields", "gpus", "tensor"),
    [
        ({}, 8, "8"),
        ({"pipelineParallelSize": 2}, 8, "4"),
        ({"tensorParallelSize": 2, "pipelineParallelSize": 4}, 8, "2"),
    ],
)
def test_tensor_parallel_size_is_what_is_left_of_the_gpus(fields, gpus, tensor):
    vllm = {"image": VLLM_IMAGE, "version": "0.32.0", **fields}
    engine_arguments = arguments(a_share_model(engine={"vllm": vllm}, accelerator={"count": gpus}))
    assert value_after("--tensor-parallel-size", engine_arguments) == tensor


@pytest.mark.parametrize(
    ("manifest", "path"),
    [
        (a_share_model(), "/weights"),
        (a_baked_model(), "/models/phi-4"),
        (an_image_volume_model(), "/weights/phi-4"),
        (RENDERINGS["claim"], "/weights"),
    ],
    ids=["share", "baked", "image volume", "claim"],
)
def test_model_is_named_by_an_absolute_path_never_by_an_id(manifest, path):
    assert arguments(manifest)[0] == path


def test_server_is_started_by_name_whatever_the_image_s_entrypoint():
    assert launch(spec_of(a_share_model())).command == keeping_first_errors("vllm", "serve")


# ---------------------------------------------------------------------- sealed

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_HUB_DISABLE_XET": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "FLASHINFER_NO_DOWNLOAD": "1",
    "FLASHINFER_CUBINS_REPOSITORY": "/nonexistent",
    "VLLM_MEDIA_URL_ALLOW_REDIRECTS": "0",
}
CACHES = {
    "HOME": "/home/hermetic",
    "USER": "hermetic",
    "LOGNAME": "hermetic",
    "TMPDIR": "/tmp",
    "XDG_CACHE_HOME": "/home/hermetic/.cache",
    "XDG_CONFIG_HOME": "/home/hermetic/.config",
    "HF_HOME": "/home/hermetic/hf",
    "VLLM_CACHE_ROOT": "/home/hermetic/.cache/vllm",
    "VLLM_CONFIG_ROOT": "/home/hermetic/.config/vllm",
    "TRITON_CACHE_DIR": "/home/hermetic/.cache/triton",
    "TORCHINDUCTOR_CACHE_DIR": "/home/hermetic/.cache/torchinductor",
    "FLASHINFER_WORKSPACE_BASE": "/home/hermetic",
    "DG_JIT_CACHE_DIR": "/home/hermetic/.cache/deep_gemm",
    "CUDA_CACHE_PATH": "/home/hermetic/.cache/cuda",
    "NUMBA_CACHE_DIR": "/home/hermetic/.cache/numba",
    "OUTLINES_CACHE_DIR": "/home/hermetic/.cache/outlines",
}


@every_version
def test_environment_is_exactly_the_offline_one(minor):
    """Exact values: several of these switches take every other value, "true" included, for off."""
    variables = environment(a_model_of_version(minor, a_share_model()))
    literal = {name: variable["value"] for name, variable in variables.items() if "value" in variable}
    vocabulary = {"TIKTOKEN_ENCODINGS_BASE": "/weights"} if int(minor.split(".")[1]) < 31 else {}
    assert literal == {**OFFLINE, **CACHES, **vocabulary, "VLLM_ENGINE_READY_TIMEOUT_S": "1200"}
    assert variables["VLLM_HOST_IP"]["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"
    assert variables.keys() == literal.keys() | {"VLLM_HOST_IP"}


def test_every_cache_lies_in_a_writable_volume():
    started = launch(spec_of(a_share_model()))
    writable = [folder.path for folder in started.writable]
    folders = {v["value"] for v in started.env if v.get("value", "").startswith("/")} - {"/nonexistent"}
    assert all(any(path == root or path.startswith(f"{root}/") for root in writable) for path in folders)


def test_ready_timeout_of_the_engine_follows_the_startup_budget():
    assert environment(a_share_model(startupBudgetSeconds=3000))["VLLM_ENGINE_READY_TIMEOUT_S"]["value"] == "3000"


def test_certificate_is_looked_at_again_only_where_there_is_one():
    assert "--enable-ssl-refresh" not in arguments(a_share_model())


def test_api_key_is_named_never_read():
    assert environment(RENDERINGS["tls-and-api-key"])["VLLM_API_KEY"] == {
        "name": "VLLM_API_KEY",
        "valueFrom": {"secretKeyRef": {"name": "guarded-key", "key": "token"}},
    }


@every_manifest
def test_names_of_the_environment_are_unique(manifest):
    names = [variable["name"] for variable in launch(spec_of(manifest)).env]
    assert len(names) == len(set(names))


def test_every_variable_of_ours_is_reserved():
    ours = environment(a_share_model()).keys() | {"VLLM_API_KEY"}
    assert ours <= ENVIRONMENT.keys()


def test_every_flag_of_ours_is_reserved_or_harmless_to_say_again():
    ours = {word for m in VLLM_MANIFESTS.values() for word in arguments(m) if word.startswith("--")} - REFUSED_BESIDE
    said_by_users = {word for m in VLLM_MANIFESTS.values() for word in m["spec"]["engine"]["vllm"].get("extraArgs", ())}
    # How many adapters stay on the GPU and in memory: a lower number saves memory, and none is loaded from elsewhere.
    harmless = {"--sse-keep-alive-interval", "--disable-access-log-for-endpoints", "--max-loras", "--max-cpu-loras"}
    assert ours - said_by_users <= VLLM_FLAGS.keys() | harmless


# ---------------------------------------------------------------------- extra arguments


def unknown_to_vllm(*extra_args: str, version: str = "0.32.0") -> tuple[str, ...]:
    vllm = Vllm.model_validate({"image": VLLM_IMAGE, "version": version, "extraArgs": list(extra_args)})
    return unknown_flags(vllm.extra_args, TABLES.table_for(version))


@pytest.mark.parametrize(
    "extra",
    [
        ("--enable-prefix-caching",),
        ("--no-enable-prefix-caching",),
        ("--max_num_seqs", "64"),
        ("--max-num-seqs=64",),
        ("--max-num-seq", "64"),
        ("-O3",),
        ("--seed", "-1"),
        ("--hf-overrides", '{"rope_scaling": {"factor": -2}}'),
        ("--hf-overrides.rope_scaling.factor", "2"),
    ],
    ids=" ".join,
)
def test_arguments_that_vllm_understands_are_passed_on(extra):
    assert unknown_to_vllm(*extra) == ()


@pytest.mark.parametrize("argument", ["--no-such-flag", "--max-num", "--", "-d", "--max-num-seqsx=3"])
def test_arguments_that_vllm_refuses_or_finds_ambiguous_are_named(argument):
    assert unknown_to_vllm(argument) == (argument,)

"""How a NIM is started: by line, from a model folder or a staged cache, without a key and without a download."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.reserved_flags import ENVIRONMENT, MEDIA_FROM_NOWHERE
from hermetic.engines.registry import launch
from tests.renderings import RENDERINGS
from tests.scenarios import NIM_IMAGE, a_nim_model, changed
from tests.snapshots import spec_of


def a_nim(line: str = "2.1", *, gpus: int = 1, **fields: Any) -> dict[str, Any]:
    nim = {"image": NIM_IMAGE, "line": line, **fields}
    return changed(a_nim_model(), engine={"nim": nim}, accelerator={"count": gpus})


def environment(manifest: dict[str, Any]) -> dict[str, str]:
    return {v["name"]: v.get("value", "from elsewhere") for v in launch(spec_of(manifest)).env}


ALWAYS = {
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
    "NIM_TELEMETRY_MODE": "0",
    "NIM_DISABLE_MODEL_DOWNLOAD": "1",
    "NIM_CACHE_PATH": "/opt/nim/.cache",
    "OUTLINES_CACHE_DIR": "/tmp/outlines",
    "NIM_SERVER_PORT": "8000",
    "NIM_HTTP_API_PORT": "8000",
    "NIM_SERVED_MODEL_NAME": "meta/llama-3.1-8b-instruct",
    "NIM_LOG_LEVEL": "INFO",
    "VLLM_HOST_IP": "from elsewhere",
}


@pytest.mark.parametrize(
    ("manifest", "of_its_own"),
    [
        (a_nim("2.1"), {"NIM_MODEL_PATH": "/weights", "NIM_TENSOR_PARALLEL_SIZE": "1"}),
        (a_nim("1.15"), {"NIM_MODEL_NAME": "/weights", "NIM_TENSOR_PARALLEL_SIZE": "1"}),
        (a_nim("2.1", modelPath="/opt/model"), {"NIM_MODEL_PATH": "/opt/model", "NIM_TENSOR_PARALLEL_SIZE": "1"}),
        (a_nim("1.15", profile="vllm-bf16-tp2", gpus=2), {"NIM_MODEL_PROFILE": "vllm-bf16-tp2"}),
    ],
    ids=["line 2", "line 1", "model path", "profile"],
)
def test_environment_is_exactly_the_offline_one_of_the_line(manifest, of_its_own):
    assert environment(manifest) == {**ALWAYS, **of_its_own}


def test_every_line_is_started_by_the_entrypoint_of_its_image():
    """`nim-serve` is documented as an argument of the entrypoint and its default, not as a program of the image."""
    assert launch(spec_of(a_nim("2.1", extraArgs=["--enable-prefix-caching"]))).command == ()
    assert launch(spec_of(a_nim("2.1", extraArgs=["--enable-prefix-caching"]))).args == ("--enable-prefix-caching",)
    assert launch(spec_of(a_nim("1.15"))).command == launch(spec_of(a_nim("1.15"))).args == ()


@pytest.mark.parametrize("line", ["1.15", "2.0", "2.1"])
def test_no_line_needs_a_program_of_its_image_but_its_own(line):
    """That the image has a python3 is documented of no line."""
    assert not any("python" in word for word in launch(spec_of(a_nim(line))).command)


def test_line_2_0_fetches_no_media_and_later_lines_may_be_told_so_by_the_user():
    assert launch(spec_of(a_nim("2.0", extraArgs=["--seed=1"]))).args == (MEDIA_FROM_NOWHERE, "--seed=1")
    assert launch(spec_of(a_nim("2.1"))).args == ()
    assert launch(spec_of(a_nim("2.1", extraArgs=[MEDIA_FROM_NOWHERE]))).args == (MEDIA_FROM_NOWHERE,)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--allowed-media-domains"],
        ["--allowed-media-domains=example.com"],
        ["--allowed-media=NOWHERE.invalid"],
        ["--allowed-media-domains=media.invalid"],
        ["--allowed-media-domains=nowhere.invalid"],
    ],
)
def test_no_other_domain_can_be_named_for_media(arguments):
    with pytest.raises(ValidationError, match="reserved flag"):
        spec_of(a_nim("2.1", extraArgs=arguments))


def test_line_two_runs_in_group_0_and_line_one_in_its_own():
    assert (launch(spec_of(a_nim("2.1"))).user, launch(spec_of(a_nim("2.1"))).group) == (1000, 0)
    assert (launch(spec_of(a_nim("1.15"))).user, launch(spec_of(a_nim("1.15"))).group) == (1000, 1000)


def test_only_a_profile_needs_its_cache_linked():
    assert [init_container.name for init_container in launch(spec_of(a_nim("1.15", profile="p"))).init_containers] == [
        "link-cache"
    ]
    assert not launch(spec_of(a_nim("2.1"))).init_containers


def test_tls_is_said_in_the_words_of_a_nim():
    variables = environment(RENDERINGS["nim-guarded"])
    assert variables["NIM_SSL_MODE"] == "TLS"
    assert (variables["NIM_SSL_KEY_PATH"], variables["NIM_SSL_CERTS_PATH"]) == ("/tls/tls.key", "/tls/tls.crt")


def test_context_length_and_port_reach_the_nim():
    manifest = changed(a_nim(maxModelLength=4096), endpoint={"port": 9000})
    variables = environment(manifest)
    assert variables["NIM_MAX_MODEL_LEN"] == "4096"
    assert variables["NIM_SERVER_PORT"] == variables["NIM_HTTP_API_PORT"] == "9000"


def test_probes_ask_the_model_for_readiness_and_the_proxy_for_life():
    started = launch(spec_of(a_nim()))
    assert (started.live_path, started.ready_path) == ("/v1/health/live", "/v1/health/ready")


def test_every_variable_of_ours_is_reserved():
    harmless = {"NIM_LOG_LEVEL"}
    for manifest in (a_nim("2.1", maxModelLength=1), a_nim("1.15"), a_nim("1.15", profile="p")):
        assert environment(manifest).keys() - harmless <= ENVIRONMENT.keys()


@pytest.mark.parametrize("line", ["1.15", "2.1"])
def test_log_level_is_the_user_s_to_set(line):
    loud = a_nim(line, extraEnv=[{"name": "NIM_LOG_LEVEL", "value": "DEBUG"}])
    variables = [variable["value"] for variable in launch(spec_of(loud)).env if variable["name"] == "NIM_LOG_LEVEL"]
    assert variables == ["DEBUG"]

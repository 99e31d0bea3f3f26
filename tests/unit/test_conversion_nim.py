"""A `docker run` of a NIM as a ModelDeployment.

Sources: docs.nvidia.com, NIM for large language models: "Getting Started" of 1.7.0, "Configure Your NIM" of 1.12.0,
"Advanced Configuration" of 2.0.12, "Model-Free NIM" of 2.1.6; NVIDIA VSS, "Configure the NIMs" (the first command).
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.errors import InputError
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS
from hermetic.plan.gates import engine_flags_are_known
from tests.conversions import Converted, converted
from tests.snapshots import a_snapshot

GUIDE = (
    "docker run -d -it --rm --gpus '\"device=1,2\"' --shm-size=16GB -e NGC_API_KEY "
    '-v "$LOCAL_NIM_CACHE:/opt/nim/.cache" -u $(id -u) -p 8000:8000 nvcr.io/nim/meta/llama-3.1-8b-instruct:1.12.0'
)
LINE_1, LINE_2 = "nvcr.io/nim/meta/llama-3.1-8b-instruct:1.15.2", "nvcr.io/nim/meta/llama-3.1-8b-instruct:2.1.6"
MODEL_FREE = "nvcr.io/nim/nvidia/model-free-nim:2.1.6"


def of_nim(*options: str, image: str = LINE_2, arguments: tuple[str, ...] = (), **chosen: Any) -> Converted:
    return converted("docker", "run", *options, image, *arguments, image="", **chosen)


def of_variables(*variables: str, image: str = LINE_2, **chosen: Any) -> Converted:
    return of_nim(*(word for variable in variables for word in ("-e", variable)), image=image, **chosen)


def test_the_command_of_the_guide_becomes_a_deployment_that_the_gates_accept() -> None:
    result = converted(GUIDE, image="")
    assert result.spec["model"] == {"name": "meta/llama-3.1-8b-instruct"}
    assert result.engine["line"] == "1.12"
    assert "/nim/meta/llama-3.1-8b-instruct@sha256:" in result.engine["image"]
    assert result.spec["accelerator"]["count"] == 2
    assert result.spec["resources"] == {"sharedMemory": "16Gi"}
    assert result.conversion.manifest["metadata"]["name"] == "llama-3-1-8b-instruct"
    assert result.notes("left out", "NGC_API_KEY")
    assert "create-model-store" in result.notes("stage", "meta/llama-3.1-8b-instruct")[0].message
    spec = ModelDeployment.model_validate(result.conversion.manifest).spec
    for gate in (engine_flags_are_known, engine_settings_are_allowed):
        assert gate(spec, a_snapshot()) == HOLDS


@pytest.mark.parametrize(
    ("variable", "path", "value"),
    [
        ("NIM_MODEL_PROFILE=vllm-bf16-tp4-pp1", "engine.nim.profile", "vllm-bf16-tp4-pp1"),
        ("NIM_MODEL_PROFILE=vllm-bf16-tp2-pp2", "accelerator.count", 4),
        ("NIM_MAX_MODEL_LEN=8192", "engine.nim.maxModelLength", 8192),
        ("NIM_SERVED_MODEL_NAME=llama,other", "model.name", "llama"),
        ("NIM_SERVER_PORT=9000", "endpoint.port", 9000),
        ("NIM_HTTP_API_PORT=9001", "endpoint.port", 9001),
        ("NIM_TENSOR_PARALLEL_SIZE=4", "accelerator.count", 4),
        ("NIM_SSL_CERTS_PATH=/c/tls.crt", "endpoint.tls.secretName", "llama-3-1-8b-instruct-tls"),
    ],
)
def test_a_variable_with_a_field_becomes_the_field(variable: str, path: str, value: object) -> None:
    result = of_variables(variable)
    field_value: Any = result.spec
    for step in path.split("."):
        field_value = field_value[step]
    assert field_value == value
    assert variable.partition("=")[0] not in result.variables


def test_tensor_and_pipeline_sizes_are_multiplied() -> None:
    result = of_variables("NIM_TENSOR_PARALLEL_SIZE=4", "NIM_PIPELINE_PARALLEL_SIZE=2")
    assert result.spec["accelerator"]["count"] == 8
    assert result.variables == {"NIM_PIPELINE_PARALLEL_SIZE": "2"}


@pytest.mark.parametrize(("gpus", "count"), [("all", 1), ("4", 4), ('"device=0,1,2"', 3), ("device=7", 1), ("0", 1)])
def test_the_option_of_gpus_counts_where_no_variable_says_how_many(gpus: str, count: int) -> None:
    assert of_nim("--gpus", gpus).spec["accelerator"]["count"] == count
    assert of_nim("--gpus", gpus, "-e", "NIM_TENSOR_PARALLEL_SIZE=2").spec["accelerator"]["count"] == 2


@pytest.mark.parametrize(
    ("variable", "reason"),
    [
        ("NGC_API_KEY=nvapi-secret", "fetch from outside"),
        ("HF_TOKEN=hf_secret", "fetch from outside"),
        ("NIM_CACHE_PATH=/c", "rendered by Hermetic"),
        ("NIM_PEFT_SOURCE=/loras", "it names code"),
        ("NIM_REPOSITORY_OVERRIDE=https://mirror.example", "fetch from outside"),
        ("NIM_ENABLE_OTEL=1", "fetch from outside"),
        ("CUDA_VISIBLE_DEVICES=0", "device plug-in"),
        ("SOME_NAME=1", "not on the reviewed list"),
    ],
)
def test_a_variable_without_a_field_is_left_out_with_its_reason(variable: str, reason: str) -> None:
    name, _, value = variable.partition("=")
    result = of_variables(variable)
    (note,) = result.notes("left out", name)
    assert reason in note.message
    assert value not in note.message or len(value) < 4
    assert name not in result.variables


def test_reviewed_variables_stay() -> None:
    result = of_variables("NIM_KVCACHE_PERCENT=0.9", "NIM_LOG_LEVEL=INFO", image=LINE_1)
    assert result.variables == {"NIM_KVCACHE_PERCENT": "0.9", "NIM_LOG_LEVEL": "INFO"}


def test_arguments_of_line_two_become_fields_and_arguments() -> None:
    arguments = ("--max-model-len", "4096", "--tensor-parallel-size=2", "--enable-prefix-caching", "--seed", "1")
    result = of_nim(arguments=(*arguments, "--trust-remote-code", "--grpc-port", "9000", "--omni-x"))
    assert result.engine["maxModelLength"] == 4096
    assert result.spec["accelerator"]["count"] == 2
    assert result.arguments == ["--enable-prefix-caching", "--seed", "1"]
    for flag in ("--trust-remote-code", "--grpc-port", "--omni-x"):
        assert result.notes("left out", flag)


def test_line_one_takes_no_arguments() -> None:
    result = of_nim(image=LINE_1, arguments=("--enable-prefix-caching",))
    assert not result.arguments
    assert "line 2" in result.notes("left out", "--enable-prefix-caching")[0].message


@pytest.mark.parametrize(
    ("options", "arguments", "reference", "name"),
    [
        (("-e", "NIM_MODEL_PATH=hf://Qwen/Qwen3-8B"), (), "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        (("-e", "NIM_MODEL_NAME=hf://Qwen/Qwen3-8B"), (), "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ((), ("hf://Qwen/Qwen3-8B:main", "--seed", "1"), "Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        (("-e", "NIM_MODEL_PATH=/opt/models/phi-4"), (), "/opt/models/phi-4", "phi-4"),
        ((), ("nim-serve", "/opt/models/phi-4"), "/opt/models/phi-4", "phi-4"),
        (("-e", "NIM_MODEL_PATH=hf://a/b", "-e", "NIM_SERVED_MODEL_NAME=own"), (), "a/b", "own"),
    ],
)
def test_a_model_free_nim_serves_the_model_that_is_named(
    options: tuple[str, ...], arguments: tuple[str, ...], reference: str, name: str
) -> None:
    result = of_nim(*options, image=MODEL_FREE, arguments=arguments)
    assert result.spec["model"]["name"] == name
    assert result.notes("stage", reference)
    assert "modelPath" not in result.engine


def test_a_profile_is_staged_as_a_cache() -> None:
    result = of_variables("NIM_MODEL_PROFILE=vllm-bf16-tp2-pp1")
    assert "download-to-cache" in result.notes("stage", "vllm-bf16-tp2-pp1")[0].message


@pytest.mark.parametrize(
    ("image", "line"),
    [
        ("nvcr.io/nim/meta/llama-3.1-8b-instruct:1.8.4", "1.8"),
        ("contoso.azurecr.io/nim/meta/llama-3.1-8b-instruct:2.0.4-pb6", "2.0"),
        ("nvcr.io/nim/meta/llama-3.1-8b-instruct:v2.1", "2.1"),
    ],
)
def test_the_line_is_that_of_the_tag(image: str, line: str) -> None:
    assert of_nim(image=image).engine["line"] == line


def test_an_image_without_a_release_is_asked_about() -> None:
    latest = "nvcr.io/nim/meta/llama-3.1-8b-instruct:latest"
    assert of_nim(image=latest).notes("set", "engine.nim.line")
    assert of_nim(image=latest, version="1.15").engine["line"] == "1.15"


def test_a_mirrored_image_is_imported_with_the_account_of_ngc() -> None:
    (note,) = [note for note in of_nim(registry="contoso.azurecr.io").notes("replaced") if "az acr" in note.message]
    assert note.message.endswith("--username '$oauthtoken' --password NGC_API_KEY")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["docker", "run", "nvcr.io/nim/meta/llama-3.1-8b-instruct:3.0.0"], "line 3"),
        (["docker", "run", LINE_2, "list-model-profiles"], "starts no server"),
        (["docker", "run", LINE_2, "download-to-cache", "--all"], "starts no server"),
        (["docker", "run", MODEL_FREE], "names no model"),
        (["docker", "run", "-e", "NIM_TENSOR_PARALLEL_SIZE=32", LINE_2], "32 GPUs"),
        (["docker", "run", "-e", "NIM_SERVED_MODEL_NAME=$NAME", LINE_2], "$NAME"),
    ],
)
def test_a_container_of_which_nothing_can_be_made_is_refused(words: list[str], reason: str) -> None:
    with pytest.raises(InputError, match=reason.replace("$", r"\$")):
        converted(*words, image="")


def test_an_image_of_vllm_below_another_folder_is_no_nim() -> None:
    result = converted("docker", "run", "vllm/vllm-openai:v0.33.0", "--model", "nim/model", image="")
    assert "vllm" in result.spec["engine"]

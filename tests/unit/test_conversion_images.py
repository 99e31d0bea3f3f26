"""Which image, weights, container options and names a converted ModelDeployment has, and what no pod can be.

Sources: docs.vllm.ai "Using Docker"; docs.docker.com "docker container run"; rocm.docs.amd.com "vLLM inference".
"""

from __future__ import annotations

import pytest

from hermetic.conversion.serving_image import PLACEHOLDER_DIGEST
from hermetic.errors import InputError
from tests.conversions import VLLM_IMAGE, converted, of_vllm

IMAGES = [
    ("vllm/vllm-openai:v0.32.0", "contoso.azurecr.io/vllm/vllm-openai", "0.32.0", "docker.io/vllm/vllm-openai:v0.32.0"),
    ("docker.io/vllm/vllm-openai:v0.32.0-cu129", "contoso.azurecr.io/vllm/vllm-openai", "0.32.0", ":v0.32.0-cu129 "),
    ("vllm-openai:0.32.1", "contoso.azurecr.io/vllm-openai", "0.32.1", "docker.io/library/vllm-openai:0.32.1"),
    ("ghcr.io/org/vllm:v0.31.0", "contoso.azurecr.io/org/vllm", "0.31.0", "ghcr.io/org/vllm:v0.31.0"),
    ("other.azurecr.io/vllm:v0.31.0", "other.azurecr.io/vllm", "0.31.0", ""),
    ("rocm/vllm:rocm7.0_vllm_0.30.0", "contoso.azurecr.io/rocm/vllm", "0.30.0", "docker.io/rocm/vllm:"),
    ("rocm/vllm:rocm6.4.1_vllm_0.30.0_20260909", "contoso.azurecr.io/rocm/vllm", "0.30.0", "rocm/vllm:rocm6.4.1_vllm"),
    ("vllm/vllm-openai:v0.33.0rc1", "contoso.azurecr.io/vllm/vllm-openai", "0.33.0", "vllm-openai:v0.33.0rc1"),
    ("nvcr.io/nvidia/vllm:25.09-py3", "contoso.azurecr.io/nvidia/vllm", "0.33.0", "nvcr.io/nvidia/vllm:25.09-py3"),
    ("vllm/vllm-openai:latest", "contoso.azurecr.io/vllm/vllm-openai", "0.33.0", "vllm-openai:latest"),
    ("vllm/vllm-openai", "contoso.azurecr.io/vllm/vllm-openai", "0.33.0", "vllm-openai:latest"),
    ("vllm/vllm-openai:v0.10.1", "contoso.azurecr.io/vllm/vllm-openai", "0.33.0", "docker.io/vllm/vllm-openai:v0.33.0"),
]


@pytest.mark.parametrize(("image", "repository", "version", "source"), IMAGES)
def test_an_image_is_that_of_the_private_registry(image: str, repository: str, version: str, source: str) -> None:
    result = of_vllm(image=image, registry="contoso.azurecr.io")
    assert result.engine["image"] == f"{repository}@{PLACEHOLDER_DIGEST}"
    assert result.engine["version"] == version
    mirrored = [note.message for note in result.notes("replaced") if "az acr import" in note.message]
    assert [f"--source {source}" in message or source in message for message in mirrored] == ([True] if source else [])
    assert any("digest" in note.message for note in result.notes("set", "engine.vllm.image"))


def test_an_image_by_digest_keeps_it() -> None:
    digest = "sha256:" + "3f1c" * 16
    result = of_vllm(image=f"contoso.azurecr.io/vllm/vllm-openai@{digest}", version="0.32")
    assert result.engine["image"] == f"contoso.azurecr.io/vllm/vllm-openai@{digest}"
    assert result.engine["version"] == "0.32.0"
    assert not result.notes("set", "engine.vllm.image")


@pytest.mark.parametrize(
    ("chosen", "reason"),
    [
        ({"image": ""}, "names no image"),
        ({"image": "Contoso/VLLM:v0.32.0"}, "not the reference of an image"),
        ({"image": "a b"}, "not the reference of an image"),
        ({"version": "0.10.1"}, "not supported"),
        ({"version": "latest"}, "not supported"),
        ({"name": "Big"}, "--name 'Big'"),
        ({"claim": "c", "share": "a/b"}, "two sources"),
        ({"share": "models"}, "names no share"),
        ({"share": "a/b"}, "spec.weights.azureFiles.account"),
        ({"claim": "Not_A_Claim"}, "spec.weights.persistentVolumeClaim.claimName"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(chosen: dict[str, str], reason: str) -> None:
    with pytest.raises(InputError) as refused:
        of_vllm(**chosen)
    assert reason in refused.value.message


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("-tp", "32"), "needs 32 GPUs"),
        (("-tp", "8", "-dp", "8"), "needs 64 GPUs"),
        (("-dp", "32"), "needs 32 GPUs"),
        (("--nnodes", "2"), "needs 1 GPUs, which 2 nodes cannot share evenly"),
        (("--nnodes", "3", "-tp", "16"), "needs 16 GPUs, which 3 nodes cannot share evenly"),
        (("--nnodes", "2", "-tp", "64"), "needs 32 GPUs"),
        (("--nnodes", "17", "-tp", "17"), "a replica has 1 to 16 nodes"),
        (("--nnodes", "x", "-tp", "16"), "a replica has 1 to 16 nodes"),
        (("--headless",), "another rank than the first"),
        (("--nnodes", "2", "--node-rank", "1", "-tp", "16"), "another rank than the first"),
        (("--nnodes", "2", "-tp", "8", "-dp", "2"), "for several nodes"),
        (("--nnodes", "2", "-tp", "16", "--api-server-count", "2"), "for several nodes"),
        (("--data-parallel-size", "16", "--data-parallel-size-local", "8"), "for several nodes"),
        (tuple(f"--limit-mm-per-prompt.k{number}=1" for number in range(70)), "70 further arguments"),
        (("x",) * 600, "arguments, and at most"),
    ],
)
def test_a_server_that_no_pod_can_be_is_refused(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(InputError) as refused:
        of_vllm(*arguments)
    assert reason in refused.value.message


@pytest.mark.parametrize("words", [("vllm", "serve"), ("vllm", "serve", "$MODEL"), ("vllm", "serve", "--port", "1")])
def test_a_server_without_a_model_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="model"):
        converted(*words)


def test_words_that_belong_to_no_flag_are_named() -> None:
    result = of_vllm("\u2013tensor-parallel-size", "8", "--", "--max-num-seqs", "4")
    assert [note.subject for note in result.notes("left out")] == ["\u2013tensor-parallel-size", "8", "--"]
    assert "a dash other than the hyphen" in result.notes("left out")[0].message
    assert result.arguments == ["--max-num-seqs", "4"]


def test_too_many_items_share_flag_and_value() -> None:
    arguments = [word for number in range(40) for word in (f"--limit-mm-per-prompt.k{number}", "1")]
    result = of_vllm(*arguments)
    assert result.arguments == [f"--limit-mm-per-prompt.k{number}=1" for number in range(40)]


def test_a_container_becomes_fields() -> None:
    result = converted(
        "docker run --gpus all --shm-size=16g --memory 96GB --cpus 12 -p 8080:8000 -e X --env-file f "
        "-v /srv:/models vllm/vllm-openai:v0.32.0 --model org/model",
        image="",
    )
    assert result.spec["resources"] == {"cpu": "12", "memory": "96Gi", "sharedMemory": "16Gi"}
    assert result.spec["endpoint"] == {"port": 8080}
    subjects = [note.subject for note in result.notes("left out")]
    assert subjects == ["--env-file f", "X", "volume /models"]


@pytest.mark.parametrize(
    ("published", "endpoint"),
    [("443", {"servicePort": 443}), ("1023", {"servicePort": 1023}), ("1024", {"port": 1024}), ("8000", None)],
)
def test_published_port_below_1024_is_that_of_the_service(published: str, endpoint: dict[str, int] | None) -> None:
    result = converted(f"docker run -p {published}:8000 {VLLM_IMAGE} --model org/model")
    assert result.spec.get("endpoint") == endpoint


@pytest.mark.parametrize(
    ("options", "subject"),
    [
        ("-p 70000:8000", "--publish 70000:8000"),
        ("--shm-size much", "--shm-size"),
        ("--memory 4g", "--memory"),
        ("--memory 8g --shm-size 8g", "--memory"),
        ("--cpus all", "--cpus"),
    ],
)
def test_an_option_that_no_field_takes_is_left_out(options: str, subject: str) -> None:
    result = converted(f"docker run {options} {VLLM_IMAGE} --model org/model")
    assert [note.subject for note in result.notes("left out")] == [subject]


@pytest.mark.parametrize(
    "text",
    [
        f"docker run --device /dev/kfd {VLLM_IMAGE} --model org/model",
        "docker run vllm/vllm-openai-rocm:v0.32.0 --model org/model",
        "VLLM_ROCM_USE_AITER=1 vllm serve org/model",
    ],
)
def test_a_command_for_amd_asks_for_gpus_of_amd(text: str) -> None:
    image = "" if "rocm:" in text else VLLM_IMAGE
    assert converted(text, image=image).spec["accelerator"] == {"resource": "amd.com/gpu", "count": 1}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("Qwen/Qwen3.5-0.8B", "qwen3-5-0-8b"),
        ("org/01_model", "model-01-model"),
        ("org/" + "x" * 90, "x" * 46),
        ("/models/Llama 3", "llama-3"),
        ("./m", "m"),
    ],
)
def test_the_object_is_named_after_the_model(model: str, name: str) -> None:
    assert converted("vllm", "serve", model).conversion.manifest["metadata"] == {"name": name}

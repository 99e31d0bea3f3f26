"""What a refused registry or share suggests first: never to allow a typo or a public registry."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.plan.allowed_sources import registry_is_allowed, share_is_allowed
from hermetic.plan.gate_results import Blocks
from tests.scenarios import DIGEST, a_share_model, changed
from tests.snapshots import a_snapshot, spec_of

PLATFORM = "ask the platform team to allow it"
REGISTRIES = [
    {"host": "other.azurecr.io", "namespaces": ["elsewhere"]},
    {"host": "contoso.azurecr.io", "namespaces": ["*"]},
]
SHARES = [
    {"account": "contosomodels", "share": "models", "namespaces": ["*"]},
    {"server": "10.0.0.4", "path": "/export/models", "namespaces": ["*"]},
]


def image_refusal(image: str, registries: list[dict[str, Any]]) -> str:
    manifest = changed(a_share_model(), engine={"vllm": {"version": "0.32.0", "image": f"{image}@sha256:{DIGEST}"}})
    policy = Configuration.model_validate({"registries": registries})
    verdict = registry_is_allowed(spec_of(manifest), a_snapshot(policy=policy))
    assert isinstance(verdict, Blocks)
    return verdict.message


def share_refusal(weights: dict[str, Any]) -> str:
    policy = Configuration.model_validate({"shares": SHARES})
    verdict = share_is_allowed(spec_of({**a_share_model(), "spec": _with(weights)}), a_snapshot(policy=policy))
    assert isinstance(verdict, Blocks)
    return verdict.message


def _with(weights: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {**a_share_model()["spec"], "weights": weights}
    return spec


@pytest.mark.parametrize("host", ["contosso.azurecr.io", "contoso.azurecr.oi", "conto.azurecr.io"])
def test_a_typo_of_an_allowed_registry_names_it_and_no_line_that_allows_the_typo(host: str) -> None:
    message = image_refusal(f"{host}/vllm/vllm-openai", REGISTRIES)
    assert "did you mean 'contoso.azurecr.io'" in message
    assert "host:" not in message
    assert message.index("did you mean") < message.index(PLATFORM)


@pytest.mark.parametrize("host", ["docker.io", "ghcr.io", "nvcr.io", "quay.io:5000"])
def test_a_public_registry_is_first_mirrored_by_a_whole_command(host: str) -> None:
    message = image_refusal(f"{host}/vllm/vllm-openai", REGISTRIES)
    command = (
        f"az acr import --name contoso --source {host}/vllm/vllm-openai@sha256:{DIGEST} --repository vllm/vllm-openai"
    )
    assert f"'{command}'" in message
    assert f"set the image to contoso.azurecr.io/vllm/vllm-openai@sha256:{DIGEST}" in message
    assert message.index(command) < message.index(PLATFORM) < message.index(f"host: {host}")


def test_a_mirror_goes_below_a_repository_that_is_allowed() -> None:
    registries = [{"host": "contoso.azurecr.io", "repositories": ["mirror"], "namespaces": ["*"]}]
    message = image_refusal("docker.io/vllm/vllm-openai", registries)
    assert "--repository mirror/vllm/vllm-openai'" in message


def test_an_image_without_a_registry_is_one_of_docker_hub_and_no_line_allows_its_folder() -> None:
    message = image_refusal("vllm/vllm-openai", REGISTRIES)
    assert "'vllm' is a folder of docker.io" in message
    assert f"--source docker.io/vllm/vllm-openai@sha256:{DIGEST}" in message
    assert "host:" not in message


def test_another_repository_of_an_allowed_registry_names_those_that_are_allowed() -> None:
    registries = [{"host": "contoso.azurecr.io", "repositories": ["nim", "team-a"], "namespaces": ["*"]}]
    message = image_refusal("contoso.azurecr.io/vllm/vllm-openai", registries)
    assert "of this registry these are allowed: nim, team-a" in message
    assert "az acr import" not in message


@pytest.mark.parametrize("registries", [[], [{"host": "harbor.example:8443", "namespaces": ["*"]}]])
def test_without_a_registry_of_azure_the_allowed_ones_are_named_and_no_command(
    registries: list[dict[str, Any]],
) -> None:
    message = image_refusal("docker.io/vllm/vllm-openai", registries)
    assert "az acr" not in message
    assert all(registry["host"] in message for registry in registries)
    assert PLATFORM in message


def test_a_registry_of_another_namespace_is_not_suggested() -> None:
    assert "other.azurecr.io" not in image_refusal("otter.azurecr.io/vllm/vllm-openai", REGISTRIES[:1])


@pytest.mark.parametrize(
    ("weights", "near"),
    [
        ({"azureFiles": {"account": "contosomodel", "share": "models"}}, "contosomodels/models"),
        ({"azureFiles": {"account": "contosomodels", "share": "model"}}, "contosomodels/models"),
        ({"nfs": {"server": "10.0.0.4", "path": "/export/model"}}, "10.0.0.4:/export/models"),
    ],
)
def test_a_typo_of_an_allowed_share_names_it_and_no_line_that_allows_the_typo(
    weights: dict[str, Any], near: str
) -> None:
    message = share_refusal(weights)
    assert f"did you mean '{near}'" in message
    assert "namespaces: [" not in message


def test_a_share_unlike_all_that_are_allowed_is_copied_before_the_platform_team_is_asked() -> None:
    message = share_refusal({"azureFiles": {"account": "fabrikam", "share": "data"}})
    assert "copy the weights to an allowed share, which is 10.0.0.4:/export/models, contosomodels/models" in message
    assert message.index("copy") < message.index(PLATFORM) < message.index("account: fabrikam, share: data")

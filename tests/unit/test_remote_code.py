"""Code beside the weights runs only from an image pinned by digest, and only where the platform team allows it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from hermetic.api.configuration import Configuration
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.spec_reasons import SpecReason
from hermetic.engines.registry import launch
from hermetic.plan.engine_settings import engine_settings_are_allowed
from hermetic.plan.gate_results import HOLDS, Blocks
from hermetic.plan.gates import engine_flags_are_known
from tests.scenarios import NIM_IMAGE, SGLANG_IMAGE, VLLM_IMAGE
from tests.snapshots import a_snapshot, spec_of

FLAG = "--trust-remote-code"
ENGINES = {
    "vllm": {"image": VLLM_IMAGE, "version": "0.33.0"},
    "sglang": {"image": SGLANG_IMAGE, "version": "0.5.23"},
}
IMAGES = {
    "baked": {"bakedImage": {"path": "/models/kimi"}},
    "volume": {"imageVolume": {"reference": f"contoso.azurecr.io/kimi@sha256:{'3f1c' * 16}"}},
}
SHARES = {
    "azureFiles": {"azureFiles": {"account": "contosomodels", "share": "models", "folder": "kimi"}},
    "nfs": {"nfs": {"server": "10.1.2.3", "path": "/export"}},
    "claim": {"persistentVolumeClaim": {"claimName": "models"}},
}
by_engine = pytest.mark.parametrize("engine", ENGINES)


def spec(engine: str, weights: dict[str, Any], *arguments: str, **settings: Any) -> ModelDeploymentSpec:
    chosen = {**ENGINES.get(engine, {}), **settings, "extraArgs": list(arguments)}
    manifest = {
        "apiVersion": "hermetic.dev/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": "kimi", "namespace": "inference"},
        "spec": {"model": {"name": "kimi"}, "engine": {engine: chosen}, "weights": weights},
    }
    return spec_of(manifest)


def verdict(of: ModelDeploymentSpec, **policy: Any) -> Any:
    return engine_settings_are_allowed(of, a_snapshot(policy=Configuration.model_validate(policy)))


@by_engine
@pytest.mark.parametrize("weights", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize("namespaces", [["inference"], ["*"], ["other", "inference"]])
def test_remote_code_from_an_image_is_passed_where_the_platform_team_allows_it(engine, weights, namespaces):
    deployment = spec(engine, weights, FLAG)
    assert verdict(deployment, remoteCode=[{"namespaces": namespaces}]) == HOLDS
    assert engine_flags_are_known(deployment, a_snapshot()) == HOLDS
    assert FLAG in launch(deployment).args


@by_engine
@pytest.mark.parametrize("policy", [{}, {"remoteCode": [{"namespaces": ["other"]}]}], ids=["none", "other"])
def test_remote_code_that_the_platform_team_does_not_allow_is_refused_with_the_line_to_add(engine, policy):
    refused = verdict(spec(engine, IMAGES["baked"], FLAG), **policy)
    assert isinstance(refused, Blocks)
    assert refused.reason is SpecReason.ENGINE_SETTING_NOT_ALLOWED
    assert "`remoteCode: [{namespaces: [inference]}]`" in refused.message


@by_engine
@pytest.mark.parametrize("weights", SHARES.values(), ids=SHARES)
def test_remote_code_from_a_share_is_refused_whatever_the_platform_team_allows(engine, weights):
    with pytest.raises(ValidationError, match="no digest pins the code there"):
        spec(engine, weights, FLAG)


@by_engine
@pytest.mark.parametrize("weights", [*IMAGES.values(), *SHARES.values()], ids=[*IMAGES, *SHARES])
@pytest.mark.parametrize(
    "argument",
    [
        "--trust-remote-code=true", "--trust_remote_code", "--trust-remote_code", "--trust-remote", "--trust-r",
        "--trust-remote-code.x", "--trust-remote-code=",
    ],
)  # fmt: skip
def test_another_spelling_of_remote_code_is_refused_with_any_weights(engine, weights, argument):
    with pytest.raises(ValidationError, match="must not be a reserved flag"):
        spec(engine, weights, argument)


@by_engine
@pytest.mark.parametrize(
    "argument",
    ["\u2013\u2013trust-remote-code", "\u2014trust-remote-code", "--trust\u2010remote-code", "+trust-remote-code"],
)
def test_a_flag_with_other_dashes_is_refused_as_unknown_or_stray(engine, argument):
    blocks = engine_flags_are_known(spec(engine, IMAGES["baked"], argument), a_snapshot())
    assert isinstance(blocks, Blocks)
    assert blocks.reason is SpecReason.ENGINE_FLAG_UNKNOWN


@by_engine
def test_a_word_behind_remote_code_is_refused_as_stray(engine):
    blocks = engine_flags_are_known(spec(engine, IMAGES["baked"], FLAG, "true"), a_snapshot())
    assert isinstance(blocks, Blocks)
    assert "belongs to no flag" in blocks.message


def test_remote_code_of_a_nim_is_refused_with_its_reason():
    with pytest.raises(ValidationError, match="what a NIM then fetches could not be verified"):
        spec("nim", IMAGES["baked"], FLAG, image=NIM_IMAGE, line="2.1")


def test_the_list_of_further_arguments_does_not_allow_remote_code():
    line = {"engine": "vllm", "arguments": [FLAG], "namespaces": ["*"]}
    with pytest.raises(ValidationError, match="`remoteCode` allows it"):
        Configuration.model_validate({"engineSettings": [line]})

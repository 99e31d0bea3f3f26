"""Idle connections of an engine behind a gateway outlive those of the gateway."""

from __future__ import annotations

import pytest

from hermetic.engines.registry import launch
from tests.scenarios import a_share_model, an_sglang_model
from tests.snapshots import spec_of

GATEWAY = {"gateway": {"name": "models", "namespace": "gateways"}}
MODELS = {
    "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": a_share_model,
    "SGLANG_TIMEOUT_KEEP_ALIVE": an_sglang_model,
}


@pytest.mark.parametrize("variable", MODELS)
def test_engine_behind_a_gateway_keeps_idle_connections_longer_than_envoy(variable: str) -> None:
    values = [
        item["value"] for item in launch(spec_of(MODELS[variable](endpoint=GATEWAY))).env if item["name"] == variable
    ]
    assert [int(value) > 3600 for value in values] == [True]


@pytest.mark.parametrize("variable", MODELS)
def test_engine_without_a_gateway_keeps_its_own_default(variable: str) -> None:
    assert all(item["name"] != variable for item in launch(spec_of(MODELS[variable]())).env)

"""The labels of `hermetic_model_info`: of every sample, and of objects that no API server should have admitted."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.controller.model_info import LONGEST_LABEL, ModelInfo, model_info
from hermetic.controller.telemetry import Telemetry
from tests.scenarios import a_share_model, an_sglang_model, changed


def test_the_labels_are_those_of_the_spec() -> None:
    model, sglang = model_info(a_share_model()), model_info(an_sglang_model())
    spec = a_share_model()["spec"]
    assert model == ModelInfo(
        a_share_model()["metadata"].get("namespace", ""),
        a_share_model()["metadata"]["name"],
        spec["model"]["name"],
        "vllm",
        spec["engine"]["vllm"]["version"],
        "",  # without a cluster no default is filled in; the API server adds accelerator.count: 1
    )
    assert sglang.engine == "sglang"


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"metadata": None, "spec": None},
        {"metadata": {"name": "a", "namespace": "b"}},
        {"metadata": {"name": "a"}, "spec": {"engine": "vllm", "model": [], "accelerator": 1}},
        {"metadata": {"name": "a"}, "spec": {"engine": {"vllm": None}, "model": {"name": None}}},
        {"metadata": {"name": 7}, "spec": {"engine": {}, "accelerator": {"count": {"a": 1}}}},
    ],
)
def test_an_odd_object_ends_no_scrape(manifest: dict[str, Any]) -> None:
    telemetry = Telemetry()
    telemetry.watch_models(lambda: [model_info(manifest)])
    assert telemetry.render().count(b"\nhermetic_model_info{") == 1


def test_a_value_is_no_longer_than_the_api_allows_and_has_no_control_characters() -> None:
    label = model_info(changed(a_share_model(), model={"name": "a\n" + "b" * 5000})).model_name
    assert len(label) == LONGEST_LABEL
    assert label.isprintable()


def test_a_deleted_model_has_no_series_any_more() -> None:
    models = [model_info(a_share_model())]
    telemetry = Telemetry()
    telemetry.watch_models(lambda: models)
    assert b"hermetic_model_info{" in telemetry.render()
    models.clear()
    assert b"hermetic_model_info{" not in telemetry.render()

"""What `plan`, `validate` and the condition print of sizing: numbers only of what is computed, and the nearest size."""

from __future__ import annotations

import json

import pytest
import yaml

from hermetic.plan.model_fit import model_placement
from hermetic.sizing.facts_file import as_json
from tests.commandline import hermetic
from tests.corpus.manifests import changed
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES, facts
from tests.public_models import aiconfigurator_models
from tests.scenarios import a_share_model
from tests.snapshots import a_snapshot, spec_of

A100, H200, NEAR = "Standard_NC24ads_A100_v4", "Standard_ND96isr_H200_v5", "Standard_NC24ads_A100_v5"
L8 = facts(LLAMA_8B, LLAMA_8B_BYTES)
NUMBERS = ("overheadBytes", "keyValueBytesPerToken", "keyValueBytes", "neededBytes", "longestContext", "encoderBytes")


def manifest(model, *sizes: str, count: int = 1, **changes):
    settings = {
        "spec.weights.facts": as_json(model),
        "spec.accelerator": {"count": count, "instanceTypes": list(sizes)},
    }
    return changed(a_share_model(), settings | {f"spec.{path}": value for path, value in changes.items()})


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        pytest.param("stepfun-ai/Step-3.7-Flash", {}, id="a family"),
        pytest.param("Qwen/Qwen3-8B", {"engine.vllm.extraArgs": ["--speculative-config", "{}"]}, id="a setting"),
        pytest.param("Qwen/Qwen3-8B", {"engine.vllm.kvCacheDtype": "nvfp4"}, id="a format"),
    ],
)
def test_what_is_not_computed_has_a_reason_and_no_number(name, changes):
    model = aiconfigurator_models()[name].facts(20 * 10**9)
    document = hermetic("plan", "-f", "-", "-o", "json", stdin=yaml.safe_dump(manifest(model, A100, **changes)))
    (deployment,) = json.loads(document.out)["deployments"]
    (written,) = deployment["asWritten"]
    assert (deployment["answer"], bool(written["notComputed"])) == ("Unknown", True)
    assert {key: written[key] for key in NUMBERS} == dict.fromkeys(NUMBERS)
    text = hermetic("plan", "-f", "-", stdin=yaml.safe_dump(manifest(model, A100, **changes))).out
    assert "needed    " not in text.partition("Sizes,")[0]
    assert "not computed:" in text


def test_weights_that_a_setting_changes_have_no_number_either():
    changes = {"engine.vllm.extraArgs": ["--quantization", "fp8"]}
    document = hermetic("plan", "-f", "-", "-o", "json", stdin=yaml.safe_dump(manifest(L8, A100, **changes)))
    (written,) = json.loads(document.out)["deployments"][0]["asWritten"]
    assert written["weightsBytes"] is None


def test_sizes_that_cannot_hold_the_weights_come_behind_those_that_may():
    model = aiconfigurator_models()["sgl-project/DeepSeek-V4-Pro-FP8"].facts(690 * 10**9)
    document = hermetic("plan", "-f", "-", "-o", "json", stdin=yaml.safe_dump(manifest(model, H200, count=8)))
    sizes = json.loads(document.out)["deployments"][0]["sizes"]
    first = sizes[0]
    assert first["answer"] == "Unknown"
    assert first["allowedBytes"] * first["tensorParallelSize"] > 690 * 10**9


@pytest.mark.parametrize("name", [NEAR, "Standard_NC24ads_A100", "Standard_NC24adds_A100_v4"])
def test_a_size_that_is_not_listed_is_accepted_and_the_nearest_is_named(name):
    """It may be new: the API does not refuse it. The nearest size is named by each command and by the condition."""
    text = yaml.safe_dump(manifest(L8, name))
    validated = hermetic("validate", "-f", "-", stdin=text)
    assert validated.code == 0
    assert f"VM size {name} is not in the catalogue; did you mean {A100}?" in validated.err
    planned = hermetic("plan", "-f", "-", stdin=text)
    assert planned.code == 3
    assert f"{name}: unknown; the catalogue does not have this size; did you mean {A100}?" in planned.out
    condition = model_placement(spec_of(manifest(L8, name)), a_snapshot()).condition()
    assert (condition.status, condition.reason.value) == ("Unknown", "GpuMemoryUnknown")
    assert f"{name} (did you mean {A100}?)" in condition.message


def test_a_size_that_is_like_no_other_is_named_without_a_guess():
    validated = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(manifest(L8, "Standard_D4s_v5")))
    assert (validated.code, "did you mean" in validated.err) == (0, False)


def test_plan_names_the_nearest_size_of_a_typed_one():
    ran = hermetic("plan", "-f", "-", "--instance-type", NEAR, stdin=yaml.safe_dump(manifest(L8, A100)))
    assert ran.code == 2
    assert f"did you mean '{A100}'?" in ran.err


@pytest.mark.parametrize(
    ("sizes", "count", "resource", "cpu"),
    [
        pytest.param([A100], 8, "nvidia.com/gpu", "4", id="more GPUs than the size has"),
        pytest.param([A100], 1, "amd.com/gpu", "4", id="GPUs of another vendor"),
        pytest.param([A100], 1, "nvidia.com/gpu", "96", id="more CPUs than the size has"),
        pytest.param(["standard_nc24ads_a100_v4"], 1, "nvidia.com/gpu", "4", id="a name in other letters"),
    ],
)
def test_validate_and_plan_refuse_what_no_node_of_the_size_can_run(sizes, count, resource, cpu):
    typed = manifest(L8, *sizes, **{"resources.cpu": cpu})
    typed["spec"]["accelerator"] |= {"count": count, "resource": resource}
    validated, planned = (hermetic(command, "-f", "-", stdin=yaml.safe_dump(typed)) for command in ("validate", "plan"))
    assert (validated.code, planned.code) == (2, 2)
    assert "VmSizeUnsuitable" in validated.err
    assert "VmSizeUnsuitable" in planned.err


def test_the_states_of_a_hybrid_model_are_a_line_of_their_own():
    model = aiconfigurator_models()["Qwen/Qwen3.5-27B"].facts(54 * 10**9)
    changes = {"engine.vllm.extraArgs": ["--language-model-only"], "engine.vllm.maxModelLength": 32_768}
    text = hermetic("plan", "-f", "-", stdin=yaml.safe_dump(manifest(model, H200, **changes))).out
    assert "states of 1024 requests at a time" in text
    assert "of recurrent state" in text
    assert "encoder of images" not in text

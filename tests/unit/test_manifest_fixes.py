"""What `hermetic validate` says to do: the answer that `hermetic explain` knows, not 'correct it'."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hermetic.cli.explanations import page_of
from hermetic.cli.manifest_fixes import NOT_OFFERED
from tests.commandline import hermetic
from tests.corpus.manifests import changed, vllm_on_azure_files


def fixes(changes: dict[str, Any]) -> list[str]:
    ran = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(changed(vllm_on_azure_files(), changes)))
    assert ran.code == 2
    return ran.fixes


VLLM = "spec.engine.vllm"


@pytest.mark.parametrize(
    ("changes", "fix"),
    [
        ({f"{VLLM}.extraArgs": ["--max-model-len", "1000"]}, "leave it out, and set spec.engine.vllm.maxModelLength"),
        ({f"{VLLM}.extraArgs": ["--max_model_len=1000"]}, "leave it out, and set spec.engine.vllm.maxModelLength"),
        ({f"{VLLM}.extraArgs": ["--tensor-parallel-s", "1"]}, "and set spec.engine.vllm.tensorParallelSize"),
        ({f"{VLLM}.extraArgs": ["-tp=2"]}, "leave it out, and set spec.engine.vllm.tensorParallelSize"),
        ({f"{VLLM}.extraArgs": ["--host", "::"]}, "leave it out"),
        ({f"{VLLM}.extraEnv": [{"name": "HF_TOKEN", "value": "x"}]}, "leave it out"),
        ({f"{VLLM}.extraEnv": [{"name": "MY_TOKEN", "value": "x"}]}, "leave it out"),
        ({f"{VLLM}.version": "v0.32.0"}, 'write "0.32.0"'),
        ({f"{VLLM}.image": "contoso.azurecr.io/vllm/vllm-openai:v0.32.0"},
         "az acr repository show --name contoso --image vllm/vllm-openai:v0.32.0 --query digest --output tsv"),
        ({f"{VLLM}.image": "nvcr.io/nim:1"}, "skopeo inspect --format '{{.Digest}}' docker://nvcr.io/nim:1"),
        ({"spec.engine.version": "0.32.0"}, "move it to spec.engine.vllm.version or spec.engine.sglang.version"),
        ({"spec.maxModelLength": 4096}, "move it to spec.engine.vllm.maxModelLength"),
        ({"spec.nodeSelector": {"a": "b"}}, "move it to spec.scheduling.nodeSelector"),
        ({f"{VLLM}.env": []}, "use `extraEnv` of the engine"),
        ({"spec.weights.huggingFace": {"repository": "a/b"}}, "stage the model with 'hermetic stage'"),
        ({f"{VLLM}.gpuMemoryUtilizationPercent": 0.9}, "write 90: the field takes whole percents"),
        ({f"{VLLM}.gpuMemoryUtilizationPercent": "0.85"}, "write 85: the field takes whole percents"),
        ({f"{VLLM}.maxModelLength": -1}, "add '--max-model-len=auto' to extraArgs"),
        ({f"{VLLM}.maxModelLength": "auto"}, "add '--max-model-len=auto' to extraArgs"),
        ({f"{VLLM}.maxModelLength": "8k"}, "correct it; docs/api.md describes spec.engine.vllm.maxModelLength"),
        ({"spec.endpoint.port": 443}, "write `servicePort: 443`, and a `port` from 1024 on"),
        ({"spec.endpoint.port": 70000}, "correct it; docs/api.md describes spec.endpoint.port"),
        ({"spec.imagePullSecrets": [{"name": "x"}]}, "`imagePullSecrets` is not offered"),
    ],
    ids=lambda value: str(value)[:60],
)  # fmt: skip
def test_the_fix_is_the_answer(changes: dict[str, Any], fix: str) -> None:
    assert any(fix in line for line in fixes(changes)), fixes(changes)


def test_a_fraction_is_not_said_to_have_quotes() -> None:
    manifest = changed(vllm_on_azure_files(), {f"{VLLM}.gpuMemoryUtilizationPercent": 0.9})
    [error] = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(manifest)).errors
    assert error.endswith("gpuMemoryUtilizationPercent: 0.9: must be an integer")


@pytest.mark.parametrize("flag", ["--max-model-len", "--tool-server", "--gpu-memory-utilization", "--host"])
def test_validate_and_explain_give_the_same_reason(flag: str) -> None:
    page = page_of(flag)
    assert page is not None
    manifest = changed(vllm_on_azure_files(), {f"{VLLM}.extraArgs": [flag]})
    [error] = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(manifest)).errors
    reason = error.rpartition(f"{flag}: ")[2]
    assert reason
    assert reason in page.meaning


@pytest.mark.parametrize("name", sorted(NOT_OFFERED))
def test_a_field_that_is_not_offered_says_why_at_every_level(name: str) -> None:
    for parent in ("spec", VLLM):
        lines = fixes({f"{parent}.{name}": "x"})
        assert any(NOT_OFFERED[name] in line for line in lines), lines

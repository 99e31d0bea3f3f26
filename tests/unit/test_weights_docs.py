"""The commands of docs/weights.md run as they are written, and every reason has its page."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from hermetic.api.condition_updates import STATUS_REASONS
from hermetic.api.conditions import ConditionType
from hermetic.api.reasons import Reason
from hermetic.api.weights_reasons import WeightsReason
from hermetic.plan.cache_use import cache_use
from hermetic.weights.model_folder import PROFILES
from tests.commandline import hermetic
from tests.scenarios import a_share_model, changed
from tests.snapshots import spec_of
from tests.weights import a_model

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "weights.md").read_text(encoding="utf-8")


def test_the_commands_in_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    a_model(tmp_path / "model")
    (tmp_path / "share").mkdir()
    commands = PAGE.split("## In short")[1].split("```")[1].strip().splitlines()
    assert len(commands) == 4
    for line in commands:
        program, *arguments = shlex.split(line)
        if program == "hermetic":
            ran = hermetic(*arguments)
            assert ran.code == 0, f"{line}: {ran.err}"
        else:
            subprocess.run([program, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("reason", WeightsReason)
def test_every_reason_is_explained(reason: WeightsReason) -> None:
    assert reason.meaning in " ".join(hermetic("explain", reason.value).out.split())


def test_every_reason_and_condition_of_the_page_is_one() -> None:
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", PAGE))
    assert named
    assert named <= {name.value for name in (*STATUS_REASONS, *WeightsReason, *ConditionType)}


def test_the_commands_of_a_nim_cache_run_and_print_its_profiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "share").mkdir()
    (tmp_path / "nim-cache").mkdir()
    (tmp_path / "nim-cache" / "blob").write_text("content")
    (tmp_path / "nim-cache" / PROFILES).write_text(f"- {'a' * 64} (vllm-bf16-tp2-pp1)\n")
    commands = PAGE.split("## A NIM cache")[1].split("```")[1].strip().splitlines()
    ran = [hermetic(*shlex.split(line)[1:]) for line in commands]
    assert [run.code for run in ran] == [0, 0], ran
    assert yaml.safe_load(ran[1].out)["facts"]["nimProfiles"] == [{"id": "a" * 64, "name": "vllm-bf16-tp2-pp1"}]


def test_the_command_of_compile_caches_runs_and_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    a_model(tmp_path / "model")
    (tmp_path / "share").mkdir()
    (tmp_path / "cache" / "triton" / "A").mkdir(parents=True)
    (tmp_path / "cache" / "triton" / "A" / "kernel.cubin").write_text("compiled")
    llama = a_share_model(accelerator={"instanceTypes": ["Standard_ND96isr_H100_v5"]})
    (tmp_path / "llama.yaml").write_text(yaml.safe_dump(llama))
    chapter = PAGE.split("## Compile caches")[1].split("\n## ")[0]
    ran = hermetic(*shlex.split(chapter.split("```")[1].strip())[1:])
    assert ran.code == 0, ran.err
    printed = yaml.safe_load(ran.out[ran.out.index("\nweights:") :])["weights"]
    shown = yaml.safe_load(chapter.split("```yaml")[1].split("```")[0])["weights"]
    assert printed["caches"] == shown["caches"]
    use = cache_use(spec_of(changed(llama, weights=shown)), required=True)
    assert use is not None
    assert use.reason is Reason.CACHES_MATCH

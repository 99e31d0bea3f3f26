"""A NIM cache says which profiles it holds, and so does the model that is staged from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermetic.weights.entries import FACTS
from hermetic.weights.model_folder import PROFILES, profiles_in
from tests.commandline import hermetic
from tests.corpus.manifests import changed, nim_with_profile
from tests.snapshots import spec_of
from tests.weights import a_model, a_shard

IDS = ("dcec66a50892315842bdc46d5b2d8648fed3fe3d3382437f0a811c56eff8c39c", "0" * 63 + "a")
# The form of 'Utilities for NVIDIA NIM for LLMs', list-model-profiles.
LISTING = f"""SYSTEM INFO
- Free GPUs:
  -  [2330:10de] (0) NVIDIA H100 80GB HBM3 (H100 80GB) [current utilization: 0%]
MODEL PROFILES
- Compatible with system and runnable:
  - {IDS[0]} (tensorrt_llm-h100-fp8-tp2-pp1-throughput-2330:10de-ed15592b-1)
  - {IDS[1]} (vllm-bf16-tp2-pp1)
"""


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    hub = tmp_path / "cache" / "ngc" / "hub" / "models--nim--meta--llama"
    (hub / "blobs").mkdir(parents=True)
    (hub / "snapshots" / "fp8").mkdir(parents=True)
    a_shard(hub / "blobs" / "abc")
    (hub / "snapshots" / "fp8" / "model.safetensors").symlink_to("../../blobs/abc")
    (tmp_path / "cache" / PROFILES).write_text(LISTING)
    return tmp_path / "cache"


def facts_in(folder: Path) -> dict:
    return json.loads((folder / FACTS).read_text())["facts"]


def test_the_facts_of_a_staged_cache_name_its_profiles(cache: Path, tmp_path: Path):
    ran = hermetic("stage", cache, tmp_path / "staged", "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out.splitlines()[-1])
    assert not any("no facts" in advice for advice in document["advice"])
    assert facts_in(tmp_path / "staged")["nimProfiles"] == [
        {"id": IDS[0], "name": "tensorrt_llm-h100-fp8-tp2-pp1-throughput-2330:10de-ed15592b-1"},
        {"id": IDS[1], "name": "vllm-bf16-tp2-pp1"},
    ]
    assert hermetic("verify", tmp_path / "staged", "--digest", document["digest"]).code == 0
    listed_again = hermetic("manifest", tmp_path / "staged", "--links", "-o", "json")
    assert json.loads(listed_again.out)["files"] == document["files"]


def test_what_staging_writes_does_not_change_the_facts(cache: Path, tmp_path: Path):
    assert hermetic("stage", cache, tmp_path / "staged").code == 0
    before = facts_in(tmp_path / "staged")
    assert hermetic("manifest", tmp_path / "staged", "--links").code == 0
    assert facts_in(tmp_path / "staged") == before


def test_the_facts_that_are_printed_are_those_that_the_deployment_takes(cache: Path):
    ran = hermetic("plan", "--model", cache, "--show-facts")
    assert ran.code == 0, ran.err
    facts = yaml.safe_load(ran.out)["facts"]
    refused = changed(nim_with_profile(), {"spec.weights.facts": facts, "spec.engine.nim.profile": IDS[0]})
    assert spec_of(refused).weights.facts is not None
    validated = hermetic("validate", "-f", "-", stdin=yaml.safe_dump(refused))
    assert (validated.code, "NimProfileMismatch" in validated.err) == (2, True)
    fits = changed(refused, {"spec.accelerator": {"count": 2}})
    assert hermetic("validate", "-f", "-", stdin=yaml.safe_dump(fits)).code == 0


def test_a_model_store_keeps_the_facts_of_its_model(tmp_path: Path):
    store = a_model(tmp_path / "store")
    (store / PROFILES).write_text(LISTING)
    facts = json.loads(hermetic("plan", "--model", store, "--show-facts", "-o", "json").out)["facts"]
    assert (facts["modelType"], len(facts["nimProfiles"])) == ("llama", 2)


@pytest.mark.parametrize(
    "listing", ["", "nothing of that form", "\n".join(f"{n:064x} (vllm-bf16-tp1)" for n in range(65))]
)
def test_a_listing_of_no_or_too_many_profiles_gives_no_facts_and_says_so(cache: Path, tmp_path: Path, listing: str):
    (cache / PROFILES).write_text(listing)
    ran = hermetic("stage", cache, tmp_path / "staged")
    assert (ran.code, "no facts for sizing: nim-profiles.txt names" in ran.err) == (0, True)
    assert not (tmp_path / "staged" / FACTS).exists()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"\x00" * 100, f"{IDS[0]} (vllm-bf16-tp1; rm -rf /)".encode()])
def test_bytes_of_another_form_name_no_profile(content: bytes):
    with pytest.raises(Exception, match="names 0 profiles"):
        profiles_in(content)

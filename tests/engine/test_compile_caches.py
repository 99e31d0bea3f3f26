"""Compile caches of a real vLLM, staged with the weights: the next start uses them, and writes nothing to them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.engines.compile_caches import FOLDERS
from hermetic.objects.children import PlatformSettings, render
from hermetic.objects.weights_verifier import Verifier
from testbed.real_engine.pod import Machine, Mounts, emptydir, initialize, pod, variables
from tests.commandline import hermetic
from tests.corpus.manifests import changed
from tests.engine.asking import Client
from tests.engine.conftest import dated, keep
from tests.scenarios import DIGEST, Manifest, a_share_model
from tests.snapshots import owner_of, spec_of
from tests.weights import contents

H100, A100 = "Standard_ND96isr_H100_v5", "Standard_NC24ads_A100_v4"
TWIN = a_share_model(accelerator={"instanceTypes": [H100]})
VERIFYING = PlatformSettings(Verifier(f"contoso.azurecr.io/hermetic@sha256:{DIGEST}", "Require"))
QUESTION = {"max_tokens": 24, "temperature": 0, "ignore_eos": True}
KEYED = {"spec.endpoint.apiKey": {"secretName": "key"}}
WARMING_UP = ("Warming up model for the compilation...", "Warming up done.")
SAVED = "saved AOT compiled function to"
# The backend for CPUs of vLLM 0.32 finds and reads the compiled model, then asks it for a method that only the one for
# GPUs has. It traces the model again and takes the compiled libraries.
FOUND = re.compile(r"(?:Directly load AOT compilation from path|due to a load failure from) /home/hermetic/([^\s,]+)")
COMPILED = (".cpp", ".so", ".py")

# What vLLM hashes into the name of a compiled model's folder, of the environment and of the model.
HASHING = """
import json, os, sys
import vllm.envs as envs
from vllm.engine.arg_utils import EngineArgs

def of_the_environment():
    return json.dumps(envs.compile_factors(), sort_keys=True, default=str)

asked, before, hashed = json.load(sys.stdin), of_the_environment(), []
for name, value in asked["others"].items():
    held, os.environ[name] = os.environ[name], value
    if of_the_environment() != before:
        hashed.append(name)
    os.environ[name] = held
models = [EngineArgs(model=folder).create_model_config().compute_hash() for folder in asked["folders"]]
print(json.dumps({"variables": hashed, "models": models}))
"""


@dataclass(frozen=True)
class Start:
    """Seconds from start to ready, and those of the warm-up, in which vLLM compiles; one answer; all that it logged."""

    ready: float
    compiling: float
    answer: str
    log: str


def deployment(manifest: Manifest) -> Manifest:
    """The Deployment of an operator that verifies weights before an engine starts."""
    children = render(owner_of(manifest), spec_of(manifest), VERIFYING)
    return next(child for child in children if child["kind"] == "Deployment")


def init_containers(manifest: Manifest) -> list[str]:
    return [
        init_container["name"]
        for init_container in deployment(manifest)["spec"]["template"]["spec"].get("initContainers", ())
    ]


def served(manifest: Manifest, machine: Machine, weights: Path, home: Path) -> Start:
    """One life of the pod: its init containers, the engine until it is ready, and one answer."""
    workload, mounts = deployment(manifest), Mounts(weights, home=emptydir(home))
    initialize(workload, machine, mounts)
    with pod(workload, machine, mounts) as started:
        client = Client(machine.network)
        ready = client.until_ready(started)
        status, body = client.chat(**QUESTION)
        log = started.log.read_text(errors="replace")
    assert status == 200, body
    return Start(round(ready, 1), compiling(log), json.loads(body)["choices"][0]["message"]["content"], log)


def compiling(log: str) -> float:
    """Seconds between the lines about the warm-up, which have the time of day to the second; 1 at least."""
    began, done = (next(line for line in log.splitlines() if phrase in line) for phrase in WARMING_UP)
    return max((_time_of(done) - _time_of(began)).total_seconds(), 1)


def _time_of(line: str) -> datetime:
    match = re.search(r"\d\d-\d\d \d\d:\d\d:\d\d", line)
    assert match is not None, line
    return datetime.strptime(f"2000-{match.group()} +0000", "%Y-%m-%d %H:%M:%S %z")


def staged(model: Path, folder: Path, cache: Path, scratch: Path) -> Manifest:
    """The model and the caches in `folder`, verified, and the deployment that names them."""
    (scratch / "llama.yaml").write_text(yaml.safe_dump(TWIN))
    ran = hermetic("stage", model, folder, "--caches", cache, "--caches-for", scratch / "llama.yaml", "-o", "json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out.splitlines()[-1])
    assert hermetic("verify", folder, "--digest", document["digest"]).code == 0
    named = {"spec.weights.caches": document["caches"], "spec.weights.integrity": {"digest": document["digest"]}}
    return changed(TWIN, named)


def compiled(cache: Path, *, links: bool) -> set[str]:
    """The generated code and libraries in an engine's `.cache`: those that are links, or those that are not."""
    every = (path for folder in FOLDERS["vllm"] for path in (cache / folder).rglob("*") if path.suffix in COMPILED)
    return {str(path.relative_to(cache)) for path in every if path.is_symlink() == links}


@pytest.mark.timeout(3600)
def test_a_start_with_staged_caches_runs_no_compiler_and_answers_the_same(
    machine: Machine, whole_model: Path, tmp_path: Path
) -> None:
    load_before = round(os.getloadavg()[0], 1)
    twin, share, home = (tmp_path / name for name in ("twin", "share", "home"))
    cold = served(TWIN, machine, whole_model, twin)
    assert (SAVED in cold.log, FOUND.search(cold.log)) == (True, None)

    warm_model = staged(whole_model, share, twin / ".cache", tmp_path)
    before = contents(share)
    warm = served(warm_model, machine, share, home)
    assert warm.answer == cold.answer
    assert contents(share) == before
    assert machine.network.packets == []

    match = FOUND.search(warm.log)
    assert match is not None, warm.log[-4000:]
    assert (twin / match.group(1)).is_file()
    now = compiled(home / ".cache", links=True) | compiled(home / ".cache", links=False)
    assert now == compiled(twin / ".cache", links=False)
    assert {path for path in compiled(home / ".cache", links=False) if not path.endswith(".so")} == set()
    assert [path.is_symlink() for path in (home / ".cache/vllm/modelinfos").iterdir()] == [True]
    assert warm.compiling < cold.compiling
    seconds = {"compile_seconds": [cold.compiling, warm.compiling], "ready_seconds": [cold.ready, warm.ready]}
    keep({"compile_caches": {**dated(), **seconds}}, load_before)


def test_caches_of_another_release_gpu_or_parallelism_are_not_given_to_the_engine() -> None:
    warm = changed(
        TWIN,
        {"spec.weights.caches": [{"engine": "vllm", "version": "0.32.0", "gpu": "H100-80GB", "tensorParallelSize": 1}]},
    )
    assert init_containers(warm) == ["verify-weights", "link-cache", "copy-cache"]
    for difference in (
        {"spec.engine.vllm.version": "0.31.0"},
        {"spec.accelerator.instanceTypes": [A100]},
        {"spec.accelerator.count": 2},
    ):
        assert init_containers(changed(warm, difference)) == ["verify-weights"], difference


def test_the_engines_own_key_has_the_model_its_path_and_the_startup_budget(
    environment: Path, whole_model: Path, tmp_path: Path
) -> None:
    """vLLM looks for a compiled model below a hash: what is compiled for one key is not found with another."""
    other, elsewhere = (shutil.copytree(whole_model, tmp_path / name) for name in ("other", "elsewhere"))
    configuration = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**configuration, "rms_norm_eps": 2e-5}))
    (container,) = deployment(changed(TWIN, KEYED))["spec"]["template"]["spec"]["containers"]
    rendered = variables(container)
    probe_input = {
        "others": {name: _another(value) for name, value in rendered.items() if name.startswith("VLLM_")},
        "folders": [str(folder) for folder in (whole_model, whole_model, other, elsewhere)],
    }
    ran = subprocess.run(
        [environment / "bin" / "python", "-c", HASHING],
        input=json.dumps(probe_input),
        env={name: value.replace("/home/hermetic", str(tmp_path)) for name, value in rendered.items()},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    hashed = json.loads(ran.stdout.splitlines()[-1])
    assert hashed["variables"] == ["VLLM_ENGINE_READY_TIMEOUT_S"]
    first_hash, again, of_another_model, at_another_path = hashed["models"]
    assert first_hash == again
    assert len({first_hash, of_another_model, at_another_path}) == 3


def _another(value: str) -> str:
    """Another value of the same kind."""
    if value.isdigit():
        return "0" if value == "1" else str(int(value) + 1)
    return "/tmp/elsewhere" if value.startswith("/") else f"{value}1"

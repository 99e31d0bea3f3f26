"""The part of the demo about weights: staged and signed, one flipped bit refused, repaired in place, served."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from testbed.damaged_files import flip_a_bit
from testbed.demo.environment import DemoEnvironment, statuses
from testbed.demo.estate import HERMETIC
from testbed.demo.narration import chapter, show, watch_phases
from testbed.errors import BedError
from testbed.images.model import stage_model

NAME = "llama-pinned"
SHARD = "model.safetensors"
SHARE = "contosomodels/models"


def verified_weights(demo: DemoEnvironment) -> None:
    """Shows it on the real node of the demo, and removes the deployment again."""
    assert demo.node is not None
    chapter("A model is staged and signed, and a bit of it flips on the share: no engine starts on it")
    with tempfile.TemporaryDirectory(prefix="hermetic-weights-") as folder:
        model, staged = Path(folder) / "model", demo.node.shares / SHARE / NAME
        stage_model(model)
        integrity = _staged(Path(folder), model, staged)
        flip_a_bit(staged / SHARD)
        show(f"one bit of {SHARD} is flipped on the share; kubectl apply -f {NAME}.yaml")
        demo.kubectl.apply(_manifest(demo, integrity))
        _until(demo, "DigestMismatch")
        show("WeightsVerified: " + _condition(demo)["message"])
        show(f"{SHARD} is copied again, and nothing else is done")
        shutil.copyfile(model / SHARD, staged / SHARD)
        _until(demo, "Serving")
        show("WeightsVerified: " + _condition(demo)["message"])
    demo.kubectl("delete", "mdep", NAME, "-n", "inference", "--wait=true")


def _staged(folder: Path, model: Path, staged: Path) -> dict[str, str]:
    """Stages and signs the model with the real commands; returns `weights.integrity`."""
    private, public = folder / "platform.pem", folder / "platform.pub"
    _run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(private))
    _run("openssl", "ec", "-in", str(private), "-pubout", "-out", str(public))
    output = _run(HERMETIC, "stage", str(model), str(staged))
    digest = output.split("digest: ")[1].split()[0]
    _run(HERMETIC, "sign", str(staged), "--key", str(private), "--digest", digest)
    show(f"hermetic stage model {SHARE}/{NAME}; hermetic sign: {digest}")
    return {"digest": digest, "publicKey": public.read_text()}


def _manifest(demo: DemoEnvironment, integrity: dict[str, str]) -> dict[str, Any]:
    files = {"account": "contosomodels", "share": "models", "folder": NAME}
    weights = {"azureFiles": files, "integrity": integrity}
    manifest = demo.estate.sample("vllm-azure-files", weights=weights, replicas=1, endpoint={})
    manifest["metadata"]["name"] = NAME
    return manifest


def _ours(demo: DemoEnvironment) -> list[dict[str, Any]]:
    return [item for item in statuses(demo) if item["metadata"]["name"] == NAME]


def _condition(demo: DemoEnvironment) -> dict[str, str]:
    conditions = _ours(demo)[0]["status"]["conditions"]
    return next(condition for condition in conditions if condition["type"] == "WeightsVerified")


def _until(demo: DemoEnvironment, reason: str) -> None:
    if not watch_phases(lambda: _ours(demo), lambda phases: phases.get(NAME) == reason):
        raise BedError("the demo did not go as it should; what was last seen is above")


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BedError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout

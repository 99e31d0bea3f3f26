"""The part of the demo about weights: staged and signed, one flipped bit refused, repaired in place, served."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from testbed.damaged_files import flip_a_bit
from testbed.demo.environment import DemoEnvironment
from testbed.demo.estate import HERMETIC
from testbed.demo.models import condition, delete, until
from testbed.demo.narration import chapter, show
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
        until(demo, NAME, "DigestMismatch")
        show("WeightsVerified: " + condition(demo, NAME, "WeightsVerified")["message"])
        show(f"{SHARD} is copied again, and nothing else is done")
        shutil.copyfile(model / SHARD, staged / SHARD)
        until(demo, NAME, "Serving")
        show("WeightsVerified: " + condition(demo, NAME, "WeightsVerified")["message"])
    delete(demo, NAME)


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


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BedError(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout

"""Requests lost while adapters are added to a served model and removed again, on the real node.

The engine is the stand-in, which serves the names of `--lora-modules` as vLLM does. First the model itself is asked
while two adapters are added, then the adapter that stays while the other one is removed.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.rolling_update import (
    NAME,
    NAMESPACE,
    SERVED,
    install_operator,
    is_ready,
    sample,
    served,
    update_under_load,
)
from testbed.api import Api
from testbed.demo.estate import HERMETIC, Estate, stage_weights
from testbed.images.model import model_files
from testbed.node.handle import RunningNode, running_node

SHARE = "contosomodels/models"
FOLDER = "llama-3-1-8b/adapters"
SECONDS = 110
"""Of load for each update: more than 10,000 requests in all on a machine of two cores that is busy."""
STAYS, GOES = "support-de", "sql"
CONFIGURATION = {
    "base_model_name_or_path": SERVED,
    "peft_type": "LORA",
    "r": 16,
    "lora_alpha": 32,
    "target_modules": ["q_proj", "v_proj"],
    "bias": "none",
}


def measure() -> dict[str, Any]:
    """Two rolling updates of two replicas: adapters are added, and one of them is removed."""
    with tempfile.TemporaryDirectory(prefix="hermetic-bench-") as folder:
        estate, shares = Estate.prepare(Path(folder)), Path(folder) / "shares"
        stage_weights(shares)
        adapters = [_staged(shares / SHARE / FOLDER / name) for name in (STAYS, GOES)]
        options = ("--images", str(estate.archive), "--shares", str(shares), "--gpus", "4")
        with running_node(*options) as node:
            install_operator(node, estate, Path(folder))
            return _measured(node, estate, adapters)


def _measured(node: RunningNode, estate: Estate, adapters: list[dict[str, Any]]) -> dict[str, Any]:
    api = Api(node.kubeconfig)
    node.kubectl.apply(sample(estate))
    url = served(api)

    def ready() -> bool:
        return is_ready(api)

    added = update_under_load(node, url, lambda: _set_adapters(node, adapters), ready, seconds=SECONDS)
    removed = update_under_load(
        node, url, lambda: _set_adapters(node, adapters[:1]), ready, model=STAYS, seconds=SECONDS
    )
    return {"added": added, "removed": removed, "loadSeconds": SECONDS}


def _staged(folder: Path) -> dict[str, Any]:
    """An adapter on the share, with its manifest; returns its entry of `spec.adapters`."""
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIGURATION))
    (folder / "adapter_model.safetensors").write_bytes(model_files()["model.safetensors"])
    command = [HERMETIC, "manifest", str(folder), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    integrity = {"digest": str(json.loads(done.stdout)["digest"])}
    return {"name": folder.name, "folder": f"{FOLDER}/{folder.name}", "rank": 16, "integrity": integrity}


def _set_adapters(node: RunningNode, adapters: list[dict[str, Any]]) -> None:
    patch = json.dumps({"spec": {"adapters": adapters}})
    node.kubectl("--namespace", NAMESPACE, "patch", "mdep", NAME, "--type=merge", "-p", patch)

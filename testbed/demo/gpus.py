"""The part of the demo about GPUs: a fault keeps the engine from starting, and the repair is enough."""

from __future__ import annotations

from typing import Any

from testbed.demo.environment import DemoEnvironment
from testbed.demo.models import condition, delete, until
from testbed.demo.narration import chapter, show

NAME = "llama-checked"
PENDING_ROW_REMAP = (0, 1, 1, 0)
"""NVML's counts of rows: remapped after corrected errors, after uncorrectable ones, pending, failed."""


def checked_gpus(demo: DemoEnvironment) -> None:
    """Shows it on the real node of the demo, and removes the deployment again."""
    assert demo.node is not None
    chapter("A GPU has a row remap that waits for a reset: no engine starts on it")
    with demo.node.faulty_gpu(rows=PENDING_ROW_REMAP):
        show(f"kubectl apply -f {NAME}.yaml, with accelerator.preflight.policy Require")
        demo.kubectl.apply(_manifest(demo))
        until(demo, NAME, "RowRemapPending")
        show("AcceleratorsHealthy: " + condition(demo, NAME, "AcceleratorsHealthy")["message"])
    show("the platform team resets the GPU (nvidia-smi --gpu-reset), and nothing else is done")
    until(demo, NAME, "Serving")
    show("AcceleratorsHealthy: " + condition(demo, NAME, "AcceleratorsHealthy")["message"])
    show("the stand-in image has no torch, so that computing was not checked: Unknown, and never a pass")
    delete(demo, NAME)


def _manifest(demo: DemoEnvironment) -> dict[str, Any]:
    manifest = demo.estate.sample("vllm-azure-files", replicas=1, endpoint={})
    manifest["metadata"]["name"] = NAME
    manifest["spec"]["accelerator"]["preflight"] = {"policy": "Require"}
    return manifest

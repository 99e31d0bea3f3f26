"""Conditions of a node's GPUs, as the node problem detector of AKS sets them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.condition_updates import is_true

GPU_CONDITIONS = (
    "GPUMissing",
    "NVLinkStatusInactive",
    "XIDErrors",
    "IBLinkFlapping",
    "GPUClockThrottling",
    "UnhealthyNvidiaDevicePlugin",
)
"""Set on GPU pools of AKS, and not on those with `--gpu-driver none`; True is a fault
(https://learn.microsoft.com/azure/aks/node-problem-detector)."""


def gpu_faults(node: Mapping[str, Any]) -> tuple[str, ...]:
    """The conditions that are True. One that is absent or Unknown says nothing, and is no fault."""
    return tuple(condition for condition in GPU_CONDITIONS if is_true(node, condition))

"""The cost of keeping a part of the weights in the memory of the node."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.sizing.load_time import pcie_rate
from hermetic.sizing.memory import Fit

USABLE_STEPS = 10
"""Steps per second below which offloading is not advised: one step makes one token of every request."""


@dataclass(frozen=True, slots=True)
class Offload:
    """`missing` bytes of each GPU stay in the memory of the node and pass PCIe once per step."""

    missing: int
    seconds_per_step: float
    advised: bool


def offload(found: Fit) -> Offload | None:
    """The cost of the missing bytes; None where nothing is missing, or it cannot be computed."""
    needed = found.needed
    if needed is None or needed <= found.allowed:
        return None
    missing = min(needed - found.allowed, found.weights)
    seconds = missing / pcie_rate(found.gpu)
    return Offload(missing, seconds, seconds * USABLE_STEPS <= 1)

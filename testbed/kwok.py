"""Fake nodes: kwok simulates the kubelet of every node that carries the annotation `kwok.x-k8s.io/node: fake`."""

from __future__ import annotations

from pathlib import Path

import yaml

from testbed.failure_modes import failure_stages, unless_a_failure_mode
from testbed.programs import STOCK_STAGES, stock_stages

FAKE = {"kwok.x-k8s.io/node": "fake"}

FLAGS = (
    "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
    "--cidr=10.0.0.0/24",
    "--node-ip=10.0.0.1",
    "--node-lease-duration-seconds=40",
)


def write_stages(path: Path) -> Path:
    """Writes kwok's configuration: the stock stages of nodes and pods, and those of our failure modes."""
    stock = stock_stages()
    quiet = [unless_a_failure_mode(yaml.safe_load((stock / name).read_text())) for name in STOCK_STAGES]
    path.write_text(yaml.safe_dump_all([*quiet, *failure_stages()], sort_keys=False, width=1000))
    return path

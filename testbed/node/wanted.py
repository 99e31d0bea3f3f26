"""What the caller of `python -m testbed node` asked for, handed on to the process inside as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

GPU_NODE_LABELS = {
    "hermetic.test/real": "true",
    "kubernetes.azure.com/agentpool": "gpu",
    "kubernetes.azure.com/accelerator": "nvidia",
    "node.kubernetes.io/instance-type": "Standard_NC24ads_A100_v4",
}


@dataclass(frozen=True)
class Wanted:
    """`folder` holds everything of the node; `images` are tars to import before the first pod."""

    folder: Path
    shares: Path
    images: tuple[Path, ...] = ()
    gpus: int = 0
    gpu_resource: str = "nvidia.com/gpu"
    labels: Mapping[str, str] = field(default_factory=lambda: dict(GPU_NODE_LABELS))
    audit_users: tuple[str, ...] | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        given = json.loads(text)
        users = given["audit_users"]
        return cls(
            folder=Path(given["folder"]),
            shares=Path(given["shares"]),
            images=tuple(map(Path, given["images"])),
            gpus=given["gpus"],
            gpu_resource=given["gpu_resource"],
            labels=given["labels"],
            audit_users=None if users is None else tuple(users),
        )

    @property
    def csi_calls(self) -> Path:
        return self.folder / "csi-calls.jsonl"

    @property
    def unhealthy_gpus(self) -> Path:
        return self.folder / "unhealthy-gpus"

"""The options of `python -m testbed node`, passed to the process inside as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

from testbed.fleet import SIZES, Size

DEFAULT_SIZE = "Standard_NC96ads_A100_v4"


@dataclass(frozen=True)
class NodeOptions:
    """`folder` holds everything of the node; `images` are tars to import before the first pod; `size` is an Azure size
    that the node takes itself for, with `gpus` of its GPUs working; `gpu_driver`: containers get a simulated driver.
    There are 1 or 2 such `nodes`; with `enforces_policies` NetworkPolicies hold between them."""

    folder: Path
    shares: Path
    images: tuple[Path, ...] = ()
    size_name: str = DEFAULT_SIZE
    gpus: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    audit_users: tuple[str, ...] | None = None
    gpu_driver: bool = False
    nodes: int = 1
    enforces_policies: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        document = json.loads(text)
        users = document["audit_users"]
        return cls(
            folder=Path(document["folder"]),
            shares=Path(document["shares"]),
            images=tuple(map(Path, document["images"])),
            gpus=document["gpus"],
            size_name=document["size_name"],
            labels=document["labels"],
            audit_users=None if users is None else tuple(users),
            gpu_driver=document["gpu_driver"],
            nodes=document["nodes"],
            enforces_policies=document["enforces_policies"],
        )

    @property
    def size(self) -> Size:
        return SIZES[self.size_name]

    @property
    def csi_calls(self) -> Path:
        return self.folder / "csi-calls.jsonl"

    @property
    def unhealthy_gpus(self) -> Path:
        return self.folder / "unhealthy-gpus"

    @property
    def gpu_states(self) -> Path:
        """The folder that the simulated driver reads."""
        return self.folder / "gpu-states"

    def of_second_node(self) -> Self:
        """The same for the second node: a folder of its own, and the shares and the calls of both in one place."""
        return replace(self, folder=self.folder / "second")

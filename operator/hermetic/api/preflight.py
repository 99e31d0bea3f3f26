"""`spec.accelerator.preflight` and the operator's `preflight`: how GPUs are checked before an engine starts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from hermetic.api.rules import ApiModel, Rule
from hermetic.api.strictness import Strictness

PreflightPolicy = Literal["Require", "Warn", "Off"]
PREFLIGHT_POLICIES: Strictness[PreflightPolicy] = Strictness(("Require", "Warn", "Off"))

FloorRate = Annotated[int, Field(ge=1, le=1_000_000)]


class Preflight(ApiModel):
    """The checks of the GPUs that every pod makes before its engine starts."""

    policy: PreflightPolicy = "Warn"
    """Require: no engine starts on GPUs with a fault. Warn: they are checked, the status says what is wrong, and the
    engine starts. "Off" (quote it): they are not checked. The operator's configuration sets the least that counts: less
    is raised to it. Default: Warn."""


class AcceleratorFloors(ApiModel):
    """The lowest rates of a healthy VM of one size, as the checks measure them; at least one."""

    RULES = (
        Rule(
            cel="",
            message="must set at least one of `teraflops`, `memoryGBs`, `hostGBs`, `peerGBs` and `allReduceGBs`",
            holds=lambda floors: any(rate is not None for rate in dict(floors).values()),
        ),
    )

    teraflops: FloorRate | None = None
    """TFLOP/s of each GPU in bf16, 1 to 1000000. Default: none."""
    memory_gbs: Annotated[FloorRate | None, Field(alias="memoryGBs")] = None
    """GB/s (10^9 bytes) of a copy within the memory of each GPU, read and written, 1 to 1000000. Default: none."""
    host_gbs: Annotated[FloorRate | None, Field(alias="hostGBs")] = None
    """GB/s between pinned memory of the host and each GPU, in the slower direction, 1 to 1000000. Default: none."""
    peer_gbs: Annotated[FloorRate | None, Field(alias="peerGBs")] = None
    """GB/s of a copy between the slowest pair of GPUs, 1 to 1000000. Default: none."""
    all_reduce_gbs: Annotated[FloorRate | None, Field(alias="allReduceGBs")] = None
    """Bus bandwidth in GB/s of an all-reduce over all GPUs of the VM, 1 to 1000000. Default: none."""


class PreflightFloor(ApiModel):
    """How GPUs are checked before an engine starts."""

    minimum_policy: PreflightPolicy = "Off"
    """The least `accelerator.preflight.policy` that counts: a deployment that asks for less is treated as if it asked
    for this. Require, Warn or "Off" (quote it). Default: "Off", and a deployment that says nothing has Warn."""
    floors: Annotated[dict[str, AcceleratorFloors], Field(max_length=64)] = {}
    """Rates by VM size that you have measured on healthy nodes: below one of them `AcceleratorsHealthy` is False. They
    take the place of those that are shipped with Hermetic, which are published for other programs and only warn.
    Default: none.

    floors: {Standard_NC80adis_H100_v5: {peerGBs: 230}}"""


class AcceleratorStatus(ApiModel):
    """What the checks of one pod's GPUs found. Rates are those of its slowest GPU, in whole GB/s (10^9 bytes)."""

    pod: Annotated[str, StringConstraints(max_length=253)]
    """The pod."""
    node: Annotated[str, StringConstraints(max_length=253)]
    """The node of the pod."""
    verdict: Literal["Pass", "Warn", "Fail", "Unknown"]
    """Fail: a fault of a GPU. Warn: a limit that is worth a look. Unknown: something could not be checked."""
    gpus: Annotated[int, Field(ge=0)]
    """GPUs that the driver showed."""
    driver: Annotated[str, StringConstraints(max_length=64)] | None = None
    """Release of the GPU driver; absent where it was not read."""
    seconds: Annotated[int, Field(ge=0)]
    """How long the checks took."""
    teraflops: Annotated[int, Field(ge=0)] | None = None
    """TFLOP/s in bf16; absent where it was not measured, as are the other rates."""
    memory_gbs: Annotated[Annotated[int, Field(ge=0)] | None, Field(alias="memoryGBs")] = None
    """A copy within the memory of a GPU, read and written."""
    host_gbs: Annotated[Annotated[int, Field(ge=0)] | None, Field(alias="hostGBs")] = None
    """Between pinned memory of the host and a GPU, in the slower direction."""
    peer_gbs: Annotated[Annotated[int, Field(ge=0)] | None, Field(alias="peerGBs")] = None
    """A copy between the slowest pair of GPUs."""
    all_reduce_gbs: Annotated[Annotated[int, Field(ge=0)] | None, Field(alias="allReduceGBs")] = None
    """Bus bandwidth of an all-reduce over all GPUs of the pod."""

"""The results of a gate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hermetic.api.condition_updates import StatusReason
from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.plan.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Holds:
    """The condition of the gate is met."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The condition of the gate is not met, or (`truth` Unknown) not known; `condition` is the type that it sets.

    `field` is the path of the field at fault, where the reason alone does not name it.
    """

    reason: StatusReason
    message: str
    condition: ConditionType | None = None
    truth: Literal["False", "Unknown"] = "False"
    field: str = ""


Verdict = Holds | Blocks
Gate = Callable[[ModelDeploymentSpec, ClusterSnapshot], Verdict]
HOLDS = Holds()

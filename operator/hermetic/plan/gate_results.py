"""What a gate answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hermetic.api.conditions import ConditionType
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.reasons import Reason
from hermetic.plan.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Holds:
    """The question is answered with yes."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The question is answered with no, or (`truth` Unknown) cannot be answered; `condition` is the one it decides.

    `field` is the path of what it is about, where the reason alone does not say so.
    """

    reason: Reason
    message: str
    condition: ConditionType | None = None
    truth: Literal["False", "Unknown"] = "False"
    field: str = ""


Verdict = Holds | Blocks
Gate = Callable[[ModelDeploymentSpec, ClusterSnapshot], Verdict]
HOLDS = Holds()

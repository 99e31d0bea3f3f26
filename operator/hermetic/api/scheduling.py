"""`spec.scheduling` and tolerations: where pods may run, and what they may displace."""

from __future__ import annotations

from typing import Literal

from hermetic.api.field_types import LabelKey, Labels, LabelValue, ObjectName
from hermetic.api.rules import ApiModel, Rule


class Toleration(ApiModel):
    """A taint that the pods accept."""

    RULES = (
        Rule(
            cel="has(self.key) || self.operator == 'Exists'",
            message="must set `key`, or `operator` 'Exists' to accept every taint",
            holds=lambda toleration: toleration.key is not None or toleration.operator == "Exists",
        ),
        Rule(
            cel="!has(self.value) || self.value == '' || self.operator == 'Equal'",
            message="must not be set with `operator` 'Exists', which accepts every value",
            holds=lambda toleration: not toleration.value or toleration.operator == "Equal",
            field=".value",
            show="'\\'' + self.value + '\\''",
        ),
    )

    key: LabelKey | None = None
    """Key of the taint. Default: every key (then `operator` must be 'Exists')."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """How `value` is compared. Default: Equal."""
    value: LabelValue | None = None
    """Value of the taint. Default: empty."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Default: every effect."""


class Scheduling(ApiModel):
    """Priority and nodes of the pods, of what the operator's configuration allows in this namespace."""

    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods, one that `priorityClasses` of the operator's configuration lists. Default: the
    cluster's default class."""
    node_selector: Labels = {}
    """Labels that a node must have, each one that `nodeLabels` of the operator's configuration lists. For VM sizes use
    `accelerator.instanceTypes`. Default: every node that has the GPUs."""

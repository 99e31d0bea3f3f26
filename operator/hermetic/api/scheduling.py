"""`spec.scheduling`: where pods may run, and what they may displace."""

from __future__ import annotations

from hermetic.api.field_types import Labels, ObjectName
from hermetic.api.rules import ApiModel


class Scheduling(ApiModel):
    """Priority and nodes of the pods, of what the operator's configuration allows in this namespace."""

    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods, one that `priorityClasses` of the operator's configuration lists. Default: the
    cluster's default class."""
    node_selector: Labels = {}
    """Labels that a node must have, each one that `nodeLabels` of the operator's configuration lists. For VM sizes use
    `accelerator.instanceTypes`. Default: every node that has the GPUs."""

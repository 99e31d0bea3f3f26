"""What the status says of groups: the list `status.groups`, and why the model is not Ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hermetic.api.modeldeployment_status import MOST_GROUPS
from hermetic.api.pod_reasons import PodReason
from hermetic.api.text import cut_middle
from hermetic.plan.pod_diagnosis import PodDiagnosis
from hermetic.plan.writes import GroupReport

_LONGEST = 900


def groups_status(groups: Sequence[GroupReport]) -> list[dict[str, Any]]:
    """The list `status.groups`, by index; of more than a status shows, those first that do not serve."""
    shown = groups
    if len(groups) > MOST_GROUPS:
        troubled = [group for group in groups if group.state != "Serving"]
        names = {group.name for group in [*troubled, *groups][:MOST_GROUPS]}
        shown = [group for group in groups if group.name in names][:MOST_GROUPS]
    return [group.as_status() for group in shown]


def has_older_pods(groups: Sequence[GroupReport]) -> bool:
    """Whether a change of the spec has not reached every group yet: pods of an earlier one run or end."""
    return any(group.has_older_pods for group in groups)


def with_groups(groups: Sequence[GroupReport], diagnosis: PodDiagnosis | None) -> PodDiagnosis | None:
    """Why the model does not serve: a group that was stopped for an incident first, then what pods say, then waiting.

    `diagnosis`: of the pods, without regard to groups.
    """
    stopped = next((group for group in groups if group.reason is not None), None)
    if stopped is not None and stopped.reason is not None:
        return PodDiagnosis(stopped.reason, cut_middle(f"group '{stopped.name}': {stopped.message}", _LONGEST))
    waiting = next((group for group in groups if group.state == "Waiting" and group.message), None)
    if waiting is not None and diagnosis is not None and diagnosis.reason is PodReason.UNSCHEDULABLE:
        message = f"group '{waiting.name}': {waiting.message}: {diagnosis.message}"
        return PodDiagnosis(PodReason.GROUP_WAITING, cut_middle(message, _LONGEST))
    return diagnosis

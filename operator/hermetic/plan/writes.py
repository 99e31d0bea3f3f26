"""What a plan writes: children to apply, objects to delete, and what prevents further writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from hermetic.api.modeldeployment_status import GroupState
from hermetic.api.pod_reasons import PodReason
from hermetic.kinds import Kind
from hermetic.plan.gate_results import Blocks, Holds
from hermetic.plan.model_fit import ModelPlacement
from hermetic.plan.snapshot import ChildKey

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A manifest to apply, and why: the object is absent, the spec changed, or the live object drifted.

    `patch` is sent instead where other managers own fields of the live object, which an apply would leave there.
    """

    manifest: Manifest
    why: Literal["absent", "changed", "drifted"]
    patch: Manifest | None = None


@dataclass(frozen=True, slots=True)
class Contested:
    """A child that others change back as often as it is corrected: which place, and the field managers that own it."""

    child: ChildKey
    place: str = ""
    writers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Deletion:
    """A live object to delete, with uid and resourceVersion of the snapshot as preconditions.

    `public_address`: the public address of the object, "" if none. Such an object, and any with `is_urgent`, is deleted
    before anything else is written, even if other writes are refused.
    """

    kind: Kind
    namespace: str | None
    name: str
    uid: str
    resource_version: str
    why: str
    public_address: str = ""
    is_urgent: bool = False

    @property
    def urgent(self) -> bool:
        """Whether it is deleted before anything else is written."""
        return self.is_urgent or bool(self.public_address)


@dataclass(frozen=True, slots=True)
class GroupReport:
    """A group for the status. `pods`: those that serve, of all; `reason`: why it was stopped, if not on purpose.

    `has_older_pods`: of an earlier spec, that run or end.
    """

    name: str
    state: GroupState
    pods: str
    restarts: int
    message: str = ""
    reason: PodReason | None = None
    has_older_pods: bool = False

    def as_status(self) -> dict[str, Any]:
        """An item of `status.groups`."""
        message = {"message": self.message} if self.message else {}
        return {"name": self.name, "state": self.state, "pods": self.pods, "restarts": self.restarts, **message}


@dataclass(frozen=True, slots=True)
class Plan:
    """What must be written, in order, and what prevents further writes.

    `blocked`: the first gate that keeps pods from being created. `isolation`: the verdict of the isolation gate, which
    with enforcement Report is reported without blocking. `held`: a change of the workload waits for that gate.
    `contested`: children that others change back as often as they are corrected. `placement`: the model on the VM sizes
    that its pods may get; None for a spec without facts. `groups`: of a model of several nodes, by index.
    """

    apply: tuple[Change, ...] = ()
    delete: tuple[Deletion, ...] = ()
    blocked: Blocks | None = None
    isolation: Holds | Blocks | None = None
    held: bool = False
    contested: tuple[Contested, ...] = ()
    requeue_at: datetime | None = None
    placement: ModelPlacement | None = None
    groups: tuple[GroupReport, ...] = ()

"""What every kind of object that runs pods answers, so that no other module depends on the kind.

A replica is one copy of a model, and `replicas` counts copies; `pods` counts pods, of which a replica may have several.
Of a kind that `is_grouped` each replica is a group with an object of its own, which asks for all of its pods or none.
The pod template is at `spec.template` in every kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import Launch
from hermetic.kinds import Kind
from hermetic.objects.child_metadata import ChildMetadata
from hermetic.objects.names import Owner, template_of

Manifest = dict[str, Any]
Live = Mapping[str, Any]
Pod = Mapping[str, Any]

HeadAddresses = tuple[str, ...] | None
"""The address of the head of each group, by index, "" for one that is not known yet: that group cannot be built. None
where no cluster is asked."""

HOLD = "hermetic-hold"
"""The mark of the template that starts nothing, and the name of its scheduler, which no scheduler has."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the controller reports of the present generation; before it has observed that generation, nothing.

    `completed_at`: when the rollout was complete; None while it is in progress. `refusal`: the answer of the API server
    to a pod that the controller could not create; None if it could create all. `is_overdue`: the deadline for progress
    has passed.
    """

    completed_at: datetime | None = None
    refusal: str | None = None
    is_overdue: bool = False


@dataclass(frozen=True, slots=True)
class Workload:
    """The object that runs a model's pods, as it was last observed; if it is absent, `live` is None and `template` {}.

    It asks for `replicas`; of these, `existing_replicas` have pods and `serving_replicas` serve. Of the
    `existing_pods`, `updated_pods` are of the template and `serving_pods` serve. `is_observed`: the counts are of the
    present generation. `groups`: what runs each replica, by index, where it has an object of its own; all fields above
    are then sums, and `live` and `template` those of the first group that asks for pods, or else of the first.
    """

    kind: WorkloadKind
    live: Live | None
    template: Mapping[str, Any]
    replicas: int
    existing_replicas: int
    serving_replicas: int
    existing_pods: int
    updated_pods: int
    serving_pods: int
    is_observed: bool
    groups: tuple[Workload, ...] = ()

    @property
    def parts(self) -> tuple[Workload, ...]:
        """One for each object that runs pods."""
        return self.groups or (self,)

    @property
    def name(self) -> str:
        """The name of the object; "" if it is absent."""
        return "" if self.live is None else str(self.live["metadata"]["name"])

    @property
    def kind_name(self) -> str:
        """The kind in messages, for example "Deployment"."""
        return self.kind.resource.kind

    @property
    def rollout(self) -> Rollout:
        """How far the template is rolled out."""
        return Rollout() if self.live is None or not self.is_observed else self.kind.rollout(self.live)

    def is_present(self, pod: Pod) -> bool:
        """Whether the pod is of the template (of one of the templates, of groups), by its mark."""
        return bool(mark := template_of(pod)) and any(mark == template_of(part.template) for part in self.parts)


class WorkloadKind(Protocol):
    """One kind: it builds the object, reads what its controller reports, and tells which pods are the controller's."""

    @property
    def resource(self) -> Kind:
        """The kind of the object in the API."""

    @property
    def merge_keys(self) -> Mapping[str, tuple[str, ...]]:
        """As in the table of children."""

    @property
    def is_grouped(self) -> bool:
        """Whether each replica has an object of its own."""

    @property
    def filled(self) -> Mapping[str, Any]:
        """What the API server fills in beyond the pod template, by place."""

    def runs(self, spec: ModelDeploymentSpec, /) -> bool:
        """Whether it runs the pods of this spec. For every spec, one kind does."""

    def names(self, name: str, model: str, /) -> bool:
        """Whether an object of this name runs pods of the model of that name."""

    def pods_per_replica(self, spec: ModelDeploymentSpec, /) -> int:
        """How many pods a replica has."""

    def answering(self, owner: Owner, /) -> Mapping[str, str]:
        """The labels of the pods that answer clients."""

    def build(
        self,
        owner: Owner,
        spec: ModelDeploymentSpec,
        launch: Launch,
        extra: ChildMetadata,
        head_addresses: HeadAddresses,
        /,
    ) -> tuple[Manifest, ...]:
        """The objects for a spec. `extra`: labels and annotations for their pods."""

    def scaled(self, manifest: Live, replicas: int, owner: Owner, engine: str, /) -> Manifest:
        """The same object with another number of replicas and the same pod template. `manifest`: live or rendered."""

    def held(self, manifest: Live, replicas: int, waiting_pods: int, owner: Owner, engine: str, /) -> Manifest:
        """The object, changed during a rollout so that `replicas` that have started stay and the waiting pods go.

        Its pod template has the mark and the scheduler `HOLD`.
        """

    def observe(self, live: Live | None, /) -> Workload:
        """What the object asks for, and what its controller last reported."""

    def rollout(self, live: Live, /) -> Rollout:
        """How far the controller says the template is rolled out. `live`: its present generation is observed."""

    def controller_of_pods(self, owner: Owner, /) -> str:
        """What controls a pod, in messages, for example "a ReplicaSet of Deployment 'llama'"."""

    def revision_of(self, pod: Pod, owner: Owner, /) -> str:
        """What pods of one template have in common and no pods of another have; "" for a pod that is not controlled."""

    def member_labels(self, pod: Pod, owner: Owner, /) -> Mapping[str, str]:
        """The labels that a pod has by its name, which cannot change; {} for a pod of another kind."""

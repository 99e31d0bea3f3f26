"""Frozen input of every decision about one ModelDeployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hermetic.api.condition_updates import condition_of
from hermetic.api.configuration import Configuration
from hermetic.kinds import Kind
from hermetic.objects.names import Owner
from hermetic.objects.workloads.registry import observed_workload
from hermetic.objects.workloads.workload_kind import Workload

if TYPE_CHECKING:  # for `hermetic render`: building the models of the audit takes 20 ms
    from hermetic.api.egressaudit import Verdict


@dataclass(frozen=True, slots=True, order=True)
class Exposure:
    """An object that is not a child, leads to the model's pods and is not known to be private; why, and its writer."""

    kind: str
    namespace: str
    name: str
    why: str
    writer: str = ""


ChildKey = tuple[str, str]  # (kind, name)


@dataclass(frozen=True, slots=True)
class IsolationEvidence:
    """The status of the EgressAudit. `verdict` is None until its present generation was evaluated.

    `observed_at` and `expires_at` are those of the attestation; `sources` are those of "azure", "kubernetes" and
    "probe" that were evaluated. `reason` is that of its condition Ready. `confirmed_at` is when this process last
    computed a Pass itself: a status may be old, or written by another client.
    """

    verdict: Verdict | None
    message: str = ""
    reason: str = ""
    observed_at: datetime | None = None
    expires_at: datetime | None = None
    sources: frozenset[str] = frozenset()
    confirmed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """The facts of a node that scheduling, image volumes and the health of its GPUs depend on.

    `runtime_version` as "containerd://2.2.4", `kubelet_version` as "v1.36.4"; "" where the node has not reported it.
    `labels` are all labels of the node. `faults` are the conditions of GPUs that its node problem detector has set.
    """

    name: str
    pool: str
    instance_type: str
    runtime_version: str
    kubelet_version: str
    gpus: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Warned:
    """The newest warning event about an object."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A ModelDeployment of a group that shares one route, and what was observed of it.

    `asks` is what all members must have alike: gateway, host name, path and model name, each as text. `may_write`: it
    has a workload and is not being deleted. `is_blocked`: something that only a person can mend may keep it from
    writing.
    """

    owner: Owner
    weight: int
    port: int
    asks: tuple[str, ...]
    serves: bool = False
    has_service: bool = False
    may_write: bool = False
    is_blocked: bool = False
    is_deleting: bool = False


@dataclass(frozen=True, slots=True)
class GatewayFacts:
    """What was observed of the Gateway that a ModelDeployment names.

    `manifest`: None for a Gateway that does not exist or that the configuration does not list. `exposed_by`: a Service
    in front of its pods that is not private, and why; "" for none. `path_holder`, `model_name_holder`: the other
    ModelDeployment that the path, and the model's name in the header, lead to; "" for none. `members`: of its group,
    the oldest first, itself among them. `abandoned`: names of live routes of groups that nobody asks for any more.
    """

    manifest: Mapping[str, Any] | None = None
    exposed_by: str = ""
    path_holder: str = ""
    model_name_holder: str = ""
    members: tuple[GroupMember, ...] = ()
    abandoned: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClusterSnapshot:
    """Everything that was observed, at one moment.

    `children` holds the live objects with the operator's label, by (kind, name); `pods` reduced projections of pods;
    `warnings` the newest warning event by the uid of its object; `address_holder` the name of the other ModelDeployment
    that the load balancer address belongs to, or "". `backed_off` holds, by child, the digests of manifests not
    applied again during drift back-off. `exposures` are objects, not children, that lead to the pods from outside,
    `unseen` the kinds of such objects that are served and may not be listed, `absent` those that the cluster does not
    serve, `malformed` those of which an object was
    not understood. `pods_truncated`: more pods have this model's label or ServiceAccount than the bound of `pods`.
    `resource_version` is that of the ModelDeployment: a status based on an older one must not be written. `labels` and
    `annotations` are those of the ModelDeployment that `modelMetadata` of the configuration names. `gateway` is about
    `endpoint.gateway`.
    """

    owner: Owner
    generation: int
    policy: Configuration
    deleting: bool = False
    status: Mapping[str, Any] = field(default_factory=dict)
    children: Mapping[ChildKey, Mapping[str, Any]] = field(default_factory=dict)
    pods: tuple[Mapping[str, Any], ...] = ()
    warnings: Mapping[str, Warned] = field(default_factory=dict)
    nodes: tuple[NodeFacts, ...] = ()
    evidence: IsolationEvidence | None = None
    address_holder: str = ""
    server_version: tuple[int, int] = (1, 36)
    backed_off: Mapping[ChildKey, frozenset[str]] = field(default_factory=dict)
    exposures: tuple[Exposure, ...] = ()
    unseen: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    malformed: tuple[str, ...] = ()
    pods_truncated: bool = False
    resource_version: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    gateway: GatewayFacts = GatewayFacts()

    def child(self, kind: Kind, name: str = "") -> Mapping[str, Any] | None:
        """The live child of this kind, by default the one with the ModelDeployment's own name."""
        return self.children.get((kind.kind, name or self.owner.name))

    @cached_property
    def workload(self) -> Workload:
        """What runs the pods."""
        return observed_workload(self.children, self.owner)

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """The condition of this type as the status holds it now."""
        return condition_of(self.status, kind)


def last_end(container_status: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """How the container ended: now, or before its present start; None for one that has not ended."""
    states = (container_status.get("state") or {}, container_status.get("lastState") or {})
    return next((state["terminated"] for state in states if state.get("terminated")), None)

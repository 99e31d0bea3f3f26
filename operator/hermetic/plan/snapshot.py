"""One frozen look at everything that a decision about one ModelDeployment may rest on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hermetic.api.configuration import Configuration
from hermetic.kinds import Kind
from hermetic.objects.names import Owner

if TYPE_CHECKING:  # `hermetic render` comes by here, and the models of the audit take 20 ms to build
    from hermetic.api.egressaudit import Verdict


@dataclass(frozen=True, slots=True, order=True)
class WayIn:
    """An object of others that leads to the pods of a model and is not known to be private: why, and who wrote it."""

    kind: str
    namespace: str
    name: str
    why: str
    writer: str = ""


ChildKey = tuple[str, str]  # (kind, name)


@dataclass(frozen=True, slots=True)
class IsolationEvidence:
    """What the EgressAudit says. `verdict` is None until it was judged at its present generation.

    `observed_at` and `expires_at` are those of the attestation from outside; `sources` are the looks that were taken:
    of "azure", "kubernetes" and "probe". `reason` is that of its condition Ready. `confirmed_at` is when this process
    last came to a Pass itself: what a status says may be of another time, or of another hand.
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
    """What scheduling and image volumes need to know of a node."""

    name: str
    pool: str
    instance_type: str
    runtime_version: str
    gpus: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Warned:
    """The newest warning event about an object."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """Everything that was seen, at one moment, without asking again.

    `children` holds the live objects that carry our label, by (kind, name); `pods` slim projections of the pods;
    `warnings` the newest warning event by the uid of what it is about; `address_holder` the name of the
    other ModelDeployment that the load balancer address belongs to, or "". `truces` holds, by child, the digests of
    what is not applied again for a while, because somebody changes it back each time. `ways_in` are objects of others
    that lead to the pods from outside, and `unseen` the kinds of such objects that are served and may not be listed.
    `is_crowded`: more pods claim to be of this model than are in `pods`, for there is a bound.
    `resource_version` is that of the ModelDeployment: a status that rests on an older one must not be written.
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
    truces: Mapping[ChildKey, frozenset[str]] = field(default_factory=dict)
    ways_in: tuple[WayIn, ...] = ()
    unseen: tuple[str, ...] = ()
    is_crowded: bool = False
    resource_version: str = ""

    def child(self, kind: Kind, name: str = "") -> Mapping[str, Any] | None:
        """The live child of this kind, by default the one that bears the ModelDeployment's own name."""
        return self.children.get((kind.kind, name or self.owner.name))

    def condition(self, kind: str) -> Mapping[str, Any] | None:
        """The condition of this type as the status holds it now."""
        return next((c for c in self.status.get("conditions", ()) if c.get("type") == kind), None)

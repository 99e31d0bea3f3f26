"""The table of children: how each kind of a ModelDeployment's objects is built, written, compared and removed.

A new child is a builder and a row here, what the API server fills in of it (plan/tampering/foreign_fields.py), its
rights (manifests/rbac, tools/rights.toml), the policies that narrow them (manifests/policies/operator-*.yaml) and its
tests. What runs the pods has its rows from objects/workloads/registry.py.
Rendering, the order of writes, drift, deletion, watches and the tests of permissions read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.api.pod_users import PodUser
from hermetic.engines.launch import as_user
from hermetic.engines.registry import engine_of, launch
from hermetic.kinds import (
    HORIZONTAL_POD_AUTOSCALER,
    HTTP_ROUTE,
    NETWORK_POLICY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from hermetic.objects.accelerator_checks import AcceleratorChecks, checked_first
from hermetic.objects.child_metadata import NO_METADATA, ChildMetadata, with_metadata
from hermetic.objects.child_projection import (
    NAMED_AFTER_MODEL,
    Projection,
    autoscaler_status,
    is_of_any_model,
    is_of_model_or_group,
    is_of_model_or_route_group,
    is_too_large,
    route_owners,
    route_status,
    runs_pods_of_others,
)
from hermetic.objects.groups import group_network_policy, group_service
from hermetic.objects.horizontal_pod_autoscaler import horizontal_pod_autoscaler
from hermetic.objects.http_route import PLAIN_ROUTE, RouteSettings, http_route
from hermetic.objects.names import Owner, is_claim_of, with_intent
from hermetic.objects.network_policy import network_policy
from hermetic.objects.pod_disruption_budget import pod_disruption_budget
from hermetic.objects.service import cluster_service, load_balancer_service
from hermetic.objects.service_account import service_account
from hermetic.objects.weights_verifier import Verifier, verified_first
from hermetic.objects.weights_volume import persistent_volume, persistent_volume_claim, share_of
from hermetic.objects.workloads.registry import WORKLOADS, workload_kind
from hermetic.objects.workloads.workload_kind import HeadAddresses, WorkloadKind

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """What the operator's configuration adds to the objects of a spec.

    `verifier`: None where no weights are verified. `pod_ranges`: CIDRs of the cluster's pods, if they are known.
    `metadata`: labels and annotations of every child and pod. `user`: None where the engine's own user runs the pods.
    `accelerator_checks`: None where the pods do not check their GPUs. `head_addresses`: of the groups of the model.
    `route`: of a model with `endpoint.gateway`.
    """

    verifier: Verifier | None = None
    pod_ranges: tuple[str, ...] = ()
    metadata: ChildMetadata = NO_METADATA
    user: PodUser | None = None
    accelerator_checks: AcceleratorChecks | None = None
    head_addresses: HeadAddresses = None
    route: RouteSettings = PLAIN_ROUTE


NO_SETTINGS = PlatformSettings()

Phase = Literal["open", "closed", "blocked"]
"""Of a plan: isolation is proven or not enforced; the isolation gate is closed; another gate blocks the spec."""
ALWAYS: frozenset[Phase] = frozenset({"open", "closed", "blocked"})
UNLESS_BLOCKED: frozenset[Phase] = frozenset({"open", "closed"})
GATE_OPEN: frozenset[Phase] = frozenset({"open"})


Build = Callable[[Owner, ModelDeploymentSpec, PlatformSettings], tuple[Manifest, ...]]


@dataclass(frozen=True, slots=True)
class Child:
    """One kind of child.

    `build`: the manifests for a spec and the platform's settings, () where the spec does not ask for one. `wave`:
    children of one wave are written concurrently, the next wave only when all of the earlier ones exist. `written`:
    the phases in which it is written: ALWAYS if it isolates or exposes pods, and then it is built even if the engine
    cannot be started; GATE_OPEN if it runs pods, and otherwise plan/closed_gate.py decides. `dispensable`: deleted when
    the spec no longer asks for it.
    `merge_keys`: lists whose items the API server identifies by these fields; every other list is one value.
    `projection`: what is kept of its live objects.
    """

    kind: Kind
    build: Build
    wave: int = 0
    written: frozenset[Phase] = UNLESS_BLOCKED
    dispensable: bool = False
    merge_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    projection: Projection = NAMED_AFTER_MODEL

    @property
    def runs_pods(self) -> bool:
        """Whether it has the pod template."""
        return self.written == GATE_OPEN


def _account(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> tuple[Manifest, ...]:
    return (service_account(owner, engine_of(spec).name),)


def _volume(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> tuple[Manifest, ...]:
    share = share_of(spec)
    return () if share is None else (persistent_volume(owner, engine_of(spec).name, share),)


def _claim(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> tuple[Manifest, ...]:
    share = share_of(spec)
    return () if share is None else (persistent_volume_claim(owner, engine_of(spec).name, share),)


def _disruption_budget(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> tuple[Manifest, ...]:
    # One that came and went with the number of pods would not be there while an autoscaler adds the second.
    most = spec.replicas if spec.autoscaling is None else spec.autoscaling.max_replicas
    if most < 2:
        return ()
    kind = workload_kind(spec)
    grouped_pods = most * kind.pods_per_replica(spec) if kind.is_grouped else None
    return (pod_disruption_budget(owner, engine_of(spec).name, grouped_pods),)


def _autoscaler(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> tuple[Manifest, ...]:
    if spec.autoscaling is None:
        return ()
    engine = engine_of(spec)
    return (horizontal_pod_autoscaler(owner, engine.name, spec.autoscaling, engine.queue_metric(spec)),)


def _network_policies(owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings) -> tuple[Manifest, ...]:
    """That of the model, then those of its groups."""
    engine = engine_of(spec).name
    planes = platform.route.data_planes if spec.endpoint.gateway is not None else ()
    groups = (group_network_policy(owner, engine, index) for index in _groups(spec))
    return (network_policy(owner, engine, spec.endpoint, platform.pod_ranges, planes), *groups)


def _services(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> tuple[Manifest, ...]:
    """The endpoint of the model, then the Services of its groups."""
    engine, balancer = engine_of(spec).name, spec.endpoint.internal_load_balancer
    answering = workload_kind(spec).answering(owner)
    groups = (group_service(owner, engine, index) for index in _groups(spec))
    if balancer is None:
        return (cluster_service(owner, engine, spec.endpoint, answering), *groups)
    health_path = engine_of(spec).ready_path
    service = load_balancer_service(
        owner, engine, spec.endpoint, balancer, health_path=health_path, answering=answering
    )
    return (service, *groups)


def _groups(spec: ModelDeploymentSpec) -> range:
    """The indexes of the groups of a spec."""
    return range(spec.wanted_replicas if workload_kind(spec).is_grouped else 0)


def _route(owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings) -> tuple[Manifest, ...]:
    route = spec.endpoint.gateway
    if route is None or platform.route.is_withheld or not platform.route.is_written_here:
        return ()
    return (http_route(owner, engine_of(spec).name, spec.model.name, spec.endpoint, route, platform.route),)


def _workload(workload: WorkloadKind) -> Build:
    def build(owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings) -> tuple[Manifest, ...]:
        if not workload.runs(spec):
            return ()
        verified = verified_first(launch(spec), spec, platform.verifier)
        checked = checked_first(verified, spec, platform.accelerator_checks)
        user_launch = as_user(checked, platform.user)
        return workload.build(owner, spec, user_launch, platform.metadata, platform.head_addresses)

    return build


LARGEST_CLAIM = 16 * 2**10
"""Bytes of a live claim; a rendered one takes less than 1 KiB."""
PROJECTED_POLICY = Projection(is_of_model_or_group, is_excessive=is_too_large)
PROJECTED_ROUTE = Projection(
    is_of_model_or_route_group, status=route_status, owners=route_owners, is_excessive=is_too_large
)
PROJECTED_CLAIM = Projection(is_claim_of, most_bytes=LARGEST_CLAIM)

TABLE: tuple[Child, ...] = (
    Child(SERVICE_ACCOUNT, _account, written=ALWAYS),
    Child(NETWORK_POLICY, _network_policies, written=ALWAYS, projection=PROJECTED_POLICY),
    Child(PERSISTENT_VOLUME, _volume, projection=Projection(is_of_any_model)),
    # A claim that is created before its volume is bound only after the 15 s resync of Kubernetes' volume controller.
    Child(PERSISTENT_VOLUME_CLAIM, _claim, wave=1, dispensable=True, projection=PROJECTED_CLAIM),
    Child(POD_DISRUPTION_BUDGET, _disruption_budget, dispensable=True),
    Child(
        SERVICE,
        _services,
        written=ALWAYS,
        merge_keys={"ports": ("port", "protocol")},
        projection=Projection(is_of_model_or_group, has_annotations_of_others=True, is_excessive=is_too_large),
    ),
    # After the Service: a controller reports a backend that does not exist as a fault of the route.
    Child(HTTP_ROUTE, _route, wave=1, dispensable=True, projection=PROJECTED_ROUTE),
    # After the workload: an autoscaler without pods only reports that it can read no metric.
    Child(
        HORIZONTAL_POD_AUTOSCALER,
        _autoscaler,
        wave=3,
        dispensable=True,
        projection=Projection(status=autoscaler_status),
    ),
    *(
        Child(
            workload.resource,
            _workload(workload),
            wave=2,
            written=GATE_OPEN,
            merge_keys=workload.merge_keys,
            projection=Projection(is_of_model_or_group, is_excessive=runs_pods_of_others),
        )
        for workload in WORKLOADS
    ),
)
"""In the order in which they are printed."""

CHILDREN: Mapping[str, Child] = {child.kind.kind: child for child in TABLE}
"""By the name of their kind."""

CHILD_KINDS: tuple[Kind, ...] = tuple(child.kind for child in TABLE)


def render(
    owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings = NO_SETTINGS
) -> tuple[dict[str, Any], ...]:
    """The manifests exactly as they are applied, in the order of the table of children."""
    return _rendered(TABLE, owner, spec, platform)


def render_isolation(
    owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings = NO_SETTINGS
) -> tuple[dict[str, Any], ...]:
    """ServiceAccount, NetworkPolicy and Service as in `render`, even if the engine cannot be started."""
    return _rendered((child for child in TABLE if child.written == ALWAYS), owner, spec, platform)


def _rendered(
    children: Iterable[Child], owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings
) -> tuple[dict[str, Any], ...]:
    built = (manifest for child in children for manifest in child.build(owner, spec, platform))
    return tuple(with_intent(with_metadata(manifest, platform.metadata)) for manifest in built)

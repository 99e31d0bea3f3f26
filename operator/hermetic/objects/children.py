"""The table of children: how each kind of a ModelDeployment's objects is built, written, compared and removed.

A new child is a builder and a row here, what the API server fills in of it (plan/foreign_fields.py), its rights
(manifests/rbac, tools/rights.toml), the policies that narrow them (manifests/policies/operator-*.yaml) and its tests.
Rendering, the order of writes, drift, deletion, watches and the tests of permissions read this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import engine_of, launch
from hermetic.kinds import (
    DEPLOYMENT,
    NETWORK_POLICY,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_DISRUPTION_BUDGET,
    SERVICE,
    SERVICE_ACCOUNT,
    Kind,
)
from hermetic.objects.deployment import deployment
from hermetic.objects.names import Owner, with_intent
from hermetic.objects.network_policy import network_policy
from hermetic.objects.pod_disruption_budget import pod_disruption_budget
from hermetic.objects.service import cluster_service, load_balancer_service
from hermetic.objects.service_account import service_account
from hermetic.objects.weights_verifier import Verifier, verified_first
from hermetic.objects.weights_volume import persistent_volume, persistent_volume_claim, share_of

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """What the operator's configuration adds to the objects of a spec.

    `verifier`: None where no weights are verified. `pod_ranges`: CIDRs of the cluster's pods, if they are known.
    """

    verifier: Verifier | None = None
    pod_ranges: tuple[str, ...] = ()


NO_SETTINGS = PlatformSettings()


@dataclass(frozen=True, slots=True)
class Child:
    """One kind of child.

    `build`: the manifest for a spec and the platform's settings, None where the spec does not ask for one. `wave`:
    children of one wave are written concurrently, the next wave only when all of the earlier ones exist. `keeps_in`:
    isolates or exposes pods, and is built even if the engine cannot be started. `dispensable`: deleted when the spec no
    longer asks for it. `runs_pods`: has the pod template.
    `merge_keys`: lists whose items the API server identifies by these fields; every other list is one value.
    """

    kind: Kind
    build: Callable[[Owner, ModelDeploymentSpec, PlatformSettings], Manifest | None]
    wave: int = 0
    keeps_in: bool = False
    dispensable: bool = False
    runs_pods: bool = False
    merge_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def _volume(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> Manifest | None:
    share = share_of(spec.weights)
    return None if share is None else persistent_volume(owner, engine_of(spec).name, share)


def _claim(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> Manifest | None:
    share = share_of(spec.weights)
    return None if share is None else persistent_volume_claim(owner, engine_of(spec).name, share)


def _disruption_budget(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> Manifest | None:
    return pod_disruption_budget(owner, engine_of(spec).name) if spec.replicas > 1 else None


def _network_policy(owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings) -> Manifest:
    return network_policy(owner, engine_of(spec).name, spec.endpoint, platform.pod_ranges)


def _service(owner: Owner, spec: ModelDeploymentSpec, _: PlatformSettings) -> Manifest:
    engine, balancer = engine_of(spec).name, spec.endpoint.internal_load_balancer
    if balancer is None:
        return cluster_service(owner, engine, spec.endpoint)
    return load_balancer_service(owner, engine, spec.endpoint, balancer, health_path=engine_of(spec).ready_path)


def _deployment(owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings) -> Manifest:
    return deployment(owner, spec, verified_first(launch(spec), spec, platform.verifier))


TABLE: tuple[Child, ...] = (
    Child(SERVICE_ACCOUNT, lambda owner, spec, _: service_account(owner, engine_of(spec).name), keeps_in=True),
    Child(NETWORK_POLICY, _network_policy, keeps_in=True),
    Child(PERSISTENT_VOLUME, _volume),
    # A claim that is created before its volume is bound only after the 15 s resync of Kubernetes' volume controller.
    Child(PERSISTENT_VOLUME_CLAIM, _claim, wave=1, dispensable=True),
    Child(POD_DISRUPTION_BUDGET, _disruption_budget, dispensable=True),
    Child(SERVICE, _service, keeps_in=True, merge_keys={"ports": ("port", "protocol")}),
    Child(
        DEPLOYMENT,
        _deployment,
        wave=2,
        runs_pods=True,
        merge_keys={
            "containers": ("name",),
            "initContainers": ("name",),
            "env": ("name",),
            "volumes": ("name",),
            "volumeMounts": ("mountPath",),
            "ports": ("containerPort", "protocol"),
            "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
        },
    ),
)
"""In the order in which they are printed."""

CHILDREN: Mapping[str, Child] = {each.kind.kind: each for each in TABLE}
"""By the name of their kind."""

CHILD_KINDS: tuple[Kind, ...] = tuple(each.kind for each in TABLE)
WORKLOAD_KINDS: tuple[Kind, ...] = tuple(each.kind for each in TABLE if each.runs_pods)
"""Those that run the pods, of which a model has one."""


def render(
    owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings = NO_SETTINGS
) -> tuple[dict[str, Any], ...]:
    """The manifests exactly as they are applied, in the order of the table of children."""
    return _rendered(TABLE, owner, spec, platform)


def render_isolation(
    owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings = NO_SETTINGS
) -> tuple[dict[str, Any], ...]:
    """ServiceAccount, NetworkPolicy and Service as in `render`, even if the engine cannot be started."""
    return _rendered((each for each in TABLE if each.keeps_in), owner, spec, platform)


def _rendered(
    children: Iterable[Child], owner: Owner, spec: ModelDeploymentSpec, platform: PlatformSettings
) -> tuple[dict[str, Any], ...]:
    built = (each.build(owner, spec, platform) for each in children)
    return tuple(with_intent(manifest) for manifest in built if manifest is not None)

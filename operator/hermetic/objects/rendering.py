"""Everything that one ModelDeployment is made of, in the order in which it is applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.launch import Launch
from hermetic.engines.registry import engine_name, ready_path
from hermetic.engines.registry import launch as launch_of
from hermetic.objects.deployment import deployment
from hermetic.objects.names import Owner, with_intent
from hermetic.objects.network_policy import network_policy
from hermetic.objects.pod_disruption_budget import pod_disruption_budget
from hermetic.objects.service import cluster_service, load_balancer_service
from hermetic.objects.service_account import service_account
from hermetic.objects.weights_volume import persistent_volume, persistent_volume_claim, share_of


def render(owner: Owner, spec: ModelDeploymentSpec) -> tuple[dict[str, Any], ...]:
    """The manifests exactly as they are applied: walls first, then storage, then the door, then the workload."""
    launch = launch_of(spec)
    return tuple(with_intent(manifest) for manifest in _manifests(owner, spec, launch))


def render_walls(owner: Owner, spec: ModelDeploymentSpec) -> tuple[dict[str, Any], ...]:
    """Walls and door alone, to the byte as `render` has them: also of a spec whose engine cannot be started."""
    engine = engine_name(spec)
    manifests = (
        service_account(owner, engine),
        network_policy(owner, engine, spec.endpoint),
        _service(owner, spec),
    )
    return tuple(with_intent(manifest) for manifest in manifests)


def _manifests(owner: Owner, spec: ModelDeploymentSpec, launch: Launch) -> Iterator[dict[str, Any]]:
    engine = launch.engine
    yield service_account(owner, engine)
    yield network_policy(owner, engine, spec.endpoint)
    share = share_of(spec.weights)
    if share is not None:
        yield persistent_volume(owner, engine, share)
        yield persistent_volume_claim(owner, engine, share)
    if spec.replicas > 1:
        yield pod_disruption_budget(owner, engine)
    yield _service(owner, spec)
    yield deployment(owner, spec, launch)


def _service(owner: Owner, spec: ModelDeploymentSpec) -> dict[str, Any]:
    engine, balancer = engine_name(spec), spec.endpoint.internal_load_balancer
    if balancer is None:
        return cluster_service(owner, engine, spec.endpoint)
    return load_balancer_service(owner, engine, spec.endpoint, balancer, health_path=ready_path(spec))

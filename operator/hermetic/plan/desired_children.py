"""The children that a spec asks for, with what the operator's configuration adds to them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.engines.registry import engine_of
from hermetic.kinds import SERVICE
from hermetic.objects.child_metadata import child_metadata
from hermetic.objects.children import CHILDREN, PlatformSettings, render, render_isolation
from hermetic.objects.groups import group_name, head_address
from hermetic.objects.names import Owner, is_controlled_by, template_mark, template_of
from hermetic.objects.workloads.registry import workload_kind
from hermetic.plan.gateway_route import route_settings
from hermetic.plan.preflight import accelerator_checks, may_wait_for_a_change
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.runtime_drift import running
from hermetic.plan.weights_integrity import verifier


class SpecRendering:
    """One spec and its children, which are rendered again only if another input of theirs changes.

    A create takes several reconciles, and rendering with its digests was a tenth of their processor time. The children
    are shared between plans: do not change them.
    """

    def __init__(self, spec: ModelDeploymentSpec) -> None:
        self.spec = spec
        self._renderings: list[tuple[Owner, PlatformSettings, tuple[dict[str, Any], ...]]] = []

    def children(self, snapshot: ClusterSnapshot) -> tuple[dict[str, Any], ...]:
        """All of them, in the order of the table of children."""
        user = snapshot.policy.pod_user(engine_of(self.spec).member, snapshot.owner.namespace)
        settings = replace(
            _isolation_settings(self.spec, snapshot),
            verifier=verifier(self.spec, snapshot),
            user=user,
            accelerator_checks=accelerator_checks(self.spec, snapshot.policy),
            head_addresses=_head_addresses(self.spec, snapshot),
        )
        if may_wait_for_a_change(self.spec, snapshot):
            unchecked = self._rendered(snapshot.owner, replace(settings, accelerator_checks=None))
            if _template_marks(unchecked) & _live_marks(snapshot):
                return unchecked
        return self._rendered(snapshot.owner, settings)

    def _rendered(self, owner: Owner, settings: PlatformSettings) -> tuple[dict[str, Any], ...]:
        for known_owner, known_settings, children in self._renderings:
            if (known_owner, known_settings) == (owner, settings):
                return children
        children = render(owner, self.spec, settings)
        self._renderings = [*self._renderings[-1:], (owner, settings, children)]
        return children


def _template_marks(children: tuple[dict[str, Any], ...]) -> set[str]:
    return {template_mark(child) for child in children if CHILDREN[child["kind"]].runs_pods}


def _live_marks(snapshot: ClusterSnapshot) -> set[str]:
    """The marks of the live templates, in either place, and of the running pods: others may have changed some."""
    parts = snapshot.workload.parts
    marks = {*(template_of(part.template) for part in parts), *map(template_of, running(snapshot))}
    return marks | {template_mark(part.live) for part in parts if part.live is not None}


def _head_addresses(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    """Of each group, "" until its Service has an address: a Service of another owner would lead to pods of others."""
    names = (group_name(snapshot.owner.name, index) for index in range(spec.wanted_replicas))
    services = (snapshot.child(SERVICE, name) for name in names) if workload_kind(spec).is_grouped else ()
    own_services = (
        service if service is not None and is_controlled_by(service, snapshot.owner) else None for service in services
    )
    return tuple(map(head_address, own_services))


def desired_children(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[dict[str, Any], ...]:
    """All of them, in the order of the table of children."""
    return SpecRendering(spec).children(snapshot)


def isolating_children(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[dict[str, Any], ...]:
    """Those that isolate or expose pods, even if the engine cannot be started."""
    return render_isolation(snapshot.owner, spec, _isolation_settings(spec, snapshot))


def _isolation_settings(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> PlatformSettings:
    """What the configuration adds to every child, also to those without a pod template."""
    return PlatformSettings(
        pod_ranges=tuple(snapshot.policy.pod_ranges),
        metadata=child_metadata(snapshot.policy.model_metadata, snapshot.labels, snapshot.annotations),
        route=route_settings(spec, snapshot),
    )

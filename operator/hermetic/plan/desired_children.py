"""The children that a spec asks for, with what the operator's configuration adds to them."""

from __future__ import annotations

from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.objects.children import PlatformSettings, render, render_isolation
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.weights_integrity import verifier


def desired_children(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[dict[str, Any], ...]:
    """All of them, in the order of the table of children."""
    pod_ranges = tuple(snapshot.policy.pod_ranges)
    return render(snapshot.owner, spec, PlatformSettings(verifier(spec, snapshot), pod_ranges))


def isolating_children(spec: ModelDeploymentSpec, snapshot: ClusterSnapshot) -> tuple[dict[str, Any], ...]:
    """Those that isolate or expose pods, even if the engine cannot be started."""
    return render_isolation(snapshot.owner, spec, PlatformSettings(pod_ranges=tuple(snapshot.policy.pod_ranges)))

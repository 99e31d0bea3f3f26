"""All children of one ModelDeployment, as they are applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.objects.children import TABLE, Child
from hermetic.objects.names import Owner, with_intent
from hermetic.objects.weights_verifier import Verifier


def render(owner: Owner, spec: ModelDeploymentSpec, verifier: Verifier | None = None) -> tuple[dict[str, Any], ...]:
    """The manifests exactly as they are applied, in the order of the table of children.

    `verifier` comes from the operator's configuration; without it no weights are verified.
    """
    return _rendered(TABLE, owner, spec, verifier)


def render_isolation(owner: Owner, spec: ModelDeploymentSpec) -> tuple[dict[str, Any], ...]:
    """ServiceAccount, NetworkPolicy and Service as in `render`, even if the engine cannot be started."""
    return _rendered((each for each in TABLE if each.keeps_in), owner, spec, None)


def _rendered(
    children: Iterable[Child], owner: Owner, spec: ModelDeploymentSpec, verifier: Verifier | None
) -> tuple[dict[str, Any], ...]:
    built = (each.build(owner, spec, verifier) for each in children)
    return tuple(with_intent(manifest) for manifest in built if manifest is not None)

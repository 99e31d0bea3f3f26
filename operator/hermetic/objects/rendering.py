"""All children of one ModelDeployment, as they are applied."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.objects.children import TABLE, Child
from hermetic.objects.names import Owner, with_intent
from hermetic.objects.platform_settings import NO_SETTINGS, PlatformSettings


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

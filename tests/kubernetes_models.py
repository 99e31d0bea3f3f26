"""Kubernetes' own models of everything that is rendered: they refuse unknown fields, wrong types and string ports."""

from __future__ import annotations

from typing import Any

from kubernetes import client

from hermetic.kinds import HTTP_ROUTE
from hermetic.objects.children import CHILD_KINDS

OF_KUBERNETES = tuple(kind for kind in CHILD_KINDS if kind is not HTTP_ROUTE)
"""The kinds of children that every cluster serves; the others come with definitions of other projects."""
MODELS: dict[str, Any] = {
    kind.kind: getattr(client, f"{kind.version.capitalize()}{kind.kind}") for kind in OF_KUBERNETES
}

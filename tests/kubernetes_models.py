"""Kubernetes' own models of everything that is rendered: they refuse unknown fields, wrong types and string ports."""

from __future__ import annotations

from typing import Any

from kubernetes import client

from hermetic.objects.children import CHILD_KINDS

MODELS: dict[str, Any] = {kind.kind: getattr(client, f"{kind.version.capitalize()}{kind.kind}") for kind in CHILD_KINDS}

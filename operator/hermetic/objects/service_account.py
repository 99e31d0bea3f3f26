"""The identity of the pods: a ServiceAccount without rights and without a token."""

from __future__ import annotations

from typing import Any

from hermetic.objects.names import Owner, metadata


def service_account(owner: Owner, engine: str) -> dict[str, Any]:
    """A ServiceAccount that no RoleBinding names and no token is mounted for."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(owner, engine),
        "automountServiceAccountToken": False,
    }

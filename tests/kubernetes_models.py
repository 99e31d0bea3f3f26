"""Kubernetes' own models of everything that is rendered: they refuse unknown fields, wrong types and string ports."""

from __future__ import annotations

from typing import Any

from kubernetes import client

MODELS: dict[str, Any] = {
    "ServiceAccount": client.V1ServiceAccount,
    "NetworkPolicy": client.V1NetworkPolicy,
    "PersistentVolume": client.V1PersistentVolume,
    "PersistentVolumeClaim": client.V1PersistentVolumeClaim,
    "PodDisruptionBudget": client.V1PodDisruptionBudget,
    "Service": client.V1Service,
    "Deployment": client.V1Deployment,
}

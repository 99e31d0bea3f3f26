"""Every plant on the Kubernetes side: egress paths that the objects of an API server show."""

from __future__ import annotations

from testbed.kubernetes_plants import (
    callers,
    calls,
    controllers_without_pods,
    kinds,
    model_servers,
    policies,
    services,
    storage,
    workloads,
)
from testbed.kubernetes_plants.plant import PLANTS, Expected, KubernetesPlant

MODULES = (callers, calls, kinds, model_servers, policies, controllers_without_pods, services, storage, workloads)

__all__ = ["MODULES", "PLANTS", "Expected", "KubernetesPlant"]

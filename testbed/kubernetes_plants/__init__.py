"""Every plant on the Kubernetes side: ways out that the objects of an API server show."""

from __future__ import annotations

from testbed.kubernetes_plants import calls, kinds, model_servers, policies, resting, services, storage, workloads
from testbed.kubernetes_plants.plant import PLANTS, Expected, KubernetesPlant

MODULES = (calls, kinds, model_servers, policies, resting, services, storage, workloads)

__all__ = ["MODULES", "PLANTS", "Expected", "KubernetesPlant"]

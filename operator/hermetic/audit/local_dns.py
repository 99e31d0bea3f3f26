"""Whether LocalDNS was on where the probe ran: AKS's DNS proxy on the node, at its own link-local addresses."""

from __future__ import annotations

from hermetic.audit.cluster_scope import cluster_of, pools_of
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.nodes import Node
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.observation import Observation
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.errors import FactDamaged

LABEL = "kubernetes.azure.com/localdns-state"


def local_dns(estate: Estate, run: ProbeRun) -> Observation | None:
    """The observation that shows it on: the node's label, or the pool's localDNSProfile. None without one."""
    if "kube" in estate.sources:
        nodes = estate.every(Node, EVERYWHERE)
        of_node = next((one for one in nodes if one.metadata.name == run.node), None)
        if of_node is not None and of_node.labels.get(LABEL) == "enabled":
            return of_node
    if "azure" in estate.sources:
        pool = next((one for one in pools_of(estate) if one.name == run.pool), None)
        try:
            profile = pool.local_dns_profile if pool is not None else None
            if profile is not None and (profile.state or "").lower() == "enabled":
                return cluster_of(estate)
        except FactDamaged:
            return None
    return None

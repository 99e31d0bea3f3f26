"""All families of checks, in the order of the truth table."""

from __future__ import annotations

from collections.abc import Mapping

from hermetic.audit.checks import (
    aks,
    disks,
    dns,
    endpoints,
    ipv6,
    kube_cluster,
    kube_policies,
    kube_services,
    kube_workloads,
    nsg,
    outbound,
    probe,
    registries,
    routes,
    sinks,
    storage,
    topology,
)
from hermetic.audit.evaluation.check_findings import Check
from hermetic.audit.model.findings import CheckPage

CHECKS: tuple[Check, ...] = (
    *outbound.CHECKS,
    *routes.CHECKS,
    *topology.CHECKS,
    *ipv6.CHECKS,
    *nsg.CHECKS,
    *endpoints.CHECKS,
    *registries.CHECKS,
    *storage.CHECKS,
    *disks.CHECKS,
    *dns.CHECKS,
    *aks.CHECKS,
    *sinks.CHECKS,
    *kube_services.CHECKS,
    *kube_policies.CHECKS,
    *kube_workloads.CHECKS,
    *kube_cluster.CHECKS,
    *probe.CHECKS,
)
PAGES: Mapping[str, CheckPage] = {check.page.id: check.page for check in CHECKS}

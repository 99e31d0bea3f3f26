"""The source of AKS's own node images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit.checks import registries
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.azure.aks import BootstrapProfile, ManagedCluster
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.estate import Estate
from hermetic.audit.evaluation.each_resource import of_cluster
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Parts, Severity, Verdict
from hermetic.audit.model.hops import INTERNET, NODE, path_of
from hermetic.audit.policy.declarations import Policy

REGISTRY = Parts(
    tuple(check.page.id for check in registries.CHECKS if check.page.severity is Severity.HIGH),
    fail_reason="RegistryDoesNotPass",
    unknown_reason="RegistryDoesNotPass",
    worst=Verdict.UNKNOWN,
)
"""A registry that does not pass these checks makes the result Unknown; its own findings are Fails."""


@check_each("aks-artifact-source", of_cluster)
def aks_artifact_source(estate: Estate, _policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """The source is Cache, with a registry that is closed itself. Older nodes still pull from outside."""
    profile = cluster.bootstrap_profile or BootstrapProfile()
    source = profile.artifact_source or ""
    if source.lower() != "cache":
        message = f"artifactSource is {source or 'absent, which means Direct'}: nodes pull from Microsoft's registry"
        path = path_of(NODE, hops.registry("microsoft's registry"), INTERNET)
        yield fails(estate.cluster, "DirectSource", message, cluster, paths=(path,))
    elif not profile.container_registry_id:
        message = "artifactSource is Cache, and the answer does not name the registry"
        yield unknown(estate.cluster, "RegistryNotNamed", message, cluster)
    else:
        yield _registry(estate, cluster, profile.container_registry_id)


def _registry(estate: Estate, cluster: ManagedCluster, registry: str) -> CheckResult:
    """Pass that rests on the registry checks for this registry, and on those that could not list every registry."""
    observations = (cluster, estate.one(Registry, registry))
    message = f"images come from {registry}, which is closed"
    parts = replace(REGISTRY, resources=(registry, estate.cluster))
    return passes(estate.cluster, "CachedSource", message, *observations, parts=parts)

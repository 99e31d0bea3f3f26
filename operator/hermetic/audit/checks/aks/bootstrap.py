"""Where nodes get AKS's own images from."""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit.checks import registries
from hermetic.audit.checks.aks.cluster import of_cluster
from hermetic.audit.estate.arm_ids import same_id
from hermetic.audit.estate.azure.cluster_features import BootstrapProfile, ClusterFeatures
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.estate import Estate
from hermetic.audit.findings import Finding, Severity, Verdict
from hermetic.audit.judging import Judgement, cannot_say, fails, findings_of, passes
from hermetic.audit.policy import Policy


def artifact_source(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Cache, from a registry that is closed itself. Nodes made before the switch still pull from outside."""

    def judge(cluster: ClusterFeatures) -> Iterator[Judgement]:
        profile = cluster.bootstrap_profile or BootstrapProfile()
        source = profile.artifact_source or ""
        if source.lower() != "cache":
            words = f"artifactSource is {source or 'absent, which means Direct'}: nodes pull from Microsoft's registry"
            path = "node -> microsoft's registry -> internet"
            yield fails(estate.cluster, "DirectSource", words, cluster, paths=(path,))
        elif not profile.container_registry_id:
            words = "artifactSource is Cache, and the answer does not name the registry"
            yield cannot_say(estate.cluster, "RegistryNotNamed", words, cluster)
        else:
            yield _registry(estate, policy, cluster, profile.container_registry_id)

    yield from of_cluster(estate, judge)


def _registry(estate: Estate, policy: Policy, cluster: ClusterFeatures, registry: str) -> Judgement:
    """What the checks of registries say about this one, as far as it decides. What is open there is named there."""
    looks = (cluster, estate.one(Registry, registry))
    found = [
        f"{finding.check} ({finding.message})"
        for check in registries.CHECKS
        if check.page.severity is Severity.HIGH
        for finding in findings_of(check, estate, policy)
        if finding.severity.decides and _speaks_against(finding, estate, registry)
    ]
    if found:
        words = f"images come from {registry}, and that registry does not pass: {', '.join(dict.fromkeys(found))}"
        return cannot_say(estate.cluster, "RegistryDoesNotPass", words, *looks)
    return passes(estate.cluster, "CachedSource", f"images come from {registry}, which is closed", *looks)


def _speaks_against(finding: Finding, estate: Estate, registry: str) -> bool:
    """Whether it does not let the registry pass. What could not be judged of the whole cluster was not judged of it."""
    if same_id(finding.resource, registry):
        return finding.verdict in {Verdict.FAIL, Verdict.UNKNOWN}
    return same_id(finding.resource, estate.cluster) and finding.verdict is Verdict.UNKNOWN

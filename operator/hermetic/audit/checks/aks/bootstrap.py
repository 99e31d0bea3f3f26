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
    """What the checks of registries say about this one, as far as it decides."""
    looks = (cluster, estate.one(Registry, registry))
    found = [
        finding
        for check in registries.CHECKS
        if check.page.severity is Severity.HIGH
        for finding in findings_of(check, estate, policy)
        if same_id(finding.resource, registry) and finding.severity.decides
    ]
    open_ways = [one for one in found if one.verdict is Verdict.FAIL]
    unseen = [one for one in found if one.verdict is Verdict.UNKNOWN]
    if open_ways:
        words = f"the registry that images come from is open: {_names(open_ways)}"
        return fails(
            estate.cluster, "RegistryOpen", words, *looks, paths=tuple(p for one in open_ways for p in one.paths)
        )
    if unseen:
        words = f"the registry that images come from was not seen whole: {_names(unseen)}"
        return cannot_say(estate.cluster, "RegistryNotSeen", words, *looks)
    return passes(estate.cluster, "CachedSource", f"images come from {registry}, which is closed", *looks)


def _names(findings: list[Finding]) -> str:
    return ", ".join(dict.fromkeys(one.check for one in findings))

"""Properties that only previews of the registry's API show.

Where a cloud refuses the previews, these checks are Unknown, except that acr-pipelines passes with export disabled.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.checks.registries.access import export_status, lesser_tier
from hermetic.audit.estate.azure.registries import (
    ExportPipeline,
    Registry,
    RegistryAgentPool,
    RegistryInPreview,
    RegistryTask,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Seen
from hermetic.audit.evaluation import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.hops import INTERNET, POD, REGISTRY, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.registry_storage_scope import each_registry

OFF, ON = "disabled", "enabled"
IPV4, DUAL_STACK = "ipv4", "ipv4andipv6"


@check_each("acr-writable-cache", each_registry)
def acr_writable_cache(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Whether repositories behind cache rules accept pushes."""
    shown = estate.one(RegistryInPreview, seen.target)
    repositories = (shown.value.writable_cache_repos if shown.value is not None else None) or ""
    if repositories.lower() == ON:
        words = "repositories behind cache rules can be written to: a copy of an image can be replaced"
        yield fails(seen.target, "CacheWritable", words, shown, paths=(path_of(POD, REGISTRY, hops.pod("other pod")),))
    elif repositories.lower() == OFF:
        yield passes(seen.target, "CacheReadOnly", "repositories behind cache rules are read-only", shown)
    else:
        yield unknown(seen.target, "NotSaid", f"writableCacheRepos is {repositories or 'absent'}", shown)


@check_each("acr-endpoints", each_registry)
def acr_endpoints(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Regional and IPv6 endpoints beside the one that every registry has."""
    shown = estate.one(RegistryInPreview, seen.target)
    regional = (shown.value.regional_endpoints if shown.value is not None else None) or ""
    protocol = (shown.value.endpoint_protocol if shown.value is not None else None) or ""
    more = ["has an endpoint for each region"] if regional.lower() == ON else []
    more += ["answers by IPv6 on its public endpoints"] if protocol.lower() == DUAL_STACK else []
    if more:
        words = f"the registry {' and '.join(more)}"
        yield fails(seen.target, "MoreEndpoints", words, shown, paths=(path_of(INTERNET, REGISTRY),))
    elif (regional.lower(), protocol.lower()) == (OFF, IPV4):
        words = "no endpoint for each region, and none by IPv6"
        yield passes(seen.target, "OneEndpoint", words, shown)
    else:
        words = f"regionalEndpoints is {regional or 'absent'}, endpointProtocol is {protocol or 'absent'}"
        yield unknown(seen.target, "NotSaid", words, shown)


@check_each("acr-pipelines", each_registry)
def acr_pipelines(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """An export pipeline writes artifacts to a storage account, possibly of another tenant."""
    if tier := lesser_tier(seen):
        yield does_not_apply(seen.target, "NotInTier", f"a registry of tier {tier} can have none", seen)
        return
    found, status = estate.every(ExportPipeline, seen.target), export_status(seen)
    if found.problem is not None and not found.items and status == OFF:
        words = "export is disabled, and Azure lets no registry disable it while it has an export pipeline"
        yield passes(seen.target, "ExportOff", words, seen)
    elif found.items:
        words = "; ".join(f"{one.name} exports to {_place(one)}" for one in found)
        fill, path = (
            {"ATTACHED_ID": [one.id for one in found]},
            path_of(REGISTRY, "export pipeline", hops.storage("storage account")),
        )
        yield fails(seen.target, "ExportPipeline", words, seen, found, paths=(path,), fill=fill)
    else:
        yield passes(seen.target, "NoExportPipeline", "the registry has no export pipeline", seen, found)


@check_each("acr-tasks", each_registry)
def acr_tasks(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Tasks run any container, on machines in Microsoft's network or in the subnet of an agent pool."""
    every = estate.every(RegistryTask, seen.target)
    running = [one for one in every if (one.status or "").lower() != OFF]
    tasks = [(one.id, f"task {one.name} runs containers") for one in running]
    pools: Listing[RegistryAgentPool] | None = None
    if not lesser_tier(seen):
        pools = estate.every(RegistryAgentPool, seen.target)
        tasks += [(one.id, f"agent pool {one.name} has machines in {_network(one)}") for one in pools]
    asked = (seen, every) if pools is None else (seen, every, pools)
    if tasks:
        fill, words = {"ATTACHED_ID": [one for one, _ in tasks]}, "; ".join(words for _, words in tasks)
        yield fails(seen.target, "Task", words, *asked, paths=(path_of(REGISTRY, "task", INTERNET),), fill=fill)
    else:
        yield passes(seen.target, "NoTask", "the registry runs no task and has no agent pool", *asked)


def _place(one: ExportPipeline) -> str:
    return (one.target.uri if one.target is not None else None) or "a place not named"


def _network(one: RegistryAgentPool) -> str:
    return one.virtual_network_subnet_resource_id or "a network of Microsoft's, which reaches the internet"

"""Properties that only previews of the registry's API show.

Where a cloud refuses the previews, these checks are Unknown, except that acr-pipelines passes with export disabled.
"""

from __future__ import annotations

from collections.abc import Iterator

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
from hermetic.audit.estate.observation import Listing, Lookup
from hermetic.audit.evaluation.each_resource import each_registry
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, POD, REGISTRY, path_of
from hermetic.audit.policy.declarations import Policy

OFF, ON = "disabled", "enabled"
IPV4, DUAL_STACK = "ipv4", "ipv4andipv6"


@check_each("acr-writable-cache", each_registry)
def acr_writable_cache(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Whether repositories behind cache rules accept pushes."""
    shown = estate.one(RegistryInPreview, registry.target)
    repositories = _setting(shown.value.writable_cache_repos, OFF) if shown.value is not None else ""
    if repositories.lower() == ON:
        message = "repositories behind cache rules can be written to: a copy of an image can be replaced"
        yield fails(
            registry.target, "CacheWritable", message, shown, paths=(path_of(POD, REGISTRY, hops.pod("other pod")),)
        )
    elif repositories.lower() == OFF:
        yield passes(registry.target, "CacheReadOnly", "repositories behind cache rules are read-only", shown)
    else:
        yield unknown(registry.target, "NotSaid", f"writableCacheRepos is {repositories!r}", shown)


@check_each("acr-endpoints", each_registry)
def acr_endpoints(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Regional and IPv6 endpoints beside the one that every registry has."""
    shown = estate.one(RegistryInPreview, registry.target)
    regional = _setting(shown.value.regional_endpoints, OFF) if shown.value is not None else ""
    protocol = _setting(shown.value.endpoint_protocol, IPV4) if shown.value is not None else ""
    more = ["has an endpoint for each region"] if regional.lower() == ON else []
    more += ["answers by IPv6 on its public endpoints"] if protocol.lower() == DUAL_STACK else []
    if more:
        message = f"the registry {' and '.join(more)}"
        yield fails(registry.target, "MoreEndpoints", message, shown, paths=(path_of(INTERNET, REGISTRY),))
    elif (regional.lower(), protocol.lower()) == (OFF, IPV4):
        message = "no endpoint for each region, and none by IPv6"
        yield passes(registry.target, "OneEndpoint", message, shown)
    else:
        message = f"regionalEndpoints is {regional!r}, endpointProtocol is {protocol!r}"
        yield unknown(registry.target, "NotSaid", message, shown)


@check_each("acr-pipelines", each_registry)
def acr_pipelines(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """An export pipeline writes artifacts to a storage account, possibly of another tenant."""
    if tier := lesser_tier(registry):
        yield does_not_apply(registry.target, "NotInTier", f"a registry of tier {tier} can have none", registry)
        return
    pipelines, status = estate.every(ExportPipeline, registry.target), export_status(registry)
    if pipelines.problem is not None and not pipelines.items and status == OFF:
        message = "export is disabled, and Azure lets no registry disable it while it has an export pipeline"
        yield passes(registry.target, "ExportOff", message, registry)
    elif pipelines.items:
        message = "; ".join(f"{pipeline.name} exports to {_place(pipeline)}" for pipeline in pipelines)
        fill, path = (
            {"ATTACHED_ID": [pipeline.id for pipeline in pipelines]},
            path_of(REGISTRY, "export pipeline", hops.storage("storage account")),
        )
        yield fails(registry.target, "ExportPipeline", message, registry, pipelines, paths=(path,), fill=fill)
    else:
        yield passes(registry.target, "NoExportPipeline", "the registry has no export pipeline", registry, pipelines)


@check_each("acr-tasks", each_registry)
def acr_tasks(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Tasks run any container, on machines in Microsoft's network or in the subnet of an agent pool."""
    every = estate.every(RegistryTask, registry.target)
    running = [task for task in every if (task.status or "").lower() != OFF]
    tasks = [(task.id, f"task {task.name} runs containers") for task in running]
    pools: Listing[RegistryAgentPool] | None = None
    if not lesser_tier(registry):
        pools = estate.every(RegistryAgentPool, registry.target)
        tasks += [(pool.id, f"agent pool {pool.name} has machines in {_network(pool)}") for pool in pools]
    observations = (registry, every) if pools is None else (registry, every, pools)
    if tasks:
        fill, message = (
            {"ATTACHED_ID": [resource_id for resource_id, _ in tasks]},
            "; ".join(description for _, description in tasks),
        )
        yield fails(
            registry.target, "Task", message, *observations, paths=(path_of(REGISTRY, "task", INTERNET),), fill=fill
        )
    else:
        yield passes(registry.target, "NoTask", "the registry runs no task and has no agent pool", *observations)


def _setting(value: str | None, default: str) -> str:
    """The value, or what a registry has that never set it, in an answer of the preview version.

    Each is a feature that a registry opts in to. The API's specification declares `Disabled` as the default of
    regionalEndpoints; of the other two it lists the values only (specification/containerregistry,
    Registry.models.tsp), and an opt-in that was not made is off.
    """
    return default if value is None else value


def _place(pipeline: ExportPipeline) -> str:
    return (pipeline.target.uri if pipeline.target is not None else None) or "a place not named"


def _network(pool: RegistryAgentPool) -> str:
    return pool.virtual_network_subnet_resource_id or "a network of Microsoft's, which reaches the internet"

"""What a registry fetches, sends and copies by itself, independently of the rules for clients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from hermetic.audit.checks.family import check
from hermetic.audit.checks.registries.access import lesser_tier
from hermetic.audit.estate.arm_fields import folded
from hermetic.audit.estate.azure.registries import CacheRule, ConnectedRegistry, Registry, RegistryWebhook, Replication
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.estate.resource import Resource
from hermetic.audit.evaluation.each_resource import each_registry
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, POD, REGISTRY, Path, path_of
from hermetic.audit.policy.declarations import Policy

R = TypeVar("R", bound=Resource)

# The only rule that an isolated cluster needs for AKS's own images.
REQUIRED = ("mcr.microsoft.com/*", "aks-managed-repository/*")


@check("acr-cache-wildcard")
def acr_cache_wildcard(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Any rule but the required one: the registry passes names that are pulled on to an upstream registry."""

    def more(_registry: Registry, rule: CacheRule) -> str:
        repositories = ((rule.source_repository or "").lower(), (rule.target_repository or "").lower())
        if repositories == REQUIRED and not rule.credential_set_resource_id:
            return ""
        signed = f", signed in by {rule.credential_set_resource_id}" if rule.credential_set_resource_id else ""
        return f"{rule.name} fetches {rule.source_repository or 'from a place not named'}{signed}"

    path = path_of(POD, REGISTRY, hops.registry("upstream registry"), INTERNET)
    yield from _each(estate, policy, CacheRule, more, "CacheRule", path)


@check("acr-connected-registry")
def acr_connected_registry(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A connected registry elsewhere copies what this one holds."""

    def more(_registry: Registry, connected_registry: ConnectedRegistry) -> str:
        return f"{connected_registry.name} copies images to another place"

    path = path_of(REGISTRY, hops.registry("connected registry"))
    yield from _each(estate, policy, ConnectedRegistry, more, "ConnectedRegistry", path, is_premium=True)


@check("acr-webhooks")
def acr_webhooks(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """A webhook reports each push to an outside address."""

    def more(_registry: Registry, webhook: RegistryWebhook) -> str:
        return f"{webhook.name} calls out on events"

    yield from _each(estate, policy, RegistryWebhook, more, "Webhook", path_of(REGISTRY, "webhook", INTERNET))


@check("acr-replications")
def acr_replications(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Copies in other regions; the home region is one of its own replications."""

    def more(registry: Registry, replication: Replication) -> str:
        here, there = folded(registry.location), folded(replication.location)
        return (
            ""
            if here and here == there
            else f"{replication.name} copies images to {replication.location or 'a region not named'}"
        )

    path = path_of(REGISTRY, "other region")
    yield from _each(estate, policy, Replication, more, "Replication", path, is_premium=True)


def _each(  # noqa: PLR0913 - the columns of a table
    estate: Estate,
    policy: Policy,
    kind: type[R],
    more: Callable[[Registry, R], str],
    reason: str,
    path: Path,
    *,
    is_premium: bool = False,
) -> Iterator[CheckResult]:
    """One result per registry. `more` describes an offending child; "" means none.

    is_premium: only registries of that tier can have such children, so others are not queried.
    """

    def evaluate(registry: Lookup[Registry]) -> Iterator[CheckResult]:
        if is_premium and (tier := lesser_tier(registry)):
            yield does_not_apply(registry.target, "NotInTier", f"a registry of tier {tier} can have none", registry)
            return
        children = estate.every(kind, registry.target)
        objecting = {
            child.name: message
            for child in children
            if registry.value is not None and (message := more(registry.value, child))
        }
        if objecting:
            message, fill = "; ".join(objecting.values()), {"RULE_NAME": list(objecting)}
            yield fails(registry.target, reason, message, registry, children, paths=(path,), fill=fill)
        else:
            kind_name = kind.TYPE.rpartition("/")[2]
            yield passes(registry.target, f"No{reason}", f"nothing leaves by {kind_name}", registry, children)

    yield from each_registry(estate, policy, evaluate)

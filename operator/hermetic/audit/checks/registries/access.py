"""Settings of the registry itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.azure.registries import Registry, RegistryPolicies, Switch
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup
from hermetic.audit.evaluation.each_resource import each_registry
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model import hops
from hermetic.audit.model.findings import Severity
from hermetic.audit.model.hops import INTERNET, REGISTRY, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.registry_storage import only_caches_for_aks

LESSER_TIERS = {"basic", "standard"}


def lesser_tier(registry: Lookup[Registry]) -> str:
    """The tier of a registry that is not Premium; "" for Premium, and where the tier is not known."""
    sku = registry.value.sku if registry.value is not None else None
    tier = (sku.name if sku is not None else None) or ""
    return tier if tier.lower() in LESSER_TIERS else ""


_KEPT_BY_AKS = """\
AKS makes and reconciles this registry, and what it sets for {setting} is not documented: do not change it. \
Keep images and weights of your own out of it. Where {off} must be off, give the cluster a registry of your own, with \
the cache rule aks-managed-mcr, {off} disabled and a private endpoint, and re-image the nodes after it.
az aks update --subscription CLUSTER_SUBSCRIPTION --resource-group CLUSTER_GROUP --name CLUSTER_NAME \
--bootstrap-artifact-source Cache \
--bootstrap-container-registry-resource-id REGISTRY_RESOURCE_ID"""
HELD_BY_AKS = "; AKS keeps this registry in the node resource group, and it holds copies of AKS's own images"


@check_each("acr-public", each_registry)
def acr_public(_estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Absent means public access. Permissive rules fail even with public access off: one change enables them."""
    access = registry.value.public_network_access if registry.value else None
    rules = registry.value.network_rule_set if registry.value else None
    action = rules.default_action if rules is not None else None
    ranges = [str(rule.get("value", "")) for rule in rules.ip_rules or ()] if rules is not None else []
    fill = {"DESTINATION": ranges}
    if (access or "").lower() != "disabled":
        message = f"publicNetworkAccess is {access or 'absent, which means Enabled'}"
        yield fails(registry.target, "PublicAccess", message, registry, paths=(path_of(INTERNET, REGISTRY),), fill=fill)
    elif rules is not None and (action or "").lower() != "deny":
        message = (
            f"public access is off, but the default action of its rules is {action or 'absent, which means Allow'}"
        )
        yield fails(registry.target, "RulesAllow", message, registry, severity=Severity.MEDIUM, fill=fill)
    elif rules is not None and rules.ip_rules:
        message = "public access is off, but the rules behind it list addresses of the internet"
        yield fails(registry.target, "RulesAllow", message, registry, severity=Severity.MEDIUM, fill=fill)
    else:
        yield passes(registry.target, "PrivateOnly", "publicNetworkAccess is Disabled", registry)


@check_each("acr-trusted-bypass", each_registry)
def acr_trusted_bypass(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Azure services may bypass the network rules, even with public access off; absent means that they may."""
    bypass = (registry.value.network_rule_bypass_options if registry.value else None) or "AzureServices"
    message, path = "services of Azure pass the network rules by", path_of(hops.service("azure services"), REGISTRY)
    if bypass.lower() == "none":
        yield passes(registry.target, "NoBypass", "no service passes the network rules by", registry)
    elif bypass.lower() == "azureservices":
        result = fails(registry.target, "TrustedBypass", message, registry, paths=(path,))
        yield _where_aks_keeps_it(estate, registry, result, "the bypass", "the bypass")
    else:
        yield unknown(registry.target, "BypassUnknown", f"networkRuleBypassOptions {bypass!r} is not known", registry)


@check_each("acr-task-bypass", each_registry)
def acr_task_bypass(_estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Tasks run any container on machines of the registry service, which reach the internet."""
    flag = registry.value.network_rule_bypass_allowed_for_tasks if registry.value else None
    result = _must_be_false(registry, flag, "networkRuleBypassAllowedForTasks", "TaskBypass")
    path = path_of(REGISTRY, "task", INTERNET)
    yield replace(result, paths=(path,)) if flag else result


@check_each("acr-export-policy", each_registry)
def acr_export_policy(estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """With export on, an image can be transferred to any other registry; absent means on."""
    status = export_status(registry)
    message = f"the export policy is {status or 'absent, which means enabled'}"
    path = path_of(REGISTRY, "export", hops.registry("other registry"))
    if status == "disabled":
        yield passes(registry.target, "ExportOff", "export is disabled", registry)
    else:
        result = fails(registry.target, "ExportOn", message, registry, paths=(path,))
        yield _where_aks_keeps_it(estate, registry, result, "the export policy", "export")


@check_each("acr-anonymous", each_registry)
def acr_anonymous(_estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Pulling without authentication."""
    flag = registry.value.anonymous_pull_enabled if registry.value else None
    yield _must_be_false(registry, flag, "anonymousPullEnabled", "AnonymousPull")


@check_each("acr-admin", each_registry)
def acr_admin(_estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """The admin user: one shared password that may push."""
    flag = registry.value.admin_user_enabled if registry.value else None
    yield _must_be_false(registry, flag, "adminUserEnabled", "AdminUser")


@check_each("acr-arm-audience", each_registry)
def acr_arm_audience(_estate: Estate, _policy: Policy, registry: Lookup[Registry]) -> Iterator[CheckResult]:
    """Nodes of isolated clusters authenticate with tokens for Azure Resource Manager."""
    status = _status(_policies(registry).azure_ad_authentication_as_arm_policy)
    if status == "enabled":
        yield passes(registry.target, "ArmTokensAccepted", "tokens for Azure Resource Manager are accepted", registry)
    elif status == "disabled":
        message = "tokens for Azure Resource Manager are refused: nodes of an isolated cluster cannot pull"
        yield fails(registry.target, "ArmTokensRefused", message, registry)
    else:
        yield unknown(registry.target, "NotSaid", f"azureADAuthenticationAsArmPolicy: {status or 'absent'}", registry)


def _where_aks_keeps_it(
    estate: Estate, registry: Lookup[Registry], result: CheckResult, setting: str, off: str
) -> CheckResult:
    """The Fail; of medium severity for a registry that AKS reconciles and that holds only AKS's images."""
    cache_observations = only_caches_for_aks(estate, registry.value) if registry.value is not None else None
    if cache_observations is None:
        return result
    return replace(
        result,
        message=result.message + HELD_BY_AKS,
        observations=(*result.observations, *cache_observations),
        severity=Severity.MEDIUM,
        remedy=_KEPT_BY_AKS.format(setting=setting, off=off),
    )


def _must_be_false(registry: Lookup[Registry], flag: bool | None, field: str, reason: str) -> CheckResult:
    if flag is None:
        return unknown(registry.target, "NotSaid", f"the answer does not contain {field}", registry)
    if flag:
        return fails(registry.target, reason, f"{field} is true", registry)
    return passes(registry.target, "Off", f"{field} is false", registry)


def export_status(registry: Lookup[Registry]) -> str:
    """ "enabled" or "disabled" in lower case; "" where it is absent, which means enabled."""
    return _status(_policies(registry).export_policy)


def _policies(registry: Lookup[Registry]) -> RegistryPolicies:
    return (registry.value.policies if registry.value is not None else None) or RegistryPolicies()


def _status(switch: Switch | None) -> str:
    return ((switch.status if switch is not None else None) or "").lower()

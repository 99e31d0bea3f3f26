"""Settings of the registry itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hermetic.audit import hops
from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.azure.registries import Registry, RegistryPolicies, Switch
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Seen
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.findings import Severity
from hermetic.audit.hops import INTERNET, REGISTRY, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.registry_storage_scope import each_registry, only_caches_for_aks

LESSER_TIERS = {"basic", "standard"}


def lesser_tier(seen: Seen[Registry]) -> str:
    """The tier of a registry that is not Premium; "" for Premium, and where the tier is not known."""
    sku = seen.value.sku if seen.value is not None else None
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
def acr_public(_estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Absent means public access. Permissive rules fail even with public access off: one change enables them."""
    access = seen.value.public_network_access if seen.value else None
    rules = seen.value.network_rule_set if seen.value else None
    action = rules.default_action if rules is not None else None
    if (access or "").lower() != "disabled":
        words = f"publicNetworkAccess is {access or 'absent, which means Enabled'}"
        yield fails(seen.target, "PublicAccess", words, seen, paths=(path_of(INTERNET, REGISTRY),))
    elif rules is not None and (action or "").lower() != "deny":
        words = f"public access is off, but the default action of its rules is {action or 'absent, which means Allow'}"
        yield fails(seen.target, "RulesAllow", words, seen, severity=Severity.MEDIUM)
    elif rules is not None and rules.ip_rules:
        words = "public access is off, but the rules behind it list addresses of the internet"
        yield fails(seen.target, "RulesAllow", words, seen, severity=Severity.MEDIUM)
    else:
        yield passes(seen.target, "PrivateOnly", "publicNetworkAccess is Disabled", seen)


@check_each("acr-trusted-bypass", each_registry)
def acr_trusted_bypass(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Azure services may bypass the network rules, even with public access off; absent means that they may."""
    bypass = (seen.value.network_rule_bypass_options if seen.value else None) or "AzureServices"
    words, path = "services of Azure pass the network rules by", path_of(hops.service("azure services"), REGISTRY)
    if bypass.lower() == "none":
        yield passes(seen.target, "NoBypass", "no service passes the network rules by", seen)
    elif bypass.lower() == "azureservices":
        found = fails(seen.target, "TrustedBypass", words, seen, paths=(path,))
        yield _where_aks_keeps_it(estate, seen, found, "the bypass", "the bypass")
    else:
        yield unknown(seen.target, "BypassUnknown", f"networkRuleBypassOptions {bypass!r} is not known", seen)


@check_each("acr-task-bypass", each_registry)
def acr_task_bypass(_estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Tasks run any container on machines of the registry service, which reach the internet."""
    flag = seen.value.network_rule_bypass_allowed_for_tasks if seen.value else None
    found = _must_be_false(seen, flag, "networkRuleBypassAllowedForTasks", "TaskBypass")
    path = path_of(REGISTRY, "task", INTERNET)
    yield replace(found, paths=(path,)) if flag else found


@check_each("acr-export-policy", each_registry)
def acr_export_policy(estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """With export on, an image can be transferred to any other registry; absent means on."""
    status = export_status(seen)
    words = f"the export policy is {status or 'absent, which means enabled'}"
    path = path_of(REGISTRY, "export", hops.registry("other registry"))
    if status == "disabled":
        yield passes(seen.target, "ExportOff", "export is disabled", seen)
    else:
        found = fails(seen.target, "ExportOn", words, seen, paths=(path,))
        yield _where_aks_keeps_it(estate, seen, found, "the export policy", "export")


@check_each("acr-anonymous", each_registry)
def acr_anonymous(_estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Pulling without authentication."""
    flag = seen.value.anonymous_pull_enabled if seen.value else None
    yield _must_be_false(seen, flag, "anonymousPullEnabled", "AnonymousPull")


@check_each("acr-admin", each_registry)
def acr_admin(_estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """The admin user: one shared password that may push."""
    flag = seen.value.admin_user_enabled if seen.value else None
    yield _must_be_false(seen, flag, "adminUserEnabled", "AdminUser")


@check_each("acr-arm-audience", each_registry)
def acr_arm_audience(_estate: Estate, _policy: Policy, seen: Seen[Registry]) -> Iterator[CheckResult]:
    """Nodes of isolated clusters authenticate with tokens for Azure Resource Manager."""
    status = _status(_policies(seen).azure_ad_authentication_as_arm_policy)
    if status == "enabled":
        yield passes(seen.target, "ArmTokensAccepted", "tokens for Azure Resource Manager are accepted", seen)
    elif status == "disabled":
        words = "tokens for Azure Resource Manager are refused: nodes of an isolated cluster cannot pull"
        yield fails(seen.target, "ArmTokensRefused", words, seen)
    else:
        yield unknown(seen.target, "NotSaid", f"azureADAuthenticationAsArmPolicy: {status or 'absent'}", seen)


def _where_aks_keeps_it(
    estate: Estate, seen: Seen[Registry], found: CheckResult, setting: str, off: str
) -> CheckResult:
    """The Fail; of medium severity for a registry that AKS reconciles and that holds only AKS's images."""
    kept = only_caches_for_aks(estate, seen.value) if seen.value is not None else None
    if kept is None:
        return found
    return replace(
        found,
        message=found.message + HELD_BY_AKS,
        observations=(*found.observations, *kept),
        severity=Severity.MEDIUM,
        remedy=_KEPT_BY_AKS.format(setting=setting, off=off),
    )


def _must_be_false(seen: Seen[Registry], flag: bool | None, field: str, reason: str) -> CheckResult:
    if flag is None:
        return unknown(seen.target, "NotSaid", f"the answer does not contain {field}", seen)
    if flag:
        return fails(seen.target, reason, f"{field} is true", seen)
    return passes(seen.target, "Off", f"{field} is false", seen)


def export_status(seen: Seen[Registry]) -> str:
    """ "enabled" or "disabled" in lower case; "" where it is absent, which means enabled."""
    return _status(_policies(seen).export_policy)


def _policies(seen: Seen[Registry]) -> RegistryPolicies:
    return (seen.value.policies if seen.value is not None else None) or RegistryPolicies()


def _status(switch: Switch | None) -> str:
    return ((switch.status if switch is not None else None) or "").lower()

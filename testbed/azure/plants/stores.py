"""Table F, second half: the registry, the storage account, the file share."""

from __future__ import annotations

import copy
from typing import Any

from testbed.azure.baseline.cluster import IDENTITIES, ISSUER, attached
from testbed.azure.baseline.layout import DATA_GROUP, KUBELET, LOCATION
from testbed.azure.baseline.services import CONTRIBUTOR, assign
from testbed.azure.estate import Estate
from testbed.azure.plants.plant import Change, Named, plant

ACR_PUSH = "8311e382-0749-4cb8-b61a-304f252e45ec"
BUILD = "d9b40c57-16ea-4f83-a0d2-7c58e3f1b964"
TRAIN = "2e71f8a9-c03d-4b56-9f14-68d5ba07e3c2"

# (name, check, severity, part of the site, dotted field, value, what was opened)
EDITS: tuple[tuple[str, str, str, str, str, Any, str], ...] = (
    ("registry_open_to_the_internet", "acr-public", "high", "registry", "publicNetworkAccess", "Enabled",
     "The registry answers on the internet."),
    ("registry_that_does_not_say", "acr-public", "high", "registry", "publicNetworkAccess", None,
     "The registry does not say whether it is public; it is."),
    ("registry_open_to_other_services", "acr-trusted-bypass", "high", "registry", "networkRuleBypassOptions",
     "AzureServices", "Other Azure services may read the registry."),
    ("registry_with_addresses_behind", "acr-public", "medium", "registry", "networkRuleSet.ipRules",
     [{"action": "Allow", "value": "20.91.12.0/24"}], "A public range is listed behind the closed endpoint."),
    ("registry_that_lets_tasks_pass", "acr-task-bypass", "high", "registry", "networkRuleBypassAllowedForTasks", True,
     "Tasks reach the registry past its network rules, and the internet."),
    ("registry_with_caches_that_are_written_to", "acr-writable-cache", "medium", "registry", "writableCacheRepos",
     "Enabled", "What the registry caches for AKS can be overwritten."),
    ("registry_with_an_endpoint_for_each_region", "acr-endpoints", "medium", "registry", "regionalEndpoints", "Enabled",
     "The registry answers under a name for each region as well."),
    ("registry_that_answers_by_ipv6", "acr-endpoints", "medium", "registry", "endpointProtocol", "IPv4AndIPv6",
     "The public endpoints of the registry answer by IPv6 as well."),
    ("registry_that_exports", "acr-export-policy", "high", "registry", "policies.exportPolicy.status", "enabled",
     "Artifacts may be transferred out of the registry."),
    ("registry_without_login", "acr-anonymous", "medium", "registry", "anonymousPullEnabled", True,
     "Anyone who reaches the registry may pull."),
    ("registry_with_a_shared_key", "acr-admin", "medium", "registry", "adminUserEnabled", True,
     "The registry has an admin user."),
    ("registry_without_arm_tokens", "acr-arm-audience", "info", "registry",
     "policies.azureADAuthenticationAsArmPolicy.status", "disabled",
     "The registry refuses the tokens that isolated nodes have."),
    ("storage_open_to_the_internet", "storage-public", "high", "storage", "publicNetworkAccess", "Enabled",
     "The storage account answers on the internet."),
    ("storage_open_to_other_services", "storage-public", "high", "storage", "networkAcls.bypass", "AzureServices",
     "Other Azure services may reach the storage account."),
    ("storage_copied_anywhere", "storage-copy-scope", "medium", "storage", "allowedCopyScope", None,
     "Blobs may be copied to accounts of any tenant."),
    ("storage_copied_to_all", "storage-copy-scope", "medium", "storage", "allowedCopyScope", "All",
     "Blobs may be copied to all accounts, in so many words."),
    ("storage_replicated_to_other_tenants", "storage-copy-scope", "medium", "storage", "allowCrossTenantReplication",
     True, "Objects may be replicated to accounts of other tenants."),
    ("share_open_to_the_internet", "fileshare-public", "high", "share", "publicNetworkAccess", "Enabled",
     "The file share answers on the internet."),
    ("share_that_does_not_say", "fileshare-public", "high", "share", "publicNetworkAccess", None,
     "The file share does not say whether it is public."),
    ("share_open_to_a_subnet", "fileshare-public", "high", "share", "publicAccessProperties.allowedSubnets",
     ["/subscriptions/d94e2b6a-7c15-4f08-b3a9-6e1d50f8c274/resourceGroups/rg-x/providers/Microsoft.Network/"
      "virtualNetworks/vnet-x/subnets/snet-x"], "The file share answers a subnet that is not the cluster's."),
    ("share_in_clear", "fileshare-eit", "medium", "share", "nfsProtocolProperties.encryptionInTransitRequired",
     "Disabled", "The file share is mounted without encryption."),
    ("share_written_by_root", "fileshare-squash", "medium", "share", "nfsProtocolProperties.rootSquash", "NoRootSquash",
     "Root on a client is root on the file share."),
)  # fmt: skip


def put(held: dict[str, Any], path: str, value: Any) -> None:
    """Sets a dotted field to a copy, since other plants change what lies below it; None takes it away."""
    *steps, last = path.split(".")
    for step in steps:
        held = held.setdefault(step, {})
    if value is None:
        held.pop(last, None)
    else:
        held[last] = copy.deepcopy(value)


def _edit(name: str, part: str, path: str, value: Any, title: str) -> Change:
    def change(estate: Estate) -> Named:
        target: str = getattr(estate.site, part)
        put(estate.properties(target), path, value)
        return target

    change.__name__, change.__doc__ = name, title
    return change


for _name, _check, _severity, _part, _path, _value, _title in EDITS:
    plant(_check, _severity, spot=f"{_part}:{_path}")(_edit(_name, _part, _path, _value, _title))


@plant("acr-public", "high", spot="registry:publicNetworkAccess")
def registry_that_allows_by_default(estate: Estate) -> Named:
    """The registry is public, and its rules allow by default."""
    properties = estate.properties(estate.site.registry)
    properties |= {"publicNetworkAccess": "Enabled", "networkRuleSet": {"defaultAction": "Allow", "ipRules": []}}
    return estate.site.registry


@plant("storage-public", "high", spot="storage:publicNetworkAccess")
def storage_that_allows_by_default(estate: Estate) -> Named:
    """The storage account is public, and its rules allow by default."""
    put(estate.properties(estate.site.storage), "networkAcls.defaultAction", "Allow")
    return _public_storage(estate)


@plant("storage-public", "high", spot="storage:publicNetworkAccess")
def storage_open_to_an_address(estate: Estate) -> Named:
    """The storage account answers one public range."""
    ranges = [{"value": "20.91.12.0/24", "action": "Allow"}]
    put(estate.properties(estate.site.storage), "networkAcls.ipRules", ranges)
    return _public_storage(estate)


def _public_storage(estate: Estate) -> str:
    put(estate.properties(estate.site.storage), "publicNetworkAccess", "Enabled")
    return estate.site.storage


@plant("acr-push-identity", "high", spot="assignment")
def kubelet_that_may_push(estate: Estate) -> Named:
    """The kubelet's identity may push: the registry is a drop box."""
    name = "0e7c5b19-94d2-4a6f-8b30-d1f26c7a5e48"
    assignment = assign(estate, estate.site.registry, KUBELET, ACR_PUSH, name)
    return estate.site.registry, assignment


@plant("acr-push-identity", "high", spot="assignment")
def kubelet_that_owns_the_group(estate: Estate) -> Named:
    """The kubelet's identity is contributor of the registry's group, and so inherits the right to push."""
    assignment = assign(estate, DATA_GROUP, KUBELET, CONTRIBUTOR, "6d38f1c4-2b05-4e97-a1cc-75b90e8d2f61")
    return estate.site.registry, assignment


@plant("acr-push-identity", "high", spot="assignment")
def identity_on_the_nodes_that_may_push(estate: Estate) -> Named:
    """Another identity is attached to the scale set: every pod there gets its tokens, and it may push."""
    identity = {"type": "UserAssigned", "userAssignedIdentities": attached("id-build", BUILD)}
    estate[estate.site.gpu_scale_set]["identity"] = identity
    assignment = assign(estate, estate.site.registry, BUILD, ACR_PUSH, "3fa16d02-9c7b-4b18-8e55-d0b4c27e9a61")
    return estate.site.registry, assignment


@plant("acr-push-identity", "high", spot="assignment")
def workload_identity_that_may_push(estate: Estate) -> Named:
    """A user-assigned identity trusts the cluster's token issuer: pods of one service account may push."""
    identity = estate.add(f"{IDENTITIES}/id-train", {"principalId": TRAIN, "clientId": TRAIN[::-1]})
    issuer = (estate.properties(estate.cluster).get("oidcIssuerProfile") or {}).get("issuerURL", ISSUER)
    credential = {"issuer": issuer, "subject": "system:serviceaccount:ml:train"}
    estate.add(f"{identity}/federatedIdentityCredentials/aks", credential)
    assignment = assign(estate, estate.site.registry, TRAIN, ACR_PUSH, "84d7e0f3-5b29-4c16-a3fd-92e16b07c5d8")
    return estate.site.registry, assignment


@plant("acr-cache-wildcard", "medium", spot="cache-rule")
def cache_rule_for_a_public_hub(estate: Estate) -> Named:
    """The registry fetches from a public hub on anyone's behalf."""
    rule = f"{estate.site.registry}/cacheRules/hub"
    estate.add(rule, {"sourceRepository": "docker.io/*", "targetRepository": "hub/*"})
    return rule, estate.site.registry


@plant("acr-connected-registry", "medium")
def registry_connected_to_another(estate: Estate) -> Named:
    """A registry elsewhere mirrors this one."""
    child = f"{estate.site.registry}/connectedRegistries/edge"
    estate.add(child, {"mode": "ReadOnly", "connectionState": "Online", "activation": {"status": "Active"}})
    return estate.site.registry, child


@plant("acr-webhooks", "medium")
def registry_that_calls_out(estate: Estate) -> Named:
    """A webhook calls an address outside on every push."""
    child = f"{estate.site.registry}/webhooks/notify"
    estate.add(child, {"status": "enabled", "scope": "", "actions": ["push"]}, location=LOCATION)
    return estate.site.registry, child


@plant("acr-replications", "medium")
def registry_replicated_elsewhere(estate: Estate) -> Named:
    """The registry is replicated to another region."""
    child = f"{estate.site.registry}/replications/westus3"
    estate.add(child, {"regionEndpointEnabled": True}, location="westus3")
    return estate.site.registry, child


@plant("acr-tokens", "medium", spot="token")
def registry_with_a_token_that_writes(estate: Estate) -> Named:
    """A token with a password pushes to the registry, and Entra ID knows nothing of it."""
    return _token(estate, "_repositories_push")


@plant("acr-tokens", "low", spot="token")
def registry_with_a_token_that_reads(estate: Estate) -> Named:
    """A token with a password pulls from the registry."""
    return _token(estate, "_repositories_pull")


def _token(estate: Estate, scope_map: str) -> str:
    registry = estate.site.registry
    secrets = {"passwords": [{"name": "password1", "creationTime": "2026-03-02T08:00:00Z"}], "certificates": []}
    properties = {"scopeMapId": f"{registry}/scopeMaps/{scope_map}", "status": "enabled", "credentials": secrets}
    estate.add(f"{registry}/tokens/partner", properties)
    return registry


@plant("acr-cache-wildcard", "medium", spot="cache-rule")
def cache_rule_that_signs_in(estate: Estate) -> Named:
    """The required cache rule signs in at its upstream with credentials."""
    registry = estate.site.registry
    estate.properties(f"{registry}/cacheRules/aks-managed-mcr")["credentialSetResourceId"] = (
        f"{registry}/credentialSets/upstream"
    )
    return registry


@plant("storage-replication", "high", spot="storage:replication")
def storage_replicated_to_a_stranger(estate: Estate) -> Named:
    """Every new blob is copied to an account in another tenant."""
    return _replicated(estate, "stdrop")


@plant("storage-replication", "medium", spot="storage:replication")
def storage_replicated_to_ours(estate: Estate) -> Named:
    """Every new blob is copied to another account of ours, which no check reads."""
    return _replicated(estate, f"{DATA_GROUP}/providers/Microsoft.Storage/storageAccounts/stcopy")


def website_off(estate: Estate, account: str) -> None:
    """A general-purpose account has its four services without their being made; it serves no website."""
    service = f"{account}/blobServices/default"
    if service not in estate:
        estate.add(service, {"cors": {"corsRules": []}, "staticWebsite": {"enabled": False}})
    for other in ("fileServices", "queueServices", "tableServices"):
        if f"{account}/{other}/default" not in estate:
            estate.add(f"{account}/{other}/default", {})


def _replicated(estate: Estate, destination: str) -> str:
    """Only accounts for blobs have such policies."""
    account = estate.site.storage
    estate[account].update(kind="StorageV2", sku={"name": "Standard_ZRS", "tier": "Standard"})
    website_off(estate, account)
    rules = [{"ruleId": "0d1e7a52", "sourceContainer": "weights", "destinationContainer": "weights"}]
    properties = {"sourceAccount": account, "destinationAccount": destination, "rules": rules}
    estate.add(f"{account}/objectReplicationPolicies/6f0c2b9a", properties)
    return account


@plant("storage-local-users", "medium", also=("storage-copy-scope",), spot="storage:isSftpEnabled")
def storage_with_a_local_user(estate: Estate) -> Named:
    """SFTP is on, and a user with a password of its own reads all of it."""
    account = estate.site.storage
    estate.properties(account).update({"isSftpEnabled": True, "isLocalUserEnabled": True, "isHnsEnabled": True})
    scopes = [{"permissions": "rwl", "service": "blob", "resourceName": "weights"}]
    estate.add(f"{account}/localUsers/partner", {"permissionScopes": scopes, "hasSshPassword": True})
    return account


@plant("storage-static-website", "medium", spot="storage:website", depends=True)
def storage_that_serves_a_website(estate: Estate) -> Named:
    """What lies in $web is served without a login to every client that reaches the account."""
    account = estate.site.storage
    estate[account].update(kind="StorageV2", sku={"name": "Standard_ZRS", "tier": "Standard"})
    website = {"enabled": True, "indexDocument": "index.html"}
    estate.add(f"{account}/blobServices/default", {"staticWebsite": website})
    return account

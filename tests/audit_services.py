"""A sealed cluster with everything beside it that its nodes use: registry, storage, names, private endpoints, a hub.

    azure = served_cluster()
    azure.change(REGISTRY, publicNetworkAccess="Enabled")
    assert verdicts(azure, "acr-public") == {REGISTRY.lower(): "Fail"}

Kubernetes objects are manifests by kind in `azure.objects`; they are answered once "kube" is among `azure.sources`.
"""

from __future__ import annotations

from typing import Any

from hermetic.audit.estate.questions import Answer, Body, Question
from hermetic.audit.model.findings import Evidence, Finding
from hermetic.audit.policy.declarations import Policy
from tests.audit_estates import (
    API_SERVER,
    CLUSTER,
    GROUP,
    NETWORK,
    RULES,
    SUBSCRIPTION,
    VNET,
    FakeAzure,
    ip_configuration,
    small_cluster,
)

KUBELET = "11111111-2222-3333-4444-555555555555"
OTHER_SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-00000000000f"
REGISTRY = f"{GROUP}/providers/Microsoft.ContainerRegistry/registries/aireg"
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/aistore"
SHARE = f"{GROUP}/providers/Microsoft.FileShares/fileShares/weights"
ENDPOINTS = f"{VNET}/subnets/endpoints"
REGISTRY_ENDPOINT = f"{NETWORK}/privateEndpoints/registry"
DNS_POLICY = f"{NETWORK}/dnsResolverPolicies/names"
ZONE_LINK = f"{NETWORK}/privateDnsZones/privatelink.azurecr.io/virtualNetworkLinks/ai"
HUB_GROUP = f"{OTHER_SUBSCRIPTION}/resourceGroups/hub"
HUB = f"{HUB_GROUP}/providers/Microsoft.Network/virtualNetworks/hub"
HUB_SUBNET = f"{HUB}/subnets/shared"
PEERING = f"{VNET}/virtualNetworkPeerings/to-hub"
FAR_PEERING = f"{HUB}/virtualNetworkPeerings/to-ai"
GATEWAY = f"{NETWORK}/virtualNetworkGateways/vpn"
MACHINE = f"{NETWORK}/networkInterfaces/tools"
ACR_PULL = "7f951dda-4ed3-4680-a7ca-43fe172d538d"
ACR_PUSH = "8311e382-0749-4cb8-b61a-304f252e45ec"


class FakeServices(FakeAzure):
    """With objects of Kubernetes, answers of actions that come in pages, and lists that hold what lies elsewhere.

    objects: {"v1/pods": [manifest]}; pages: {(target, action): {body: page}}; lists: {(target, kind): [body]}, all of
    Azure's in lower case.
    """

    def __init__(self) -> None:
        super().__init__()
        plain = small_cluster()
        self.bodies, self.actions = plain.bodies, plain.actions
        self.objects: dict[str, list[dict[str, Any]]] = {}
        self.pages: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
        self.lists: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def answer(self, question: Question) -> Answer:
        evidence = (Evidence(f"{question.verb} {question.kind}", 200, "0" * 64),)
        if question.source == "kube":
            return Answer(
                tuple(Body(body_value, evidence) for body_value in self.objects.get(question.kind, ())), evidence
            )
        listed = self.lists.get((question.target.lower(), question.kind.lower()))
        if question.verb == "list" and listed is not None:
            return Answer(tuple(Body(listed_body, evidence) for listed_body in listed), evidence)
        page = self.pages.get((question.target.lower(), question.action.lower()), {}).get(question.body)
        return super().answer(question) if page is None else Answer((Body(page, evidence),), evidence)


def verdicts(azure: FakeAzure, check: str, policy: Policy | None = None) -> dict[str, str]:
    """Verdict by resource in lower case."""
    return {resource: finding.verdict.value for resource, finding in azure.findings(check, policy).items()}


def only(azure: FakeAzure, check: str, policy: Policy | None = None) -> Finding:
    """The one finding of a check."""
    (finding,) = azure.findings(check, policy).values()
    return finding


def served_cluster() -> FakeServices:
    """Everything is closed: no check finds anything."""
    azure = FakeServices()
    _close_the_cluster(azure)
    _watch_and_name(azure)
    _add_stores(azure)
    return azure


def _close_the_cluster(azure: FakeAzure) -> None:
    azure.change(
        CLUSTER,
        publicNetworkAccess="Disabled",
        apiServerAccessProfile={
            "subnetId": API_SERVER,
            "enableVnetIntegration": True,
            "enablePrivateCluster": True,
            "enablePrivateClusterPublicFQDN": False,
            "disableRunCommand": True,
        },
        bootstrapProfile={"artifactSource": "Cache", "containerRegistryId": REGISTRY},
        identityProfile={"kubeletidentity": {"objectId": KUBELET}},
        autoUpgradeProfile={"nodeOSUpgradeChannel": "NodeImage"},
        nodeResourceGroupProfile={"restrictionLevel": "ReadOnly"},
    )


def _watch_and_name(azure: FakeAzure) -> None:
    log = f"{NETWORK}/networkWatchers/watcher/flowLogs/ai"
    azure.put(log, {"enabled": True}).change(VNET, flowLogs=[{"id": log}])
    for action in ("Connectivity", "SecurityAdmin"):
        azure.act(VNET, f"listNetworkManagerEffective{action}{_ENDS[action]}", {"value": []})
    azure.act(VNET, "listDnsForwardingRulesets", {"value": []})
    azure.act(VNET, "listDnsResolverPolicies", {"value": [{"id": DNS_POLICY}]})
    lists = f"{NETWORK}/dnsResolverDomainLists"
    azure.put(f"{lists}/ours", {"domains": ["privatelink.azurecr.io."]})
    azure.put(f"{lists}/all", {"domains": ["."]})
    azure.put(f"{DNS_POLICY}/dnsSecurityRules/allow", dns_rule(100, "Allow", f"{lists}/ours"))
    azure.put(f"{DNS_POLICY}/dnsSecurityRules/block", dns_rule(65000, "Block", f"{lists}/all"))
    zone = ZONE_LINK.rpartition("/virtualNetworkLinks/")[0]
    azure.put(zone, {"numberOfVirtualNetworkLinks": 1})
    azure.put(ZONE_LINK, {"virtualNetwork": {"id": VNET}, "resolutionPolicy": "Default"})


_ENDS = {"Connectivity": "Configurations", "SecurityAdmin": "Rules"}


def _add_stores(azure: FakeAzure) -> None:
    azure.put(ENDPOINTS, {"addressPrefix": "10.0.8.0/24", "defaultOutboundAccess": False})
    azure.put(REGISTRY, _registry(), location="westeurope")
    azure.put(ACCOUNT, _account())
    azure.put(f"{ACCOUNT}/blobServices/default", {"staticWebsite": {"enabled": False}})
    azure.put(SHARE, _share())
    for name, target in (("registry", REGISTRY), ("account", ACCOUNT), ("share", SHARE)):
        endpoint = add_endpoint(azure, f"{NETWORK}/privateEndpoints/{name}", target)
        azure.change(target, privateEndpointConnections=[consumer(endpoint)])
    azure.put(
        f"{REGISTRY}/cacheRules/aks-managed-mcr",
        {"sourceRepository": "mcr.microsoft.com/*", "targetRepository": "aks-managed-repository/*"},
    )
    azure.put(f"{REGISTRY}/replications/westeurope", location="West Europe")
    assign(azure, KUBELET, ACR_PULL)


def _registry() -> dict[str, Any]:
    return {
        "loginServer": "aireg.azurecr.io",
        "publicNetworkAccess": "Disabled",
        "networkRuleSet": {"defaultAction": "Deny"},
        "networkRuleBypassOptions": "None",
        "networkRuleBypassAllowedForTasks": False,
        "writableCacheRepos": "Disabled",
        "regionalEndpoints": "Disabled",
        "endpointProtocol": "IPv4",
        "anonymousPullEnabled": False,
        "adminUserEnabled": False,
        "policies": {
            "exportPolicy": {"status": "disabled"},
            "azureADAuthenticationAsArmPolicy": {"status": "enabled"},
        },
    }


def _account() -> dict[str, Any]:
    return {
        "publicNetworkAccess": "Disabled",
        "networkAcls": {"defaultAction": "Deny", "bypass": "None", "ipRules": [], "virtualNetworkRules": []},
        "allowedCopyScope": "PrivateLink",
        "allowCrossTenantReplication": False,
        "allowBlobPublicAccess": False,
        "allowSharedKeyAccess": False,
        "isSftpEnabled": False,
    }


def _share() -> dict[str, Any]:
    return {
        "hostName": "fs-weights.file.storage.azure.net",
        "protocol": "NFS",
        "publicNetworkAccess": "Disabled",
        "publicAccessProperties": {"allowedSubnets": []},
        "nfsProtocolProperties": {"rootSquash": "RootSquash", "encryptionInTransitRequired": "Enabled"},
    }


def dns_rule(priority: int, action: str, domain_list: str, **properties: Any) -> dict[str, Any]:
    """A DNS security rule about one domain list."""
    fields = {
        "priority": priority,
        "action": {"actionType": action},
        "dnsResolverDomainLists": [{"id": domain_list}],
        "dnsSecurityRuleState": "Enabled",
    }
    return {**fields, **properties}


def add_endpoint(azure: FakeAzure, endpoint: str, target: str, *, subnet: str = ENDPOINTS, manual: bool = False) -> str:
    """A private endpoint with one connection."""
    connection = {"name": "c", "properties": {"privateLinkServiceId": target, "groupIds": ["part"]}}
    automatic, by_hand = ([], [connection]) if manual else ([connection], [])
    azure.put(
        endpoint,
        {
            "subnet": {"id": subnet},
            "privateLinkServiceConnections": automatic,
            "manualPrivateLinkServiceConnections": by_hand,
        },
    )
    return endpoint


def consumer(endpoint: str | None, status: str | None = "Approved", name: str = "one") -> dict[str, Any]:
    """A connection as its target shows it; None: the answer leaves it out."""
    state = {} if status is None else {"status": status, "description": "", "actionsRequired": "None"}
    named = {} if endpoint is None else {"id": endpoint}
    return {
        "id": f"/c/{name}",
        "name": name,
        "properties": {"privateEndpoint": named, "privateLinkServiceConnectionState": state},
    }


def assign(azure: FakeAzure, principal: str, role: str, scope: str = REGISTRY, name: str = "one") -> None:
    """A role assignment, as the list at the registry answers it."""
    azure.put(
        f"{REGISTRY}/providers/Microsoft.Authorization/roleAssignments/{name}",
        {
            "principalId": principal,
            "roleDefinitionId": f"{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{role}",
            "scope": scope,
        },
    )


def peer(azure: FakeServices, **properties: Any) -> FakeServices:
    """A peering with a hub in another subscription, both sides; `rest` replaces fields of ours."""
    fields = {
        "peeringState": "Connected",
        "allowForwardedTraffic": False,
        "allowGatewayTransit": False,
        "useRemoteGateways": False,
        "peerCompleteVnets": True,
    }
    azure.put(HUB, {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}})
    sealed = {"defaultOutboundAccess": False, "networkSecurityGroup": {"id": RULES}}
    azure.put(HUB_SUBNET, {"addressPrefix": "10.9.1.0/24", **sealed})
    azure.put(PEERING, {**fields, "remoteVirtualNetwork": {"id": HUB}, **properties})
    azure.put(FAR_PEERING, {**fields, "remoteVirtualNetwork": {"id": VNET}})
    return azure


def add_gateway(azure: FakeServices, **properties: Any) -> FakeServices:
    """A VPN gateway in the cluster's network that has learned the client pool only."""
    home = f"{VNET}/subnets/GatewaySubnet"
    azure.put(home, {"addressPrefix": "10.0.9.0/27", "ipConfigurations": [{"id": f"{GATEWAY}/ipConfigurations/one"}]})
    addresses = [{"name": "one", "properties": {"subnet": {"id": home}}}]
    azure.put(GATEWAY, {"gatewayType": "Vpn", "ipConfigurations": addresses, **properties})
    azure.act(GATEWAY, "getLearnedRoutes", {"value": [{"network": "10.0.0.0/16", "origin": "Network"}]})
    return azure


def add_connection(azure: FakeAzure, status: str | None, name: str = "site") -> str:
    """A connection of that gateway; None: the answer does not say its status."""
    connection = f"{NETWORK}/connections/{name}"
    fields = {} if status is None else {"connectionStatus": status}
    azure.put(connection, {"connectionType": "IPsec", "virtualNetworkGateway1": {"id": GATEWAY}, **fields})
    return connection


def add_machine(
    azure: FakeAzure, nic: str = MACHINE, *, subnet: str = "", address: str = "10.0.7.4", **fields: Any
) -> str:
    """A machine beside the nodes, in a subnet of its own behind the sealed group unless `subnet` names another."""
    home = subnet or f"{VNET}/subnets/tools"
    if not subnet:
        sealed = {"defaultOutboundAccess": False, "networkSecurityGroup": {"id": RULES}}
        azure.put(home, {"addressPrefix": "10.0.7.0/24", **sealed})
    group = nic.partition("/providers/")[0]
    machine = f"{group}/providers/Microsoft.Compute/virtualMachines/tools"
    addresses = [ip_configuration(address, home, **fields)]
    interface_fields = {"virtualMachine": {"id": machine}, "ipConfigurations": addresses}
    azure.put(nic, {"defaultOutboundConnectivityEnabled": False, **interface_fields})
    return nic


def deny_nodes(priority: int = 100, **properties: Any) -> dict[str, Any]:
    """An inbound rule of another machine's group that stops every packet of the nodes."""
    fields = {
        "priority": priority,
        "access": "Deny",
        "direction": "Inbound",
        "protocol": "*",
        "sourceAddressPrefix": "10.0.0.0/16",
        "sourcePortRange": "*",
        "destinationAddressPrefix": "*",
        "destinationPortRange": "*",
    }
    return {"name": "deny-nodes", "properties": {**fields, **properties}}


def add_hub(azure: FakeAzure, network: str = VNET, **fields: Any) -> str:
    """A virtual hub in the cluster's subscription, connected to a network; returns the connection's id."""
    hub = f"{NETWORK}/virtualHubs/wan"
    azure.put(hub, {})
    connection = f"{hub}/hubVirtualNetworkConnections/ai"
    azure.put(connection, {"remoteVirtualNetwork": {"id": network}, **fields})
    return connection

"""Resource providers: whether a subscription has registered them, and what it may use of one that it has not."""

from __future__ import annotations

from typing import Any, Protocol

from testbed.azure import refusals, versions
from testbed.azure.estate import Estate
from testbed.azure.ids import ArmPath, subscription_of

Body = dict[str, Any]
ACTION = "Microsoft.Resources/subscriptions/providers/read"
REGISTERED = "Registered"
_CANNOT_BE_USED = frozenset({"NotRegistered", "Unregistered"})

# What `az provider show` lists of these, types below types aside; learn.microsoft.com/azure/templates has them by name.
_OFFERED = {
    "microsoft.network": """applicationgateways applicationsecuritygroups azurefirewalls bastionhosts connections
        ddosprotectionplans dnsforwardingrulesets dnsresolverdomainlists dnsresolverpolicies dnsresolvers
        expressroutecircuits expressroutegateways firewallpolicies ipgroups loadbalancers
        localnetworkgateways natgateways networkinterfaces networkmanagers networksecuritygroups
        networksecurityperimeters networkvirtualappliances networkwatchers privatednszones privateendpoints
        privatelinkservices publicipaddresses publicipprefixes routetables serviceendpointpolicies
        servicegateways virtualhubs virtualnetworkappliances virtualnetworkgateways virtualnetworks
        virtualnetworktaps virtualwans vpngateways""",
    "microsoft.compute": """availabilitysets diskaccesses diskencryptionsets disks galleries images
        proximityplacementgroups snapshots virtualmachines virtualmachinescalesets""",
    "microsoft.containerservice": "fleets managedclusters snapshots",
    "microsoft.containerregistry": "registries",
    "microsoft.storage": "storageaccounts",
    "microsoft.fileshares": "fileshares",
    "microsoft.authorization": "locks policyassignments roleassignments roledefinitions",
    "microsoft.managedidentity": "identities userassignedidentities",
    "microsoft.kubernetesconfiguration": "extensions fluxconfigurations privatelinkscopes",
    "microsoft.kubernetes": "connectedclusters",
    "microsoft.insights": """actiongroups activitylogalerts components datacollectionruleassociations
        datacollectionrules diagnosticsettings metricalerts privatelinkscopes scheduledqueryrules""",
    "microsoft.alertsmanagement": "actionrules prometheusrulegroups",
    "microsoft.eventgrid": """domains eventsubscriptions namespaces partnernamespaces systemtopics
        topics""",
    "microsoft.security": "privatelinks",
    "microsoft.monitor": "accounts",
    "microsoft.dataprotection": "backupvaults",
    "microsoft.recoveryservices": "vaults",
    "microsoft.eventhub": "clusters namespaces",
    "microsoft.servicebus": "namespaces",
    "microsoft.relay": "namespaces",
    "microsoft.web": "serverfarms sites staticsites",
    "microsoft.search": "searchservices",
    "microsoft.cognitiveservices": "accounts",
    "microsoft.sql": "managedinstances servers",
    "microsoft.dbforpostgresql": "flexibleservers servers",
    "microsoft.dbformysql": "flexibleservers servers",
    "microsoft.documentdb": "databaseaccounts mongoclusters",
    "microsoft.cache": "redis redisenterprise",
    "microsoft.keyvault": "managedhsms vaults",
    "microsoft.operationalinsights": "clusters workspaces",
}


class Reads(Protocol):
    """What is needed of the reader."""

    @property
    def estate(self) -> Estate: ...

    def demand(self, scope: str, action: str) -> None: ...


def body_of(reader: Reads, path: str, arm_path: ArmPath, version: str) -> Body:
    """GET of a provider in a subscription."""
    versions.check_endpoint(version, versions.CONTAINERS)
    reader.demand(arm_path.scope, ACTION)
    served = versions.BY_NAMESPACE.get(arm_path.namespace.lower())
    if served is None:
        raise refusals.no_such_provider(arm_path.namespace)
    return {
        "id": path,
        "namespace": arm_path.namespace,
        "resourceTypes": [
            {"resourceType": kind, "locations": ["Sweden Central"], "apiVersions": list(reversed(known))}
            for kind, known in _types(arm_path.namespace, served)
            if f"{arm_path.namespace}/{kind}".lower() not in reader.estate.not_offered
        ],
        "registrationState": state_of(reader.estate, path, arm_path.namespace),
        "registrationPolicy": "RegistrationRequired",
    }


def state_of(estate: Estate, path: str, namespace: str) -> str:
    """As the subscription of this path says it."""
    return estate.registrations.get((subscription_of(path).lower(), namespace.lower()), REGISTERED)


def must_be_registered(estate: Estate, path: str, arm_path: ArmPath) -> None:
    """Raises what ARM answers to any use of a provider that is not registered."""
    if state_of(estate, path, arm_path.namespace) in _CANNOT_BE_USED:
        raise refusals.not_registered(arm_path.namespace)


def must_be_offered(estate: Estate, kind: str, version: str) -> None:
    """Raises what ARM answers for a type that the region or the cloud does not offer, or for what lies below one."""
    code = next((code for left, code in estate.not_offered.items() if f"{kind.lower()}/".startswith(f"{left}/")), "")
    if code == "InvalidResourceType":
        namespace, _, remainder = kind.partition("/")
        raise refusals.no_such_type(namespace, remainder, version)
    if code:
        raise refusals.not_in_region(version, kind)


def _types(namespace: str, served: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    prefix = f"{namespace.lower()}/"
    own = {kind.removeprefix(prefix): known for kind, known in versions.BY_TYPE.items() if kind.startswith(prefix)}
    every = dict.fromkeys(("operations", *_OFFERED.get(namespace.lower(), "").split()), served) | own
    return list(every.items())

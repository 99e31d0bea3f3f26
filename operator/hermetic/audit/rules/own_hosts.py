"""Hosts that the audit or the policy file shows to be ours: instances of services in our subscriptions.

Names of most services are unique in a cloud (learn.microsoft.com/azure/azure-resource-manager/management/
resource-name-rules). A host of the same name in the domain of the service is therefore the resource that a list of our
subscriptions shows. What becomes of data there is decided by type, as for targets of private endpoints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from hermetic.audit.cluster.members import home_subscriptions
from hermetic.audit.cluster.resource_lookup import in_home_subscriptions, readable
from hermetic.audit.estate.arm_ids import same_id, type_of
from hermetic.audit.estate.azure.instances import (
    AiAccount,
    Cache,
    CosmosAccount,
    EventHubs,
    Instance,
    MySqlServer,
    PostgreSqlServer,
    RelayNamespace,
    SearchService,
    ServiceBus,
    Site,
    SqlServer,
)
from hermetic.audit.estate.azure.key_vaults import KeyVault, ManagedHsm
from hermetic.audit.estate.azure.private_link_types import ENDS, RELAYS
from hermetic.audit.estate.azure.registries import Registry
from hermetic.audit.estate.azure.storage import StorageAccount
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.observation import Listing, Lookup, Observation
from hermetic.audit.estate.resource import Resource
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.destinations import OwnHosts

Labels = Callable[[Any], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Service:
    """A type of resource, the domains of its hosts, and what a host has before the domain, in lower case."""

    kind: type[Resource]
    domains: tuple[str, ...]
    labels_of: Labels


def _domains(names: str) -> tuple[str, ...]:
    return tuple(f".{name}" for name in names.split())


def _labels_of_a_registry(registry: Registry) -> tuple[str, ...]:
    login_server = (registry.login_server or "").lower()
    return (login_server.partition(".")[0],) if login_server else ()


def _labels_of_an_instance(instance: Instance) -> tuple[str, ...]:
    return instance.host_labels


def _name(resource: Resource) -> tuple[str, ...]:
    return (resource.name.lower(),)


# learn.microsoft.com/azure/storage/common/storage-account-overview (standard endpoints), and the other clouds.
_STORES = tuple(
    f".{service}.core.{cloud}"
    for service in ("blob", "dfs", "file", "queue", "table")
    for cloud in ("windows.net", "usgovcloudapi.net", "chinacloudapi.cn")
)
_BUS = _domains("servicebus.windows.net servicebus.usgovcloudapi.net servicebus.chinacloudapi.cn")
# Domains: learn.microsoft.com/azure/private-link/private-endpoint-dns (public DNS zones of each cloud).
SERVICES = (
    Service(Registry, _domains("azurecr.io azurecr.us azurecr.cn"), _labels_of_a_registry),
    Service(StorageAccount, _STORES, _name),
    Service(KeyVault, _domains("vault.azure.net vault.usgovcloudapi.net vault.azure.cn"), _name),
    Service(ManagedHsm, _domains("managedhsm.azure.net"), _name),
    Service(EventHubs, _BUS, _labels_of_an_instance),
    Service(ServiceBus, _BUS, _labels_of_an_instance),
    Service(RelayNamespace, _BUS, _labels_of_an_instance),
    Service(Site, _domains("azurewebsites.net azurewebsites.us chinacloudsites.cn"), _labels_of_an_instance),
    Service(SearchService, _domains("search.windows.net search.windows.us search.azure.cn"), _labels_of_an_instance),
    Service(
        AiAccount,
        _domains(
            "cognitiveservices.azure.com openai.azure.com services.ai.azure.com cognitiveservices.azure.us "
            "openai.azure.us cognitiveservices.azure.cn"
        ),
        _labels_of_an_instance,
    ),
    Service(
        PostgreSqlServer,
        _domains("postgres.database.azure.com postgres.database.usgovcloudapi.net postgres.database.chinacloudapi.cn"),
        _labels_of_an_instance,
    ),
    Service(
        MySqlServer,
        _domains("mysql.database.azure.com mysql.database.usgovcloudapi.net mysql.database.chinacloudapi.cn"),
        _labels_of_an_instance,
    ),
    Service(
        SqlServer,
        _domains("database.windows.net database.usgovcloudapi.net database.chinacloudapi.cn"),
        _labels_of_an_instance,
    ),
    Service(
        CosmosAccount,
        _domains(
            "documents.azure.com documents.azure.us documents.azure.cn mongo.cosmos.azure.com "
            "cassandra.cosmos.azure.com gremlin.cosmos.azure.com table.cosmos.azure.com"
        ),
        _labels_of_an_instance,
    ),
    Service(
        Cache,
        _domains("redis.cache.windows.net redis.cache.usgovcloudapi.net redis.cache.chinacloudapi.cn"),
        _labels_of_an_instance,
    ),
)


@dataclass(frozen=True, slots=True)
class HostLists:
    """What was asked to tell our hosts from others: the resources that have a host, and the lists that have not."""

    shown: list[Observation] = field(default_factory=list)
    asked_in_vain: list[Observation] = field(default_factory=list)


def own_hosts(estate: Estate, policy: Policy, hosts: Iterable[str]) -> tuple[OwnHosts, HostLists]:
    """Which of these hosts, in lower case, are ours, and the lists that were needed.

    A list that could not be read in full causes no doubt about a host that it shows.
    """
    instances: dict[str, str] = {}
    relays: dict[str, str] = {}
    lists = HostLists()
    for host in (host for host in hosts if "*" not in host):
        own = _own_resources(estate, policy, host, lists)
        reasons = {resource: _reason_against(policy, resource) for resource in own}
        if own and not any(reasons.values()):
            instances[host] = own[0]
        relays.update((host, f"{resource}: {reason}") for resource, reason in reasons.items() if reason)
    accepted = frozenset(entry.host for entry in policy.allowed_hosts)
    return OwnHosts(policy.allowed_dns_domains, instances, accepted, relays), lists


def _own_resources(estate: Estate, policy: Policy, host: str, lists: HostLists) -> list[str]:
    """Ids of the resources of ours that have this host: none or one, as far as names are unique."""
    own: list[Lookup[Resource]] = []
    listings: list[Observation] = []
    for service in SERVICES:
        domain = next((service_domain for service_domain in service.domains if host.endswith(service_domain)), "")
        if domain:
            by_label, listing = _by_label(estate, policy, service)
            listings.append(listing)
            label = _label_of_a_data_endpoint(host.removesuffix(domain), service)
            own += [by_label[label]] if label in by_label else []
    lists.shown.extend(own)
    lists.asked_in_vain.extend(() if own else listings)
    return [resource.target for resource in own]


def _label_of_a_data_endpoint(label: str, service: Service) -> str:
    """The name in NAME.REGION.data, which registries have before their domain; any other label as it is.

    learn.microsoft.com/azure/container-registry/container-registry-dedicated-data-endpoints.
    """
    name, _, remainder = label.partition(".")
    return name if service.kind is Registry and remainder.partition(".")[2] == "data" else label


@derived
def _by_label(
    estate: Estate, policy: Policy, service: Service
) -> tuple[dict[str, Lookup[Resource]], Listing[Resource]]:
    """The resources of a service in our subscriptions, by what their hosts have before the domain."""
    listing = in_home_subscriptions(estate, policy, service.kind)
    if not home_subscriptions(estate, policy):
        return {}, listing
    damaged: list[Observation] = []
    by_label = {
        label: Lookup(resource.id, resource, resource.evidence)
        for resource, labels in readable(listing, lambda item: tuple(service.labels_of(item)), damaged)
        for label in labels
    }
    problem = listing.problem or next((item.problem for item in damaged), None)
    return by_label, Listing(listing.target, listing.items, listing.evidence, problem)


def _reason_against(policy: Policy, resource: str) -> str:
    """Why data that is sent to this resource of ours does not end there; "" where it does, or the policy accepts it."""
    kind = type_of(resource).lower()
    if kind in ENDS or any(same_id(resource, allowed) for allowed in policy.allowed_private_link_services):
        return ""
    return RELAYS[kind]

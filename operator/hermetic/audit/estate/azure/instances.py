"""Instances of services that have a public host: of each, only what its host is called is read.

Asked only where a rule of the declared firewall names a host in the service's domain.
"""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import (
    AI_SERVICES,
    CACHES,
    COSMOS,
    MYSQL,
    NAMESPACES,
    POSTGRESQL,
    SEARCH_SERVICES,
    SITES,
    SQL_SERVERS,
)
from hermetic.audit.estate.resource import Resource, arm


class Instance(Resource):
    """An instance whose host begins with its name, which is unique in a cloud.

    learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules (scope: global).
    """

    @property
    def host_labels(self) -> tuple[str, ...]:
        """What its hosts have before the domain of the service, in lower case."""
        return (self.name.lower(),)


@arm("Microsoft.EventHub/namespaces", NAMESPACES)
class EventHubs(Instance):
    """A namespace of event hubs."""


@arm("Microsoft.ServiceBus/namespaces", NAMESPACES)
class ServiceBus(Instance):
    """A namespace of queues and topics."""


@arm("Microsoft.Relay/namespaces", NAMESPACES)
class RelayNamespace(Instance):
    """A namespace of hybrid connections."""


@arm("Microsoft.Web/sites", SITES)
class Site(Instance):
    """A web or function app. Another tenant may have an app of its name: its hosts are in the answer.

    A unique default host name has a hash and a region after the name (learn.microsoft.com/azure/app-service/
    reference-app-settings, secure unique default hostnames). The deployment site's label is `scm`.
    """

    default_host_name: str | None = None
    host_names: list[str] | None = None

    @property
    def host_labels(self) -> tuple[str, ...]:
        """Everything before the service's domain, which may be several labels, with and without `scm`."""
        hosts = [host.lower() for host in (self.default_host_name or "", *(self.host_names or ())) if host]
        return tuple(label for host in hosts for label in _before_the_domain(host))


def _before_the_domain(host: str) -> tuple[str, ...]:
    label = host.rpartition(".")[0].rpartition(".")[0]
    name, dot, remainder = label.partition(".")
    return (label, f"{name}.scm{dot}{remainder}")


@arm("Microsoft.Search/searchServices", SEARCH_SERVICES)
class SearchService(Instance):
    """A search service."""


@arm("Microsoft.CognitiveServices/accounts", AI_SERVICES)
class AiAccount(Instance):
    """An account of Azure OpenAI and of other AI services; its name is unique in a resource group only."""

    custom_sub_domain_name: str | None = None

    @property
    def host_labels(self) -> tuple[str, ...]:
        """Its subdomain; empty without one, since its host is then that of the region."""
        return (self.custom_sub_domain_name.lower(),) if self.custom_sub_domain_name else ()


@arm("Microsoft.Sql/servers", SQL_SERVERS)
class SqlServer(Instance):
    """A logical server of SQL databases."""


@arm("Microsoft.DBforPostgreSQL/flexibleServers", POSTGRESQL)
class PostgreSqlServer(Instance):
    """A PostgreSQL server."""


@arm("Microsoft.DBforMySQL/flexibleServers", MYSQL)
class MySqlServer(Instance):
    """A MySQL server."""


@arm("Microsoft.DocumentDB/databaseAccounts", COSMOS)
class CosmosAccount(Instance):
    """An account of Cosmos DB."""


@arm("Microsoft.Cache/redis", CACHES)
class Cache(Instance):
    """A Redis cache."""

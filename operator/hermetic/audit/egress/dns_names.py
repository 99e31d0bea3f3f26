"""Names that a DNS security policy may allow without opening a way out: the cluster's own.

Resolving a name sends the name to the server that answers for it, with any answer. So a domain may be allowed
when a linked private zone answers for it, or when Azure does and no customer can delegate a name below it to another
server. Allowing a domain allows all names below it, and what their aliases (CNAME) lead to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ALWAYS = ("internal.cloudapp.net", "reddog.microsoft.com")
"""Names that Azure gives to the machines of every network."""
API_SERVERS = ("azmk8s.io", "cx.aks.containerservice.azure.us", "cx.prod.service.azk8s.cn")
"""Prefixed by the name of the region: in the public cloud, the US government's and 21Vianet's."""
OF_SERVICES = (
    "azurecr.io", "azurecr.us", "azurecr.cn",
    "blob.core.windows.net", "file.core.windows.net", "queue.core.windows.net", "table.core.windows.net",
    "dfs.core.windows.net", "file.storage.azure.net",
    "blob.core.usgovcloudapi.net", "file.core.usgovcloudapi.net",
    "blob.core.chinacloudapi.cn", "file.core.chinacloudapi.cn",
    "vault.azure.net", "vaultcore.azure.net",
    "monitor.azure.com", "ods.opinsights.azure.com", "oms.opinsights.azure.com", "agentsvc.azure-automation.net",
)  # fmt: skip
"""Public names of private endpoints: allowed where their zone `privatelink.` is linked."""
PRIVATE_LINK = "privatelink."


def plain(domain: str) -> str:
    """The domain in lower case, without blanks and dots around it."""
    return domain.strip().strip(".").lower()


def own_domains(region: str, zones: Iterable[str]) -> Iterator[str]:
    """Domains below which every name is the cluster's own. `zones`: names of private zones linked to the network."""
    yield from ALWAYS
    if region:
        yield from (f"{region.replace(' ', '').lower()}.{one}" for one in API_SERVERS)
    for zone in map(plain, zones):
        yield zone
        yield from (one for one in OF_SERVICES if zone.startswith(PRIVATE_LINK) and _is_counterpart(zone, one))


def is_of_a_service(zone: str) -> bool:
    """Whether it is a zone of Private Link, whose public names Azure's own servers answer."""
    name = plain(zone)
    return name.startswith(PRIVATE_LINK) and any(_is_counterpart(name, one) for one in OF_SERVICES)


def _is_counterpart(zone: str, service: str) -> bool:
    """Whether the zone is the one of the service; vaultcore.azure.net also serves the older name vault.azure.net."""
    public = zone.removeprefix(PRIVATE_LINK)
    return public == service or (public == "vaultcore.azure.net" and service == "vault.azure.net")


def is_within(domain: str, allowed: Iterable[str]) -> bool:
    """Whether the domain is one of these or below one."""
    name = plain(domain)
    return any(name == one or name.endswith(f".{one}") for one in map(plain, allowed) if one)

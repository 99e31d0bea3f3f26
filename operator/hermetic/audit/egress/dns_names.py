"""Which names are the cluster's own: what a DNS security policy may allow without opening a way.

A name that is resolved by a server of a stranger's choice carries data to that server, whatever the answer. So a domain
may be allowed that a linked private zone answers, and those of Azure below which no customer can delegate to a server
of his own. To allow a domain is to allow all names below it, and what their aliases (CNAME) lead to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ALWAYS = ("internal.cloudapp.net", "reddog.microsoft.com")
"""What Azure gives machines of a network by itself."""
API_SERVERS = ("azmk8s.io", "cx.aks.containerservice.azure.us", "cx.prod.service.azk8s.cn")
"""Below the name of the region, in the public cloud, in that for the US government and in 21Vianet's."""
OF_SERVICES = (
    "azurecr.io", "azurecr.us", "azurecr.cn",
    "blob.core.windows.net", "file.core.windows.net", "queue.core.windows.net", "table.core.windows.net",
    "dfs.core.windows.net", "file.storage.azure.net",
    "blob.core.usgovcloudapi.net", "file.core.usgovcloudapi.net",
    "blob.core.chinacloudapi.cn", "file.core.chinacloudapi.cn",
    "vault.azure.net", "vaultcore.azure.net",
    "monitor.azure.com", "ods.opinsights.azure.com", "oms.opinsights.azure.com", "agentsvc.azure-automation.net",
)  # fmt: skip
"""Public names that lead to a private endpoint: allowed where the zone `privatelink.` of them is linked."""
PRIVATE_LINK = "privatelink."


def plain(domain: str) -> str:
    """One spelling for one domain."""
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
    """Whether Azure's own servers answer in public for the zone: that of a Private Link service."""
    name = plain(zone)
    return name.startswith(PRIVATE_LINK) and any(_is_counterpart(name, one) for one in OF_SERVICES)


def _is_counterpart(zone: str, service: str) -> bool:
    """privatelink.azurecr.io has azurecr.io; so has vaultcore.azure.net the older vault.azure.net."""
    public = zone.removeprefix(PRIVATE_LINK)
    return public == service or (public == "vaultcore.azure.net" and service == "vault.azure.net")


def is_within(domain: str, allowed: Iterable[str]) -> bool:
    """Whether all names that the domain stands for are at or below one of these."""
    name = plain(domain)
    return any(name == one or name.endswith(f".{one}") for one in map(plain, allowed) if one)

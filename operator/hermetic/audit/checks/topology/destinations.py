"""What a firewall rule's service tag or wildcard lets through: instances of any tenant, or of Microsoft alone.

A service tag stands for a service and not for single instances of it (learn.microsoft.com/azure/virtual-network/
service-tags-overview). Anyone may create an instance of the services below, and so a name below their domains
(learn.microsoft.com/azure/private-link/private-endpoint-dns: public DNS zones).
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# In lower case, without the region that may follow after a dot.
OF_MANY_TENANTS = _names(
    """
    azurecloud storage sql azurecosmosdb azurekeyvault eventhub servicebus azurecontainerregistry appservice
    azurefrontdoor apimanagement azuremonitor azurecognitivesearch cognitiveservicesmanagement datafactory
    azuredatabricks azuremachinelearning azureiothub azuresignalr azurewebpubsub eventgrid logicapps powerplatforminfra
    azureresourcemanager azuredevops azuretrafficmanager batchnodemanagement azuredigitaltwins azurearcinfrastructure
    azureopendatasets powerbi office365
    """
)
# What it serves is written by Microsoft alone.
OF_MICROSOFT = frozenset({"microsoftcontainerregistry", "azurefrontdoor.firstparty", "azureupdatedelivery"})

SHARED_DOMAINS = _names(
    """
    blob.core.windows.net file.core.windows.net queue.core.windows.net table.core.windows.net dfs.core.windows.net
    web.core.windows.net database.windows.net servicebus.windows.net documents.azure.com azurewebsites.net azurecr.io
    vault.azure.net azure-api.net azurefd.net azureedge.net trafficmanager.net cloudapp.azure.com cloudapp.net
    azure-devices.net ods.opinsights.azure.com openai.azure.com cognitiveservices.azure.com search.windows.net
    azurecontainerapps.io azurestaticapps.net service.signalr.net webpubsub.azure.com eventgrid.azure.net
    blob.core.usgovcloudapi.net file.core.usgovcloudapi.net blob.core.chinacloudapi.cn file.core.chinacloudapi.cn
    """
)


def is_of_microsoft(word: str) -> bool:
    """Whether it is a service tag of a service whose content no customer writes."""
    return word.strip().lower() in OF_MICROSOFT


def is_of_many_tenants(word: str) -> bool:
    """Whether it is a service tag, with or without a region, of a service with instances of any tenant."""
    tag = word.strip().lower()
    return tag.partition(".")[0] in OF_MANY_TENANTS and not is_of_microsoft(tag)


def is_wildcard_of_many(word: str) -> bool:
    """Whether a host or URL has a wildcard for every name, below a top-level domain, or below or above a shared one."""
    host = word.strip().lower().removeprefix("https://").removeprefix("http://").partition("/")[0].partition(":")[0]
    if not host.startswith("*"):
        return False
    rest = host.lstrip("*").strip(".")
    if "." not in rest:
        return True
    return any(rest == one or rest.endswith(f".{one}") or one.endswith(f".{rest}") for one in SHARED_DOMAINS)

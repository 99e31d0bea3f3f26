"""What a firewall rule's tag or host lets through: instances of any tenant, or what one owner alone writes.

A service tag stands for a service and not for single instances of it (learn.microsoft.com/azure/virtual-network/
service-tags-overview), and an FQDN tag for all names that a service needs (learn.microsoft.com/azure/firewall/
fqdn-tags). Anyone may create an instance of the services below, and so a name below their domains
(learn.microsoft.com/azure/private-link/private-endpoint-dns: public DNS zones).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum

from hermetic.audit.egress.dns import is_within
from hermetic.audit.estate.kubernetes.names import INSTANCE_DOMAINS


class Recipient(Enum):
    """Who can receive what a rule's tag or host lets out."""

    NAMED = "named"
    """The host that the rule names, names of one owner, or a service whose content Microsoft alone writes."""
    OF_MANY_TENANTS = "of many tenants"
    """Anyone who creates an instance of a service or a name below a domain."""
    UNKNOWN = "unknown"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Service tags and FQDN tags, in lower case, without the region or product that may follow after a dot.
#
# The last line is of FQDN tags: desktops, vaults and clusters of any tenant, or storage of any account (Azure Backup:
# *.blob.core.windows.net, MicrosoftDocs/azure-docs includes/backup-network-connectivity.md). AzureKubernetesService
# holds every name of learn.microsoft.com/azure/aks/outbound-rules-control-egress, as .../aks/limit-egress-traffic says:
# *.ods.opinsights.azure.com takes logs for any workspace, *.hcp.REGION.azmk8s.io is the API server of any cluster.
_OF_MANY_TENANTS = _names(
    """
    azurecloud storage sql azurecosmosdb azurekeyvault eventhub servicebus azurecontainerregistry appservice
    azurefrontdoor apimanagement azuremonitor azurecognitivesearch cognitiveservicesmanagement datafactory
    azuredatabricks azuremachinelearning azureiothub azuresignalr azurewebpubsub eventgrid logicapps powerplatforminfra
    azureresourcemanager azuredevops azuretrafficmanager batchnodemanagement azuredigitaltwins azurearcinfrastructure
    azureopendatasets powerbi office365 microsoft365
    appserviceenvironment azurebackup azurehdinsight hdinsight windowsvirtualdesktop windows365 azurekubernetesservice
    """
)
# What they serve, or collect, Microsoft alone writes or reads.
_SERVICE_TAGS_OF_MICROSOFT = _names("microsoftcontainerregistry azurefrontdoor.firstparty azureupdatedelivery")
_WITH_REGIONS = _names("microsoftcontainerregistry")
_FQDN_TAGS_OF_MICROSOFT = _names("windowsupdate windowsdiagnostics microsoftactiveprotectionservice")

# Beside the zones of Private Link: services without such a zone, older names, and clouds of others.
_SHARED_DOMAINS = INSTANCE_DOMAINS | _names(
    """
    vault.azure.net vault.usgovcloudapi.net vault.azure.cn azurefd.net azureedge.net trafficmanager.net
    cloudapp.azure.com cloudapp.net logic.azure.com storage.azure.net applicationinsights.azure.com
    monitoring.azure.com ods.opinsights.azure.cn oms.opinsights.azure.cn sharepoint.com amazonaws.com googleapis.com
    """
)
# Registry storage and updates: .../aks/outbound-rules-control-egress; learn.microsoft.com/intune/configmgr/sum/
# get-started/install-a-software-update-point.
_DOMAINS_OF_MICROSOFT = (
    "data.mcr.microsoft.com", "data.mcr.azure.cn",
    "mp.microsoft.com", "update.microsoft.com", "windowsupdate.microsoft.com", "windowsupdate.com",
)  # fmt: skip

# Two labels or more, and no address: the last label is not a number.
_FQDN = re.compile(r"(?!.*\.[0-9]+$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")


def of_service_tag(word: str) -> Recipient:
    """What a service tag stands for, with or without a region."""
    return _of_tag(word, _SERVICE_TAGS_OF_MICROSOFT)


def of_fqdn_tag(word: str) -> Recipient:
    """What an FQDN tag of application rules stands for, with or without a product and category."""
    return _of_tag(word, _FQDN_TAGS_OF_MICROSOFT)


def _of_tag(word: str, of_microsoft: frozenset[str]) -> Recipient:
    tag = word.strip().lower()
    service = tag.partition(".")[0]
    if tag in of_microsoft or service in of_microsoft & _WITH_REGIONS:
        return Recipient.NAMED
    return Recipient.OF_MANY_TENANTS if service in _OF_MANY_TENANTS else Recipient.UNKNOWN


def of_host(word: str, own: Iterable[str] = ()) -> Recipient:
    """What an FQDN or a URL stands for. `own`: domains of which the policy file says that names below may be reached.

    An asterisk on the left stands for anything, not for one label: *contoso.com is evilcontoso.com too
    (learn.microsoft.com/azure/firewall/firewall-faq). Without one, an FQDN matches only itself. An address is no FQDN.
    """
    host = re.split(r"[/?#:]", word.strip().lower().rpartition("://")[2])[0].removesuffix(".")
    if "*" not in host:
        return Recipient.NAMED if _FQDN.fullmatch(host) else Recipient.UNKNOWN
    rest = host.rpartition("*")[2]
    domain = rest.strip(".")
    if host.startswith("*") and "." not in domain:
        return Recipient.OF_MANY_TENANTS
    if domain and any(f".{one}".endswith(rest) or f".{domain}".endswith(f".{one}") for one in _SHARED_DOMAINS):
        return Recipient.OF_MANY_TENANTS
    if host == f"*.{domain}" and _FQDN.fullmatch(domain) and is_within(domain, (*_DOMAINS_OF_MICROSOFT, *own)):
        return Recipient.NAMED
    return Recipient.UNKNOWN

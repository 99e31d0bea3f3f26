"""What a firewall rule's tag or host lets through: instances of any tenant, or what one owner alone writes.

A service tag stands for a service and not for single instances of it (learn.microsoft.com/azure/virtual-network/
service-tags-overview), and an FQDN tag for all names that a service needs (learn.microsoft.com/azure/firewall/
fqdn-tags). Anyone may create an instance of the services below, and so a name below their domains
(learn.microsoft.com/azure/private-link/private-endpoint-dns: public DNS zones). A single host may serve all tenants as
well: tenant_hosts.toml lists such hosts, with sources.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib.resources import files
from typing import Any

from hermetic.audit.estate.kubernetes.names import INSTANCE_DOMAINS
from hermetic.audit.rules.domain_names import is_within


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

_TABLE: dict[str, Any] = tomllib.loads(files("hermetic.audit.rules").joinpath("tenant_hosts.toml").read_text("utf-8"))
_HOSTS_OF_MANY_TENANTS = frozenset(host for entry in _TABLE["of_many_tenants"] for host in entry["hosts"])
_HOSTS_OF_ONE_OWNER = frozenset(host for entry in _TABLE["of_one_owner"] for host in entry["hosts"])
_SHARED_DOMAINS = INSTANCE_DOMAINS | {domain for entry in _TABLE["instances"] for domain in entry["domains"]}
"""Below these, every name is an instance of some tenant."""
# Registry storage and updates: .../aks/outbound-rules-control-egress; learn.microsoft.com/intune/configmgr/sum/
# get-started/install-a-software-update-point.
_DOMAINS_OF_MICROSOFT = (
    "data.mcr.microsoft.com", "data.mcr.azure.cn",
    "mp.microsoft.com", "update.microsoft.com", "windowsupdate.microsoft.com", "windowsupdate.com",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OwnHosts:
    """Names that the audit or the policy file shows to be ours, in lower case.

    `instances` are hosts of resources in the subscriptions in scope, with the id of the resource. `relays` are hosts of
    those that pass data on, with the id and the reason. `accepted` are hosts that the policy file accepts, `domains`
    are domains of which the policy file says that all names below them are ours.
    """

    domains: tuple[str, ...] = ()
    instances: Mapping[str, str] = field(default_factory=dict)
    accepted: frozenset[str] = frozenset()
    relays: Mapping[str, str] = field(default_factory=dict)


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


def host_in(word: str) -> str:
    """The host of an FQDN or a URL, in lower case, without scheme, user, port, path and final dot."""
    return re.split(r"[/?#:]", word.strip().lower().rpartition("://")[2])[0].removesuffix(".")


def of_host(word: str, own: OwnHosts) -> Recipient:
    """What an FQDN or a URL stands for; a path decides nothing, since the host is what the table knows.

    An asterisk on the left stands for anything, not for one label: *contoso.com is evilcontoso.com too
    (learn.microsoft.com/azure/firewall/firewall-faq). Without one, an FQDN matches only itself. An address is no FQDN.
    """
    host = host_in(word)
    return _of_pattern(host, own) if "*" in host else _of_full_host(host, own)


def _of_full_host(host: str, own: OwnHosts) -> Recipient:
    if not _FQDN.fullmatch(host):
        return Recipient.UNKNOWN
    if host in own.accepted or host in own.instances or host in _HOSTS_OF_ONE_OWNER:
        return Recipient.NAMED
    if is_within(host, _HOSTS_OF_MANY_TENANTS):
        return Recipient.OF_MANY_TENANTS
    if is_of_an_instance(host):
        return Recipient.UNKNOWN
    return Recipient.NAMED if is_within(host, (*_DOMAINS_OF_MICROSOFT, *own.domains)) else Recipient.UNKNOWN


def is_of_an_instance(host: str) -> bool:
    """Whether a host in lower case is an instance of a service that any tenant can create an instance of."""
    return is_within(host, _SHARED_DOMAINS)


def _of_pattern(host: str, own: OwnHosts) -> Recipient:
    suffix = host.rpartition("*")[2]
    domain = suffix.strip(".")
    shared = _SHARED_DOMAINS | _HOSTS_OF_MANY_TENANTS
    if host.startswith("*") and "." not in domain:
        return Recipient.OF_MANY_TENANTS
    if domain and any(
        f".{shared_domain}".endswith(suffix) or f".{domain}".endswith(f".{shared_domain}") for shared_domain in shared
    ):
        return Recipient.OF_MANY_TENANTS
    if host == f"*.{domain}" and _FQDN.fullmatch(domain) and is_within(domain, (*_DOMAINS_OF_MICROSOFT, *own.domains)):
        return Recipient.NAMED
    return Recipient.UNKNOWN

"""Add-ons and monitoring: each sends data to Azure, by a private endpoint or over the internet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.audit.checks.family import check_each
from hermetic.audit.cluster_scope import of_cluster
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.private_link import MonitorScope
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation import CheckResult, fails, passes, unknown
from hermetic.audit.hops import INTERNET, NODE, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.private_links import targets_of

# The resource type that an add-on sends to, where a private endpoint is possible; "" where none is.
ADDONS: Mapping[str, str] = {
    "omsagent": MonitorScope.TYPE,
    "azurekeyvaultsecretsprovider": "Microsoft.KeyVault/vaults",
    "azurepolicy": "",
    "ingressapplicationgateway": "",
    "aciconnectorlinux": "",
    "httpapplicationrouting": "",
    "openservicemesh": "",
}

# The az CLI's name of an add-on, which may differ from ARM's.
TYPED = {
    "omsagent": "monitoring",
    "azurekeyvaultsecretsprovider": "azure-keyvault-secrets-provider",
    "azurepolicy": "azure-policy",
    "ingressapplicationgateway": "ingress-appgw",
    "aciconnectorlinux": "virtual-node",
    "httpapplicationrouting": "http_application_routing",
    "openservicemesh": "open-service-mesh",
}


@check_each("aks-addons", of_cluster)
def aks_addons(estate: Estate, policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Every enabled add-on has a private endpoint to its service."""
    on = [name for name, one in (cluster.addon_profiles or {}).items() if one.is_on]
    backed = {name: targets_of(estate, policy, ADDONS[name.lower()]) for name in on if ADDONS.get(name.lower())}
    bare = [name for name in on if name.lower() in ADDONS and not (name in backed and backed[name].items)]
    odd = [name for name in on if name.lower() not in ADDONS]
    observations: tuple[Observation, ...] = (cluster, *backed.values())
    unseen = next((backed[name] for name in bare if name in backed and backed[name].problem is not None), None)
    if unseen is not None:
        words = "private endpoints of add-ons were not seen"
        yield unknown(estate.cluster, "EndpointsNotSeen", words, unseen)
    elif bare:
        words = f"add-ons without a private endpoint: {', '.join(bare)}"
        paths, fill = (
            (path_of(NODE, "add-on", "azure", INTERNET),),
            {"ADDON_NAME": [TYPED[name.lower()] for name in bare]},
        )
        yield fails(estate.cluster, "AddOnsOn", words, *observations, paths=paths, fill=fill)
    elif odd:
        words = f"add-ons that are not known: {', '.join(odd)}"
        yield unknown(estate.cluster, "AddOnUnknown", words, cluster)
    else:
        words = f"private endpoints stand before {', '.join(on)}" if on else "no add-on is on"
        yield passes(estate.cluster, "AddOnsClosed", words, *observations)


@check_each("aks-monitoring", of_cluster)
def aks_monitoring(estate: Estate, policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Monitoring features send to Azure; they pass with a private endpoint to an Azure Monitor private link scope."""
    on = list(_measuring(cluster))
    if not on:
        yield passes(estate.cluster, "NothingSent", "nothing that measures is on", cluster)
        return
    scopes = targets_of(estate, policy, MonitorScope.TYPE)
    if scopes.items:
        words = f"{', '.join(on)}: a private endpoint leads to Azure Monitor"
        yield passes(estate.cluster, "MonitorPrivate", words, cluster, scopes)
    elif scopes.problem is not None:
        words = f"{', '.join(on)}: private endpoints were not seen"
        yield unknown(estate.cluster, "EndpointsNotSeen", words, scopes)
    else:
        words = f"{', '.join(on)}: on, and no private endpoint leads to Azure Monitor"
        yield fails(
            estate.cluster, "SentOutside", words, cluster, scopes, paths=(path_of(NODE, "azure monitor", INTERNET),)
        )


def _measuring(cluster: ManagedCluster) -> Iterator[str]:
    yield from (f"azureMonitorProfile.{path}" for path in _switched_on(cluster.azure_monitor_profile or {}))
    security, metrics = cluster.security_profile, cluster.metrics_profile
    defender = security.defender if security is not None else None
    sensor = defender.security_monitoring if defender is not None else None
    if sensor is not None and sensor.enabled:
        yield "securityProfile.defender.securityMonitoring"
    costs = metrics.cost_analysis if metrics is not None else None
    if costs is not None and costs.enabled:
        yield "metricsProfile.costAnalysis"


def _switched_on(value: Any, path: str = "") -> Iterator[str]:
    """Paths of every `enabled` that is neither false nor null, at any depth, in lists as well."""
    inside = {str(number): item for number, item in enumerate(value)} if isinstance(value, list) else value
    for key, inner in inside.items() if isinstance(inside, Mapping) else ():
        if key.lower() == "enabled" and inner is not False and inner is not None:
            yield path or key
        else:
            yield from _switched_on(inner, f"{path}.{key}" if path else key)

"""Add-ons and monitoring: each sends data to Azure, by a private endpoint or over the internet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hermetic.audit.checks.family import check_each
from hermetic.audit.estate.azure.aks import ManagedCluster
from hermetic.audit.estate.azure.private_link import MonitorScope
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Observation
from hermetic.audit.evaluation.each_resource import of_cluster
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown
from hermetic.audit.model.hops import INTERNET, NODE, path_of
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.scope.telemetry_links import OF_MONITOR_PROFILE, Feature, Link, endpoint_to, link_of

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
    enabled = [name for name, profile in (cluster.addon_profiles or {}).items() if profile.is_on]
    links = {name: _link_of_addon(estate, policy, cluster, name) for name in enabled if name.lower() in ADDONS}
    unseen = {
        name: observation for name, link in links.items() if link.gap and (observation := _unread(link)) is not None
    }
    bare = [name for name, link in links.items() if link.gap and name not in unseen]
    undocumented = [name for name in enabled if name.lower() not in ADDONS]
    observations: tuple[Observation, ...] = (
        cluster,
        *(observation for link in links.values() for observation in link.observations),
    )
    if unseen:
        message = f"private endpoints of {', '.join(unseen)} were not seen"
        yield unknown(estate.cluster, "EndpointsNotSeen", message, *unseen.values())
    if bare:
        message = f"add-ons without a private endpoint: {', '.join(f'{name} ({links[name].gap})' for name in bare)}"
        path = path_of(NODE, "add-on", "azure", INTERNET)
        fill = {"ADDON_NAME": [TYPED[name.lower()] for name in bare]}
        rests_on = (cluster, *(observation for name in bare for observation in links[name].observations))
        yield fails(estate.cluster, "AddOnsOn", message, *rests_on, paths=(path,), fill=fill)
    if undocumented:
        message = f"add-ons that are not known: {', '.join(undocumented)}"
        yield unknown(estate.cluster, "AddOnUnknown", message, cluster)
    if not (unseen or bare or undocumented):
        message = f"private endpoints stand before {', '.join(enabled)}" if enabled else "no add-on is on"
        yield passes(estate.cluster, "AddOnsClosed", message, *observations)


def _unread(link: Link) -> Observation | None:
    """The first observation of a link that could not be read in full."""
    return next((observation for observation in link.observations if observation.problem is not None), None)


def _link_of_addon(estate: Estate, policy: Policy, cluster: ManagedCluster, name: str) -> Link:
    kind = ADDONS[name.lower()]
    if kind == MonitorScope.TYPE:
        return link_of(estate, policy, cluster, Feature.CONTAINER_INSIGHTS)
    return endpoint_to(estate, policy, kind) if kind else Link("Azure documents none")


@check_each("aks-monitoring", of_cluster)
def aks_monitoring(estate: Estate, policy: Policy, cluster: ManagedCluster) -> Iterator[CheckResult]:
    """Monitoring features send to Azure; each passes with the private link that it uses."""
    features = list(_measuring(cluster))
    if not features:
        yield passes(estate.cluster, "NothingSent", "nothing that measures is on", cluster)
        return
    links = [(name, link_of(estate, policy, cluster, feature)) for name, feature in features]
    open_links = [(name, link) for name, link in links if link.gap]
    unseen = [(name, link, observation) for name, link in open_links if (observation := _unread(link)) is not None]
    bare = [(name, link) for name, link in open_links if _unread(link) is None]
    if unseen:
        message = f"private links were not seen: {'; '.join(f'{name}: {link.gap}' for name, link, _ in unseen)}"
        yield unknown(estate.cluster, "EndpointsNotSeen", message, *(observation for _, _, observation in unseen))
    if bare:
        path, message = (
            path_of(NODE, "azure monitor", INTERNET),
            "; ".join(f"{name}: {link.gap}" for name, link in bare),
        )
        observations = (observation for _, link in bare for observation in link.observations)
        yield fails(estate.cluster, "SentOutside", message, cluster, *observations, paths=(path,))
    if not open_links:
        message = f"{', '.join(name for name, _ in links)}: a private link stands before each"
        observations = (observation for _, link in links for observation in link.observations)
        yield passes(estate.cluster, "MonitorPrivate", message, cluster, *observations)


def _measuring(cluster: ManagedCluster) -> Iterator[tuple[str, Feature]]:
    for path in _switched_on(cluster.azure_monitor_profile or {}):
        top = path.lower().partition(".")[0]
        yield f"azureMonitorProfile.{path}", OF_MONITOR_PROFILE.get(top, Feature.NOT_KNOWN)
    security, metrics = cluster.security_profile, cluster.metrics_profile
    defender = security.defender if security is not None else None
    sensor = defender.security_monitoring if defender is not None else None
    if sensor is not None and sensor.enabled:
        yield "securityProfile.defender.securityMonitoring", Feature.DEFENDER
    costs = metrics.cost_analysis if metrics is not None else None
    if costs is not None and costs.enabled:
        yield "metricsProfile.costAnalysis", Feature.COSTS


def _switched_on(value: Any, path: str = "") -> Iterator[str]:
    """Paths of every `enabled` that is neither false nor null, at any depth, in lists as well."""
    inside = {str(number): item for number, item in enumerate(value)} if isinstance(value, list) else value
    for key, inner in inside.items() if isinstance(inside, Mapping) else ():
        if key.lower() == "enabled" and inner is not False and inner is not None:
            yield path or key
        else:
            yield from _switched_on(inner, f"{path}.{key}" if path else key)

"""Table C, `service-pivot`: managed services that Azure puts into a subnet beside the nodes.

Delegations and links in the form of learn.microsoft.com/rest/api/virtualnetwork/subnets/get.
"""

from __future__ import annotations

from testbed.azure.baseline.layout import LOCATION, NETWORK_GROUP
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import Body, delegated, delegations, network, service_link, subnet
from testbed.azure.plants.plant import Change, Named, plant

HOME = "snet-service"
PREFIX = "10.40.46.0/24"

# (name, type, what was opened)
DELEGATED = (
    ("container_groups", "Microsoft.ContainerInstance/containerGroups", "Container groups run"),
    ("an_app_service_environment", "Microsoft.Web/hostingEnvironments", "Web apps run in an environment of their own"),
    ("container_apps", "Microsoft.App/environments", "Container apps run"),
    ("notebooks", "Microsoft.Databricks/workspaces", "Clusters of notebooks run"),
    ("a_database", "Microsoft.DBforPostgreSQL/flexibleServers", "A database server, which calls other servers, runs"),
)


def gateway(estate: Estate, *backends: Body) -> str:
    """An application gateway with a private address alone, in front of these backends."""
    home = subnet(estate, HOME, PREFIX, delegations=delegations("Microsoft.Network/applicationGateways"))
    private = {"privateIPAddress": "10.40.46.10", "privateIPAllocationMethod": "Static", "subnet": {"id": home}}
    properties = {
        "sku": {"name": "Standard_v2", "tier": "Standard_v2"},
        "gatewayIPConfigurations": [{"name": "gateway", "properties": {"subnet": {"id": home}}}],
        "frontendIPConfigurations": [{"name": "private", "properties": private}],
        "backendAddressPools": [{"name": "backends", "properties": {"backendAddresses": list(backends)}}],
    }
    return estate.add(network(estate, "applicationGateways", "agw-internal"), properties, location=LOCATION)


def _in_a_delegated_subnet(name: str, service: str, subject: str) -> Change:
    def change(estate: Estate) -> Named:
        return delegated(estate, service, name=HOME, prefix=PREFIX)

    change.__name__ = f"{name}_beside_the_nodes"
    change.__doc__ = f"{subject} in a subnet of the network; that the subnet is private does not hold for the service."
    return change


for _name, _service, _what in DELEGATED:
    plant("service-pivot", "high", spot=HOME)(_in_a_delegated_subnet(_name, _service, _what))


@plant("service-pivot", "high", spot=HOME)
def api_gateway_in_the_network(estate: Estate) -> Named:
    """API Management in internal mode: no delegation, and a link shows it."""
    home = subnet(estate, HOME, PREFIX)
    estate.properties(home)["resourceNavigationLinks"] = [service_link("Microsoft.ApiManagement/service")]
    return home


@plant("service-pivot", "high", spot=HOME)
def application_gateway_before_an_address_outside(estate: Estate) -> Named:
    """An application gateway without a public address passes requests on to one of the internet."""
    return gateway(estate, {"ipAddress": "20.91.66.7"})


@plant("service-pivot", "high", spot=HOME)
def container_groups_of_a_network_profile(estate: Estate) -> Named:
    """Container groups of the older kind: the subnet shows the network profile alone."""
    home = subnet(estate, HOME, PREFIX)
    profile = f"{NETWORK_GROUP}/providers/Microsoft.Network/networkProfiles/aci"
    held = f"{profile}/containerNetworkInterfaceConfigurations/eth0/ipConfigurations/ipconfigprofile1"
    estate.properties(home)["ipConfigurationProfiles"] = [{"id": held}]
    return home

"""Estates that an engineer of Azure networks would try: an egress path is never a Pass, and a closed estate is one."""

from __future__ import annotations

import pytest

from hermetic.audit.checks.registry import PAGES
from hermetic.audit.report.causes import causes_of
from testbed.azure.baseline import estate_of
from testbed.azure.references import refer_back
from tests.decision_cases import (
    HUB_MACHINE,
    Case,
    admin_rule,
    api_server_of_another_cluster,
    backends,
    balancer_before,
    balancer_before_an_interface_elsewhere,
    connected_group,
    containers_that_an_admin_rule_opens,
    containers_that_nodes_may_not_reach,
    endpoint,
    gateway_of_the_hub,
    global_balancer_before_a_public_one,
    global_balancer_before_the_internal_one,
    group_on_all_interfaces_but_one,
    group_on_interfaces_alone,
    hub_connection,
    hub_machine,
    hub_that_is_not_readable,
    inbound_translation_alone,
    inhabited,
    link_of_a_service,
    linked,
    node_subnet_delegated_to_containers,
    offered_to_front_door,
    perimeter,
    public_api_server_in_a_perimeter,
    route_server,
    service,
    tunnel,
    virtual_nodes,
    without_group,
)
from tests.decision_cases_instances import (
    capacity,
    instance_of_an_older_model,
    instance_that_no_list_shows,
    instance_without_interface,
    older_model_in_an_open_subnet,
    pool_of_machines,
    pool_of_machines_by_size,
    pool_that_counts,
    scale_set_of_others,
    second_interface,
    without_capacity,
)
from tests.decisions import base, must_be_decided_as_documented, must_be_distinct_and_sourced

ACI, OTHERS = "Microsoft.ContainerInstance/containerGroups", "Microsoft.ContainerService/managedClusters"
COMPUTE = "Microsoft.Compute/virtualMachineScaleSets/of-compute/virtualMachines/0/networkInterfaces/n"
BALANCER, IN_THE_BALANCER = "Microsoft.Network/loadBalancers/of-service", "frontendIPConfigurations"
GATEWAY, IN_THE_GATEWAY = "Microsoft.Network/applicationGateways/of-others", "gatewayIPConfigurations"
INTERFACE = "Microsoft.Network/networkInterfaces/of-compute"
GROUP = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkManagers/m/networkGroups/g"
ADDRESS = {"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/publicIPAddresses/p"}
ADMIN, ADMIN_RULES = "avnm-admin-rules", "Security admin rules in Azure Virtual Network Manager"
PIVOT, GROUPS = "service-pivot", "How network security groups filter network traffic"
MACHINE_POOLS = "AKS, REST: agentPoolProfiles.virtualMachineNodesStatus"
AGENT_POOLS = "AKS, REST: agentPoolProfiles.count"
SCALE_SETS = "Virtual Machine Scale Sets, REST: sku.capacity"
TO_THE_HUB, TO_OTHERS = admin_rule("AlwaysAllow", "10.10.0.0/16"), admin_rule("AlwaysAllow", "10.77.0.0/16")
INTO_THE_HUB = admin_rule("AlwaysAllow", HUB_MACHINE, direction="Inbound", home="hub")
SERVICES = "Deploy dedicated Azure services into virtual networks"

BACKENDS, REGIONS = "Backend pool management: limitations", "Global load balancer: regional frontends as backends"
OTHER_NETWORK = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/vnet-others"
OTHER_ADDRESS = {"ipAddress": "10.77.0.4", "virtualNetwork": {"id": OTHER_NETWORK}}
IN_OTHER_POOL = {"ipAddress": "10.40.12.77", "pool": OTHER_NETWORK}
IN_OTHER_SUBNET = {"ipAddress": "10.40.12.77", "subnet": {"id": f"{OTHER_NETWORK}/subnets/s"}}
NIC_OF_OTHERS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/networkInterfaces/n"
UNLISTED = {"networkInterfaceIPConfiguration": {"id": f"{NIC_OF_OTHERS}/ipConfigurations/i"}}
BALANCER_OF_OTHERS = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/loadBalancers/b"
ANOTHER_BALANCER = {"loadBalancerFrontendIPConfiguration": {"id": f"{BALANCER_OF_OTHERS}/frontendIPConfigurations/f"}}

# (type, group, decision, source): private endpoints to resources of ours
BEHIND_AN_ENDPOINT = (
    ("Microsoft.SignalRService/SignalR", "signalr", "Fail", "Use private endpoints for Azure SignalR Service"),
    ("Microsoft.SignalRService/WebPubSub", "webpubsub", "Fail", "Use private endpoints for Azure Web PubSub"),
    ("Microsoft.Devices/IotHubs", "iotHub", "Fail", "IoT Hub support for virtual networks"),
    ("Microsoft.Devices/ProvisioningServices", "iotDps", "Fail", "DPS support for virtual networks"),
    ("Microsoft.Cache/Redis", "redisCache", "Fail", "Azure Cache for Redis with Private Link"),
    ("Microsoft.Cache/redisEnterprise", "redisEnterprise", "Fail", "Azure Managed Redis with Private Link"),
    ("Microsoft.MachineLearningServices/workspaces", "amlworkspace", "Fail", "Private endpoint for a workspace"),
    ("Microsoft.MachineLearningServices/registries", "amlregistry", "Fail", "Network isolation with registries"),
    ("Microsoft.EventGrid/topics", "topic", "Fail", "Event delivery to webhooks and other handlers"),
    ("Microsoft.EventGrid/domains", "domain", "Fail", "Event delivery to webhooks and other handlers"),
    ("Microsoft.EventGrid/namespaces", "topicspace", "Fail", "Event Grid namespaces: push delivery"),
    ("Microsoft.ServiceBus/namespaces", "namespace", "Fail", "Access Service Bus namespaces by private endpoints"),
    ("Microsoft.EventHub/namespaces", "namespace", "Fail", "Access Event Hubs namespaces by private endpoints"),
    ("Microsoft.Relay/namespaces", "namespace", "Fail", "Azure Relay Hybrid Connections"),
    ("Microsoft.Web/sites", "sites", "Fail", "Private endpoints for App Service apps, functions and workflows"),
    ("Microsoft.Web/staticSites", "staticSites", "Fail", "Private endpoint in Static Web Apps"),
    ("Microsoft.App/managedEnvironments", "managedEnvironments", "Fail", "Private endpoints for Container Apps"),
    ("Microsoft.ApiManagement/service", "Gateway", "Fail", "Connect privately to API Management"),
    ("Microsoft.Network/applicationGateways", "private", "Fail", "Application Gateway Private Link"),
    ("Microsoft.Network/privateLinkServices", "", "Fail", "What is Azure Private Link service"),
    ("Microsoft.DataFactory/factories", "dataFactory", "Fail", "Private Link for Data Factory: copy activity"),
    ("Microsoft.Synapse/workspaces", "Sql", "Fail", "Connect to a Synapse workspace with private links"),
    ("Microsoft.Databricks/workspaces", "databricks_ui_api", "Fail", "Private Link for Databricks: front end"),
    ("Microsoft.Purview/accounts", "account", "Fail", "Private endpoints in Microsoft Purview"),
    ("Microsoft.Search/searchServices", "searchService", "Fail", "Search: indexers and custom web skills"),
    ("Microsoft.CognitiveServices/accounts", "account", "Fail", "AI services: tools of agents, images by URL"),
    ("Microsoft.Logic/workflows", "workflow", "Unknown", "Private-link resource: no such target is listed"),
    ("Microsoft.Cdn/profiles", "profile", "Unknown", "Private-link resource: no such target is listed"),
    ("Microsoft.KeyVault/vaults", "vault", "Pass", "Integrate Key Vault with Private Link"),
)

IN_A_SUBNET = (
    Case("container groups", "Fail", PIVOT, service(ACI), "Container groups in a virtual network"),
    Case("subnet kept for container groups", "Unknown", PIVOT, service(ACI, in_use=False), SERVICES),
    Case("virtual nodes", "Fail", "aks-virtual-nodes", virtual_nodes, "Virtual nodes in AKS"),
    Case("containers in the node subnet", "Fail", PIVOT, node_subnet_delegated_to_containers, SERVICES),
    Case("containers out of reach", "Pass", "", containers_that_nodes_may_not_reach, GROUPS),
    Case("containers that an admin rule opens", "Fail", PIVOT, containers_that_an_admin_rule_opens, ADMIN_RULES),
    Case("app service environment", "Fail", PIVOT, service("Microsoft.Web/hostingEnvironments"), SERVICES),
    Case("container apps", "Fail", PIVOT, service("Microsoft.App/environments"), "Networking in Container Apps"),
    Case("notebooks", "Fail", PIVOT, service("Microsoft.Databricks/workspaces"), "Databricks: VNet injection"),
    Case("managed instance", "Fail", PIVOT, service("Microsoft.Sql/managedInstances"), SERVICES),
    Case("another cluster's pods", "Fail", PIVOT, service(OTHERS), "API Server VNet Integration"),
    Case("another API server", "Fail", PIVOT, api_server_of_another_cluster, "API Server VNet Integration: one subnet"),
    Case("service that is not known", "Unknown", PIVOT, service("Contoso.Unknown/things"), SERVICES),
    Case("integration of an app", "Pass", "", service("Microsoft.Web/serverFarms"), "App Service: outbound calls only"),
    Case("volumes", "Pass", "", service("Microsoft.Netapp/volumes"), "Delegate a subnet to Azure NetApp Files"),
    Case("DNS resolver", "Pass", "", service("Microsoft.Network/dnsResolvers"), "What is Azure DNS Private Resolver"),
    Case("internal API Management", "Fail", PIVOT, linked("Microsoft.ApiManagement/service"), SERVICES),
    Case("premium cache", "Fail", PIVOT, linked("Microsoft.Cache/redis"), "Redis Premium: VNet support"),
    Case("compute instance", "Unknown", "vm-pivot", inhabited(INTERFACE), "Secure a training environment"),
    Case("compute cluster", "Unknown", PIVOT, inhabited(COMPUTE), "Secure a training environment"),
    Case("balancer of a service", "Unknown", PIVOT, inhabited(BALANCER, IN_THE_BALANCER), SERVICES),
    Case("gateway of others", "Unknown", PIVOT, inhabited(GATEWAY, IN_THE_GATEWAY), SERVICES),
    Case("gateway before the model", "Pass", "", backends({"ipAddress": "10.40.12.10"}), "Private Application Gateway"),
    Case(
        "gateway to the internet",
        "Fail",
        PIVOT,
        backends({"ipAddress": "20.91.66.7"}),
        "Application gateway components",
    ),
    Case("gateway to a name", "Unknown", PIVOT, backends({"fqdn": "a.example"}), "Application gateway components"),
    Case("balancer before another network", "Fail", PIVOT, balancer_before(OTHER_ADDRESS), BACKENDS),
    Case("balancer before a pool of another network", "Fail", PIVOT, balancer_before(IN_OTHER_POOL), BACKENDS),
    Case("balancer before a subnet elsewhere", "Fail", PIVOT, balancer_before(IN_OTHER_SUBNET), BACKENDS),
    Case("balancer before a public address", "Fail", PIVOT, balancer_before({"ipAddress": "20.91.66.7"}), BACKENDS),
    Case("balancer before an interface of others", "Unknown", PIVOT, balancer_before(UNLISTED), BACKENDS),
    Case("balancer before a balancer", "Unknown", PIVOT, balancer_before(ANOTHER_BALANCER), REGIONS),
    Case("balancer before nothing named", "Unknown", PIVOT, balancer_before({"name": "b"}), BACKENDS),
    Case(
        "balancer before a machine in the network", "Pass", "", balancer_before({"ipAddress": "10.40.12.77"}), BACKENDS
    ),
    Case("balancer before an interface elsewhere", "Fail", PIVOT, balancer_before_an_interface_elsewhere, BACKENDS),
    Case("managed network", "Fail", "pe-stranger", link_of_a_service(), "Workspace managed network isolation"),
    Case("origin of Front Door", "Fail", "pls-exposed", offered_to_front_door, "Private Link in Front Door Premium"),
)

BALANCING = "lb-public-frontend"
IN_FRONT_OF_NODES = (
    Case("global before a public balancer", "Fail", BALANCING, global_balancer_before_a_public_one, REGIONS),
    Case("global before the internal balancer", "Fail", BALANCING, global_balancer_before_the_internal_one, REGIONS),
    Case("inbound translation alone", "Fail", BALANCING, inbound_translation_alone, "Inbound NAT rules"),
    Case("no group on the subnet", "Fail", "nsg-internet-deny", without_group, GROUPS, "overlay"),
    Case("group on interfaces alone", "Pass", "", group_on_interfaces_alone, GROUPS, "overlay"),
    Case("interface without a group", "Fail", "nsg-missing", group_on_all_interfaces_but_one, GROUPS, "overlay"),
    Case("private API server in a perimeter", "Pass", "", perimeter("cluster"), "Create a private AKS cluster"),
    Case("API server in a perimeter", "Fail", "aks-private-api", public_api_server_in_a_perimeter, "Private AKS"),
    Case("storage in a perimeter", "Unknown", "storage-public", perimeter("storage"), "Network security perimeter"),
    Case("registry in a perimeter", "Fail", "acr-public", perimeter("registry"), "Network security perimeter"),
)

WAN, TUNNEL, TRANSIT = "vwan-connection", "gateway-forced-tunnel", "VPN gateway transit for peering"
BEYOND_THE_NETWORK = (
    Case("hub with routing intent", "Fail", WAN, hub_connection(internet=True), "Virtual WAN: routing intent"),
    Case("hub without routing intent", "Fail", WAN, hub_connection(internet=False), "About Virtual WAN"),
    Case("hub that is not readable", "Fail", WAN, hub_that_is_not_readable, "About Virtual WAN"),
    Case("hub of a peer", "Pass", "", hub_connection(internet=True, home="hub"), "Peering is not transitive", "peered"),
    Case("default route from a site", "Fail", TUNNEL, tunnel("0.0.0.0/0"), "About forced tunneling"),
    Case("default route, propagated", "Fail", "route-bgp-propagation", tunnel("0.0.0.0/0", propagates=True), "UDR"),
    Case("public prefixes from a site", "Fail", TUNNEL, tunnel("52.96.0.0/14"), "ExpressRoute: route advertisement"),
    Case("circuit", "Fail", "gateway-connections", tunnel(gatewayType="ExpressRoute"), "ExpressRoute gateways"),
    Case("gateway without a connection", "Pass", "", tunnel(connected=False), "About VPN gateway"),
    Case("gateway of a peer", "Fail", "peering-remote-gateway", gateway_of_the_hub(used=True), TRANSIT, "peered"),
    Case("unused gateway of a peer", "Pass", "", gateway_of_the_hub(used=False), TRANSIT, "peered"),
    Case("route server", "Fail", "route-bgp-propagation", route_server(propagates=True), "What is Route Server"),
    Case("route server, propagation off", "Pass", "", route_server(propagates=False), "Route Server FAQ"),
    Case("connected group", "Fail", "avnm-connectivity", connected_group, "Connectivity configurations"),
    Case("always allow, internet", "Fail", ADMIN, admin_rule("AlwaysAllow", "Internet", "ServiceTag"), ADMIN_RULES),
    Case("always allow, group", "Unknown", ADMIN, admin_rule("AlwaysAllow", GROUP, "NetworkGroup"), ADMIN_RULES),
    Case("always allow, private", "Pass", "", admin_rule("AlwaysAllow", "10.0.0.0/8"), ADMIN_RULES),
    Case("deny, internet", "Pass", "", admin_rule("Deny", "Internet", "ServiceTag"), ADMIN_RULES),
    Case("machine shut out by us", "Pass", "", hub_machine("Outbound"), GROUPS, "peered"),
    Case("machine shut out there", "Pass", "", hub_machine("Inbound"), GROUPS, "peered"),
    Case("machine opened by us", "Fail", "vm-pivot", hub_machine("Outbound", TO_THE_HUB), ADMIN_RULES, "peered"),
    Case("machine opened there", "Fail", "vm-pivot", hub_machine("Inbound", INTO_THE_HUB), ADMIN_RULES, "peered"),
    Case("others opened by us", "Pass", "", hub_machine("Outbound", TO_OTHERS), ADMIN_RULES, "peered"),
)

PUBLIC, NETWORK_OVERVIEW = "nic-public-ip", "Virtual machines: virtual networks and network interfaces"
INSTANCES = (
    Case("fewer instances than the capacity", "Unknown", PUBLIC, capacity(5), SCALE_SETS),
    Case("more instances than the capacity", "Unknown", PUBLIC, capacity(1), SCALE_SETS),
    Case("no capacity", "Unknown", PUBLIC, without_capacity, SCALE_SETS),
    Case("pool of more nodes than the capacity", "Unknown", PUBLIC, pool_that_counts(5), AGENT_POOLS),
    Case("the same without tags", "Unknown", PUBLIC, pool_that_counts(5, tagged=False), AGENT_POOLS),
    Case("pool of fewer nodes than the capacity", "Pass", "", pool_that_counts(1), "AKS: scaleDownMode Deallocate"),
    Case("stopped pool", "Pass", "", pool_that_counts(5, "Stopped"), "Start and stop a node pool"),
    Case("pool in another state", "Unknown", PUBLIC, pool_that_counts(5, "Deallocated"), AGENT_POOLS),
    Case("instance without an interface", "Unknown", PUBLIC, instance_without_interface, "Networking for scale sets"),
    Case("instance that no list shows", "Unknown", PUBLIC, instance_that_no_list_shows, SCALE_SETS),
    Case("older model", "Pass", "", instance_of_an_older_model(), "Scale sets: latestModelApplied"),
    Case("older model, public", "Fail", PUBLIC, instance_of_an_older_model(publicIPAddress=ADDRESS), SCALE_SETS),
    Case(
        "older model, open", "Fail", "subnet-default-outbound", older_model_in_an_open_subnet, "Default outbound access"
    ),
    Case("machines that no list shows", "Unknown", PUBLIC, pool_of_machines, "Virtual Machines node pools in AKS"),
    Case("machines counted by size", "Unknown", PUBLIC, pool_of_machines_by_size(3), MACHINE_POOLS),
    Case("as many machines as counted by size", "Pass", "", pool_of_machines_by_size(1), MACHINE_POOLS),
    Case("machines that are not counted", "Unknown", PUBLIC, pool_of_machines_by_size(None), MACHINE_POOLS),
    Case("second interface", "Fail", "subnet-nat-gateway", second_interface(), NETWORK_OVERVIEW),
    Case(
        "second interface in the node group",
        "Fail",
        "subnet-nat-gateway",
        second_interface(in_the_node_group=True),
        NETWORK_OVERVIEW,
    ),
    Case("interface of a machine of others", "Pass", "", second_interface(of_others=True), NETWORK_OVERVIEW),
    Case("scale set of others, not listed", "Unknown", "vm-pivot", scale_set_of_others, SCALE_SETS),
)

ESTATES = (
    *(
        Case(kind, decision, "" if decision == "Pass" else "pe-relay-target", endpoint(kind, group), source)
        for kind, group, decision, source in BEHIND_AN_ENDPOINT
    ),
    *IN_A_SUBNET,
    *IN_FRONT_OF_NODES,
    *BEYOND_THE_NETWORK,
    *INSTANCES,
)


@pytest.mark.parametrize("tried", ESTATES, ids=lambda one: one.name)
def test_the_decision_is_what_the_documents_of_azure_lead_to(tried: Case) -> None:
    must_be_decided_as_documented(tried)


def test_a_pool_that_is_short_of_machines_is_one_cause_that_names_the_scale_set() -> None:
    estate = estate_of("sealed")
    capacity(5)(estate)
    (cause,) = (
        one for one in causes_of(base("sealed").findings(refer_back(estate)), PAGES) if one.worst.severity.decides
    )
    assert "every machine of the scale set aks-gpu-" in cause.title
    assert cause.unread is not None
    assert "capacity 5" in cause.unread.message


def test_no_estate_is_tried_twice_and_each_names_its_source() -> None:
    must_be_distinct_and_sourced(ESTATES)

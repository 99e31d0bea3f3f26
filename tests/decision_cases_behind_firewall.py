"""Estates whose declared firewall has a rule that leads beyond the hub: a second spoke, an on-premises site."""

from __future__ import annotations

from testbed.azure.baseline.layout import HUB_GROUP, LOCATION, NETWORK
from testbed.azure.baseline.network import SPACE, Body, add_machine, add_rules, peering, rule
from testbed.azure.estate import Estate
from testbed.azure.plants.declared_firewall import PROXY, SPOKE, SPOKE_SUBNET, allow_in_declared_firewall
from testbed.azure.plants.pieces import STANDARD, first_configuration, public_address
from tests.decision_cases import Change

SPOKE_SPACE, SITE = "10.79.0.0/16", "192.168.10.10"
NIC = f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-forward-proxy"
SPOKE_BALANCER, FRONTEND = f"{HUB_GROUP}/{NETWORK}/loadBalancers/lb-spoke", "10.79.4.100"
THIRD = f"{HUB_GROUP}/{NETWORK}/virtualNetworks/vnet-third"
TO_SPOKE = "virtualNetworkPeerings/to-shared"


def allowed_to(*destinations: str, sources: tuple[str, ...] = (SPACE,)) -> Change:
    """A network rule of the declared firewall for these destinations."""
    return lambda estate: allow_in_declared_firewall(
        estate,
        {
            "ruleType": "NetworkRule",
            "name": "proxy",
            "sourceAddresses": list(sources),
            "destinationAddresses": list(destinations),
            "destinationPorts": ["3128"],
            "ipProtocols": ["TCP"],
        },
    )


def second_spoke(*around: Change, destinations: tuple[str, ...] = (PROXY,)) -> Change:
    """A sealed machine in a network that is peered with the hub; a rule of the firewall leads to it."""

    def change(estate: Estate) -> None:
        guard = f"{HUB_GROUP}/{NETWORK}/networkSecurityGroups/nsg-spoke"
        add_rules(estate, guard, [rule("DenyOut", 4000, "Deny", "Internet")])
        estate.add(SPOKE, {"addressSpace": {"addressPrefixes": [SPOKE_SPACE]}}, location=LOCATION)
        sealed = {"defaultOutboundAccess": False, "networkSecurityGroup": {"id": guard}}
        estate.add(SPOKE_SUBNET, {"addressPrefix": "10.79.4.0/24", **sealed})
        estate.add(f"{estate.site.hub}/{TO_SPOKE}", peering(SPOKE, SPOKE_SPACE))
        estate.add(f"{SPOKE}/virtualNetworkPeerings/to-hub", peering(estate.site.hub, "10.10.0.0/22"))
        add_machine(estate, "vm-forward-proxy", NIC, SPOKE_SUBNET, PROXY)
        allowed_to(*destinations)(estate)
        for change in around:
            change(estate)

    return change


def public(estate: Estate) -> None:
    """The machine of the spoke has a public address."""
    address = public_address(estate, f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-forward-proxy")
    first_configuration(estate, NIC)["publicIPAddress"] = {"id": address}


def spoke_peering(side: str, **fields: object) -> Change:
    """One side of the peering of hub and spoke has these fields."""

    def change(estate: Estate) -> None:
        ids = {"hub": f"{estate.site.hub}/{TO_SPOKE}", "spoke": f"{SPOKE}/virtualNetworkPeerings/to-hub"}
        estate.properties(ids[side]).update(fields)

    return change


def balancer_of_the_spoke(member: Body, *, is_public: bool, outbound: bool = True, group: str = HUB_GROUP) -> Change:
    """A load balancer of the spoke with one member; a public one has an outbound rule unless told otherwise."""

    def change(estate: Estate) -> None:
        balancer = SPOKE_BALANCER.replace(HUB_GROUP, group)
        frontend = f"{balancer}/frontendIPConfigurations/f"
        configuration: Body = {"subnet": {"id": SPOKE_SUBNET}, "privateIPAddress": FRONTEND}
        if is_public:
            address = f"{group}/{NETWORK}/publicIPAddresses/pip-lb-spoke"
            configuration = {"publicIPAddress": {"id": public_address(estate, address, "20.91.201.58")}}
        pool = {"id": f"{balancer}/backendAddressPools/p", "name": "p"}
        backend = {"name": "m", "properties": member}
        translation = {"frontendIPConfigurations": [{"id": frontend}], "backendAddressPool": {"id": pool["id"]}}
        rules = [{"name": "out", "properties": {**translation, "protocol": "All"}}]
        properties = {
            "frontendIPConfigurations": [{"id": frontend, "name": "f", "properties": configuration}],
            "backendAddressPools": [{**pool, "properties": {"loadBalancerBackendAddresses": [backend]}}],
            "loadBalancingRules": [],
            "inboundNatRules": [],
            "outboundRules": rules if is_public and outbound else [],
            "probes": [],
        }
        estate.add(balancer, properties, location=LOCATION, sku=STANDARD)

    return change


def member_at(address: str, network: str = SPOKE) -> Body:
    """A backend by its address in a network."""
    return {"ipAddress": address, "virtualNetwork": {"id": network}}


INNER_NIC, INNER = f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-inner", "10.79.6.4"
INNER_MEMBER = {"networkInterfaceIPConfiguration": {"id": f"{INNER_NIC}/ipConfigurations/ipconfig1"}}
GATEWAY = "10.79.7.10"


def machine_in_another_subnet(*, is_public: bool) -> Change:
    """A machine of the spoke in a subnet that no rule of the firewall names."""

    def change(estate: Estate) -> None:
        guard = {"id": f"{HUB_GROUP}/{NETWORK}/networkSecurityGroups/nsg-spoke"}
        sealed = {"defaultOutboundAccess": False, "networkSecurityGroup": guard}
        home = estate.add(f"{SPOKE}/subnets/snet-inner", {"addressPrefix": "10.79.6.0/24", **sealed})
        add_machine(estate, "vm-inner", INNER_NIC, home, INNER)
        if is_public:
            address = public_address(estate, f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-inner", "20.91.201.60")
            first_configuration(estate, INNER_NIC)["publicIPAddress"] = {"id": address}

    return change


def gateway_of_the_spoke(*addresses: str) -> Change:
    """An application gateway before these addresses; without any, before the interface of the machine."""

    def change(estate: Estate) -> None:
        gateway = f"{HUB_GROUP}/{NETWORK}/applicationGateways/agw-spoke"
        home = estate.add(f"{SPOKE}/subnets/snet-agw", {"addressPrefix": "10.79.7.0/24"})
        frontend = {"subnet": {"id": home}, "privateIPAddress": GATEWAY}
        pool = f"{gateway}/backendAddressPools/b"
        backends = {"backendAddresses": [{"ipAddress": address} for address in addresses]}
        properties = {
            "gatewayIPConfigurations": [{"name": "g", "properties": {"subnet": {"id": home}}}],
            "frontendIPConfigurations": [{"name": "f", "properties": frontend}],
            "backendAddressPools": [{"id": pool, "name": "b", "properties": backends}],
        }
        estate.add(gateway, properties, location=LOCATION)
        if not addresses:
            first_configuration(estate, INNER_NIC)["applicationGatewayBackendAddressPools"] = [{"id": pool}]

    return change


def balancers_denied(estate: Estate) -> None:
    estate.deny(HUB_GROUP, "Microsoft.Network/loadBalancers/read")


def gateways_denied(estate: Estate) -> None:
    estate.deny(HUB_GROUP, "Microsoft.Network/applicationGateways/read")


def spoke_denied(estate: Estate) -> None:
    """No answer shows the network behind the peering."""
    estate.remove(SPOKE_SUBNET)
    estate.remove(SPOKE)


def third_network(*, peered_with: str) -> Change:
    """One more network with a public machine at 10.81.4.4, peered with the hub or with the spoke alone."""

    def change(estate: Estate) -> None:
        near, space = {"hub": (estate.site.hub, "10.10.0.0/22"), "spoke": (SPOKE, SPOKE_SPACE)}[peered_with]
        estate.add(THIRD, {"addressSpace": {"addressPrefixes": ["10.81.0.0/16"]}}, location=LOCATION)
        home = estate.add(f"{THIRD}/subnets/snet", {"addressPrefix": "10.81.4.0/24", "defaultOutboundAccess": False})
        estate.add(f"{near}/virtualNetworkPeerings/to-third", peering(THIRD, "10.81.0.0/16"))
        estate.add(f"{THIRD}/virtualNetworkPeerings/back", peering(near, space))
        nic = f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-third"
        add_machine(estate, "vm-third", nic, home, "10.81.4.4")
        address = public_address(estate, f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-third", "20.91.201.59")
        first_configuration(estate, nic)["publicIPAddress"] = {"id": address}

    return change


def gateway_of_the_hub(kind: str, *learned: str, used: bool = False, propagates: bool = False) -> Change:
    """A gateway in the hub that has learned these prefixes; `used`: by the cluster's network, which may take them."""

    def change(estate: Estate) -> None:
        home = estate.add(f"{estate.site.hub}/subnets/GatewaySubnet", {"addressPrefix": "10.10.2.0/27"})
        identifier = f"{HUB_GROUP}/{NETWORK}/virtualNetworkGateways/gw-hub"
        gateway_fields = {"ipConfigurations": [{"name": "default", "properties": {"subnet": {"id": home}}}]}
        estate.add(identifier, {"gatewayType": kind, **gateway_fields}, location=LOCATION)
        routes = [{"network": prefix, "origin": "EBgp"} for prefix in learned]
        estate.answer(identifier, "getLearnedRoutes", {"value": routes})
        estate.properties(estate.site.peering)["useRemoteGateways"] = used
        back = f"{estate.site.hub}/virtualNetworkPeerings/to-inference"
        estate.properties(back)["allowGatewayTransit"] = used
        estate.properties(estate.site.route_table)["disableBgpRoutePropagation"] = not propagates

    return change


def gateway_in_another_network(estate: Estate) -> None:
    """The hub uses the gateway of a network beside it: a chain of two peerings with gateway transit."""
    transit = f"{HUB_GROUP}/{NETWORK}/virtualNetworks/vnet-transit"
    estate.add(transit, {"addressSpace": {"addressPrefixes": ["10.90.0.0/16"]}}, location=LOCATION)
    home = estate.add(f"{transit}/subnets/GatewaySubnet", {"addressPrefix": "10.90.0.0/27"})
    identifier = f"{HUB_GROUP}/{NETWORK}/virtualNetworkGateways/gw-transit"
    gateway_fields = {"ipConfigurations": [{"name": "default", "properties": {"subnet": {"id": home}}}]}
    estate.add(identifier, {"gatewayType": "ExpressRoute", **gateway_fields}, location=LOCATION)
    estate.answer(identifier, "getLearnedRoutes", {"value": [{"network": "0.0.0.0/0", "origin": "EBgp"}]})
    here = {**peering(transit, "10.90.0.0/16"), "useRemoteGateways": True, "allowForwardedTraffic": True}
    estate.add(f"{estate.site.hub}/virtualNetworkPeerings/to-transit", here)
    back = {**peering(estate.site.hub, "10.10.0.0/22"), "allowGatewayTransit": True}
    estate.add(f"{transit}/virtualNetworkPeerings/to-hub", back)


def learned_routes_denied(estate: Estate) -> None:
    estate.deny(HUB_GROUP, "*/getLearnedRoutes/action")


def accepted_site(estate: Estate) -> None:
    """The policy file accepts the prefix of the site."""
    estate.policy["allowedPrivateDestinations"] = [{"prefix": "192.168.10.0/24", "reason": "printers, no proxy"}]


def routed_past_the_firewall(prefix: str, hop: str = "VirtualAppliance", address: str = PROXY) -> Change:
    """A route of the nodes that leads elsewhere than to the declared firewall."""

    def change(estate: Estate) -> None:
        route_fields: Body = {"addressPrefix": prefix, "nextHopType": hop}
        if hop == "VirtualAppliance":
            route_fields["nextHopIpAddress"] = address
        estate.properties(estate.site.route_table)["routes"].append({"name": "more", "properties": route_fields})

    return change

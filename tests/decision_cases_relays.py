"""Estates with a machine beside the nodes that is entered or left by what holds it by its address."""

from __future__ import annotations

from typing import Any

from testbed.azure.baseline.layout import COMPUTE, HUB_GROUP, LOCATION, NETWORK, NETWORK_GROUP
from testbed.azure.baseline.network import peering, rule
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import STANDARD, change_rules, delegated, first_configuration, public_address
from tests.decision_cases import SERVICE, Change, backends
from tests.decision_cases_transit import HUB_RULES

NIC = f"{HUB_GROUP}/{NETWORK}/networkInterfaces/nic-relay"
ADDRESS = "10.10.1.20"
BESIDE, ACROSS = f"{HUB_GROUP}/{NETWORK}/loadBalancers/lb-out", f"{NETWORK_GROUP}/{NETWORK}/loadBalancers/lb-out"
BY_INTERFACE = {"networkInterfaceIPConfiguration": {"id": f"{NIC}/ipConfigurations/ipconfig1"}}


def frontend(estate: Estate, balancer: str, *, public: bool) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "subnet": {"id": f"{estate.site.hub}/subnets/snet-shared"},
        "privateIPAddress": "10.10.1.9",
    }
    if public:
        address = f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-of-{balancer.rpartition('/')[2]}"
        configuration = {"publicIPAddress": {"id": public_address(estate, address, "20.91.201.55")}}
    return {"id": f"{balancer}/frontendIPConfigurations/f", "name": "f", "properties": configuration}


def balancer(estate: Estate, identifier: str, pool: dict[str, Any], *, public: bool = True, **lists: Any) -> None:
    """A balancer with one frontend and one pool; an outbound rule, where `lists` has no rules of its own."""
    pools = [{"id": f"{identifier}/backendAddressPools/p", "name": "p", "properties": pool}]
    source = {"id": f"{identifier}/frontendIPConfigurations/f"}
    out = {"frontendIPConfigurations": [source], "backendAddressPool": {"id": pools[0]["id"]}, "protocol": "All"}
    properties = {
        "frontendIPConfigurations": [frontend(estate, identifier, public=public)],
        "backendAddressPools": pools,
        "loadBalancingRules": [],
        "inboundNatRules": [],
        "outboundRules": [] if lists else [{"name": "out", "properties": out}],
        "probes": [],
    }
    estate.add(identifier, {**properties, **lists}, location=LOCATION, sku=STANDARD)


def by_address(
    address: str = ADDRESS, *, at: str = BESIDE, named_by: str = "member", home: str = "hub", public: bool = True
) -> Change:
    """A balancer that holds the address in a network, which the member names, or its subnet, or its pool."""

    def change(estate: Estate) -> None:
        network = getattr(estate.site, home, home)
        member_fields = {
            "member": {"virtualNetwork": {"id": network}},
            "subnet": {"subnet": {"id": f"{network}/subnets/snet-shared"}},
        }
        member = {"name": "a", "properties": {"ipAddress": address, **member_fields.get(named_by, {})}}
        pool = {"syncMode": "Manual", "loadBalancerBackendAddresses": [member]}
        if named_by == "pool":
            pool["virtualNetwork"] = {"id": network}
        balancer(estate, at, pool, public=public)

    return change


def by_rule(*, translates: bool) -> Change:
    """The same with a balancing rule and no outbound rule."""

    def change(estate: Estate) -> None:
        by_address()(estate)
        properties = estate.properties(BESIDE)
        properties["outboundRules"] = []
        rule = {
            "frontendIPConfiguration": {"id": f"{BESIDE}/frontendIPConfigurations/f"},
            "backendAddressPool": {"id": f"{BESIDE}/backendAddressPools/p"},
            "disableOutboundSnat": not translates,
        }
        properties["loadBalancingRules"] = [{"name": "web", "properties": rule}]

    return change


def by_interface(estate: Estate) -> None:
    """The pool names the interface of the machine, which names no pool."""
    balancer(estate, BESIDE, {"loadBalancerBackendAddresses": [{"name": "a", "properties": BY_INTERFACE}]})


def inbound_translation(*, public: bool) -> Change:
    """The interface of the machine names an inbound NAT rule."""

    def change(estate: Estate) -> None:
        balancer(estate, BESIDE, {}, public=public, outboundRules=[])
        first_configuration(estate, NIC)["loadBalancerInboundNatRules"] = [{"id": f"{BESIDE}/inboundNatRules/ssh"}]

    return change


def without_list(name: str) -> Change:
    def change(estate: Estate) -> None:
        by_address()(estate)
        estate.properties(BESIDE)["outboundRules"] = []
        del estate.properties(BESIDE)[name]

    return change


def scale_set_in_the_hub(estate: Estate) -> None:
    """A scale set of others without instances now; those to come have any address of its subnet."""
    home = {"subnet": {"id": f"{estate.site.hub}/subnets/snet-shared"}}
    interface = {"name": "n", "properties": {"ipConfigurations": [{"name": "ip", "properties": home}]}}
    model = {"networkProfile": {"networkInterfaceConfigurations": [interface]}}
    identifier = f"{HUB_GROUP}/{COMPUTE}/virtualMachineScaleSets/vmss-others"
    properties = {"orchestrationMode": "Uniform", "virtualMachineProfile": model}
    estate.add(identifier, properties, location=LOCATION, sku={"name": "Standard_D2s_v5", "capacity": 0})


def public(estate: Estate) -> None:
    """The machine has a public address."""
    address = public_address(estate, f"{HUB_GROUP}/{NETWORK}/publicIPAddresses/pip-relay", "20.91.201.57")
    first_configuration(estate, NIC)["publicIPAddress"] = {"id": address}


def denied(direction: str, word: str = "VirtualNetwork", *, by: str = "far") -> Change:
    """A group denies everything from the nodes to the hub: theirs, or the hub's, by one end, near or far."""

    def change(estate: Estate) -> None:
        ends = ("destinationAddressPrefix", "sourceAddressPrefix")
        far, near = ends if direction == "Outbound" else ends[::-1]
        deny = rule("DenyPeers", 90, "Deny", "*", direction=direction, **{far if by == "far" else near: word})
        change_rules(estate, estate.site.node_rules if direction == "Outbound" else HUB_RULES, plus=deny)
        nodes = rule("AllowNodes", 100, "Allow", "*", direction="Inbound", sourceAddressPrefix="10.40.0.0/16")
        change_rules(estate, HUB_RULES, plus=nodes)

    return change


def peering_says(side: str, **fields: Any) -> Change:
    """One side of the peering, of the nodes ("ours") or of the hub."""

    def change(estate: Estate) -> None:
        far = f"{estate.site.hub}/virtualNetworkPeerings/to-inference"
        estate.properties(estate.site.peering if side == "ours" else far).update(fields)

    return change


def distant_network(*, route_server: bool, used: bool = True) -> Change:
    """A network that the hub is peered with, and whose gateways or route server it uses."""

    def change(estate: Estate) -> None:
        far = f"{HUB_GROUP}/{NETWORK}/virtualNetworks/vnet-routes"
        estate.add(far, {"addressSpace": {"addressPrefixes": ["10.90.0.0/16"]}, "subnets": []}, location=LOCATION)
        estate.add(
            f"{far}/subnets/{'RouteServerSubnet' if route_server else 'snet'}", {"addressPrefix": "10.90.0.0/26"}
        )
        here = {**peering(far, "10.90.0.0/16"), "useRemoteGateways": used}
        estate.add(f"{estate.site.hub}/virtualNetworkPeerings/to-routes", here)
        back = {**peering(estate.site.hub, "10.10.0.0/22"), "allowGatewayTransit": True}
        estate.add(f"{far}/virtualNetworkPeerings/to-hub", back)

    return change


def admin_rules_denied(estate: Estate) -> None:
    estate.deny(HUB_GROUP, "*/listNetworkManagerEffectiveSecurityAdminRules/action")


GATEWAY, BEFORE = f"{HUB_GROUP}/{NETWORK}/applicationGateways/agw", "10.10.1.9"
GATEWAY_PREFIX = "10.10.2.0/24"


def application_gateway(*addresses: str, home: str = "hub", by_interface: bool = False) -> Change:
    """An application gateway in a subnet of its own, before these addresses, or before the interface."""

    def change(estate: Estate) -> None:
        network = getattr(estate.site, home, home)
        if network == home:
            estate.add(network, {"addressSpace": {"addressPrefixes": ["10.77.0.0/16"]}, "subnets": []})
        subnet = estate.add(f"{network}/subnets/snet-agw", {"addressPrefix": GATEWAY_PREFIX})
        frontend = {"subnet": {"id": subnet}, "privateIPAddress": "10.10.2.10"}
        pool = f"{GATEWAY}/backendAddressPools/b"
        backends = {"backendAddresses": [{"ipAddress": address} for address in addresses]}
        properties = {
            "gatewayIPConfigurations": [{"name": "g", "properties": {"subnet": {"id": subnet}}}],
            "frontendIPConfigurations": [{"name": "f", "properties": frontend}],
            "backendAddressPools": [{"id": pool, "name": "b", "properties": backends}],
        }
        estate.add(GATEWAY, properties, location=LOCATION)
        if by_interface:
            first_configuration(estate, NIC)["applicationGatewayBackendAddressPools"] = [{"id": pool}]

    return change


def internal_balancer(address: str = ADDRESS) -> Change:
    """An internal balancer before an address of the hub."""
    return by_address(address, public=False)


def kind_denied(kind: str) -> Change:
    return lambda estate: estate.deny(HUB_GROUP, f"Microsoft.Network/{kind}/read")


def denied_containers(*around: Change) -> Change:
    """A subnet of containers beside the nodes, which the group of the nodes denies."""

    def change(estate: Estate) -> None:
        delegated(estate, "Microsoft.ContainerInstance/containerGroups", name="snet-containers", prefix="10.40.45.0/24")
        change_rules(estate, estate.site.node_rules, plus=rule("DenyContainers", 90, "Deny", "10.40.45.0/24"))
        for change in around:
            change(estate)

    return change


def gateway_without_group(address: str) -> Change:
    """A gateway beside the nodes before this address; in the tried estates its subnet has the group of the nodes."""

    def change(estate: Estate) -> None:
        backends({"ipAddress": address})(estate)
        estate.properties(f"{estate.site.vnet}/subnets/{SERVICE}")["networkSecurityGroup"] = None

    return change

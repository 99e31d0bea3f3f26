"""Changes that look like a path and are none: whatever fails because of one is a false alarm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from testbed.azure.baseline.cluster import IDENTITIES, NODE_RULES
from testbed.azure.baseline.layout import CONTROL_PLANE, DATA_GROUP, LOCATION, NETWORK, WORKLOAD
from testbed.azure.baseline.network import peering, rule
from testbed.azure.baseline.services import CONTRIBUTOR, assign
from testbed.azure.estate import Estate
from testbed.azure.plants.pieces import (
    STANDARD,
    change_rules,
    delegated,
    in_node_group,
    instance_nics,
    public_address,
    subnet,
)
from testbed.azure.plants.stores import ACR_PUSH
from testbed.azure.references import refer_back

GONE = "0e6b9c14-52fd-4a37-8d0b-c7f1a2e93b58"  # a subscription that no longer exists
BUILD_SERVICE = "6c08d2f5-b9e3-4714-a56d-13fc9e70ab28"
ELSEWHERE = f"/subscriptions/{WORKLOAD}/resourceGroups/rg-staging/providers"


@dataclass(frozen=True)
class Decoy:
    """change: what looks suspicious. fits: whether an estate has what it changes. settles: plants that it undoes."""

    name: str
    change: Callable[[Estate], None]
    fits: Callable[[Estate], bool]
    settles: frozenset[str]


DECOYS: dict[str, Decoy] = {}


def decoy(
    fits: Callable[[Estate], bool] = lambda _: True, settles: tuple[str, ...] = ()
) -> Callable[[Callable[[Estate], None]], Decoy]:
    def taken(change: Callable[[Estate], None]) -> Decoy:
        made = Decoy(getattr(change, "__name__", ""), change, fits, frozenset(settles))
        DECOYS[made.name] = made
        return made

    return taken


@decoy(lambda estate: bool(estate.site.api_subnet))
def api_server_subnet_without_the_private_setting(estate: Estate) -> None:
    """The API server's own subnet has no machines of ours: the setting does not apply there."""
    del estate.properties(estate.site.api_subnet)["defaultOutboundAccess"]


@decoy(lambda estate: bool(estate.site.api_subnet))
def api_server_subnet_without_a_security_group(estate: Estate) -> None:
    """As azure-aks-docs makes it (api-server-vnet-integration.md): delegated, and without a group."""
    estate.properties(estate.site.api_subnet)["networkSecurityGroup"] = None


@decoy()
def control_plane_that_is_contributor_above_the_registry(estate: Estate) -> None:
    """The control plane's identity is on no node: its role at the group of the registry is nothing that a pod has."""
    assign(estate, DATA_GROUP, CONTROL_PLANE, CONTRIBUTOR, "b7e215d4-63f8-4c0a-9d71-fa3506c82e19")


@decoy()
def build_service_that_may_push(estate: Estate) -> None:
    """An identity of the build service, which trusts an issuer outside and not the cluster's."""
    identity = estate.add(f"{IDENTITIES}/id-ci", {"principalId": BUILD_SERVICE, "clientId": BUILD_SERVICE[::-1]})
    credential = {"issuer": "https://token.actions.githubusercontent.com", "subject": "repo:contoso/images"}
    estate.add(f"{identity}/federatedIdentityCredentials/ci", credential)
    assign(estate, estate.site.registry, BUILD_SERVICE, ACR_PUSH, "50a9c3e7-f21d-48b6-8e07-d4135bf96c82")


@decoy()
def nodes_that_forward(estate: Estate) -> None:
    """Some network plugins let nodes forward."""
    for nic in instance_nics(estate):
        estate.properties(nic)["enableIPForwarding"] = True


@decoy()
def staging_network_with_every_egress_path(estate: Estate) -> None:
    """A network of another team, connected to nothing of ours."""
    vnet = f"{ELSEWHERE}/Microsoft.Network/virtualNetworks/vnet-staging"
    nat = f"{ELSEWHERE}/Microsoft.Network/natGateways/nat-staging"
    address = public_address(estate, f"{ELSEWHERE}/Microsoft.Network/publicIPAddresses/pip-staging", "20.91.66.6")
    held = {"addressPrefix": "10.66.0.0/24", "natGateway": {"id": nat}}
    subnet = {"name": "default", "id": f"{vnet}/subnets/default", "properties": held}
    estate.add(
        vnet,
        {"addressSpace": {"addressPrefixes": ["10.66.0.0/16"]}, "subnets": [subnet], "virtualNetworkPeerings": []},
        location=LOCATION,
    )
    properties = {"publicIpAddresses": [{"id": address}], "subnets": [{"id": subnet["id"]}]}
    estate.add(nat, properties, location=LOCATION, sku=STANDARD)


@decoy()
def public_stores_of_another_team(estate: Estate) -> None:
    """A registry and an account that nothing of ours uses."""
    registry = f"{ELSEWHERE}/Microsoft.ContainerRegistry/registries/acrstaging"
    estate.add(registry, {"publicNetworkAccess": "Enabled", "adminUserEnabled": True}, location=LOCATION)
    account = f"{ELSEWHERE}/Microsoft.Storage/storageAccounts/ststaging"
    estate.add(account, {"publicNetworkAccess": "Enabled", "allowBlobPublicAccess": True}, location=LOCATION)


@decoy()
def interface_of_a_private_link_service(estate: Estate) -> None:
    """AKS puts it into the node group; no machine sends from it, so its subnet is none of the nodes'."""
    home = subnet(estate, "snet-link", "10.40.44.0/28", defaultOutboundAccess=None)
    nic = in_node_group("networkInterfaces", "pls-serving.nic")
    service = in_node_group("privateLinkServices", "pls-serving")
    configuration = {"privateIPAddress": "10.40.44.4", "subnet": {"id": home}}
    properties = {"privateLinkService": {"id": service}, "enableIPForwarding": False}
    estate.add(
        nic, {**properties, "ipConfigurations": [{"name": "link", "properties": configuration}]}, location=LOCATION
    )
    refer_back(estate)


@decoy()
def outbound_integration_of_an_app(estate: Estate) -> None:
    """An app of another team calls into the network from a subnet; nothing listens there."""
    home = delegated(estate, "Microsoft.Web/serverFarms", name="snet-integration", prefix="10.40.47.0/28")
    estate.properties(home)["defaultOutboundAccess"] = None


@decoy()
def volumes_in_the_network(estate: Estate) -> None:
    """A subnet for volumes of NetApp Files, which keep what is written to them."""
    delegated(estate, "Microsoft.Netapp/volumes", name="snet-volumes", prefix="10.40.47.16/28")


@decoy()
def peering_with_a_network_that_is_gone(estate: Estate) -> None:
    """What is left of a peering when the other side was deleted, subscription and all."""
    remote = f"/subscriptions/{GONE}/resourceGroups/rg-old/{NETWORK}/virtualNetworks/vnet-old"
    properties = {**peering(remote, "10.78.0.0/16"), "peeringState": "Disconnected", "allowForwardedTraffic": True}
    estate.add(f"{estate.site.vnet}/virtualNetworkPeerings/to-old", properties)


@decoy()
def allow_to_a_private_prefix(estate: Estate) -> None:
    """An allow before the deny, to private space."""
    change_rules(estate, estate.site.node_rules, plus=rule("AllowSite", 130, "Allow", "10.50.0.0/16"))


@decoy()
def inbound_rule_that_mentions_the_internet(estate: Estate) -> None:
    """A deny, and inbound: no egress path."""
    denial = rule("DenyInternetIn", 120, "Deny", "*", direction="Inbound", sourceAddressPrefix="Internet")
    change_rules(estate, estate.site.node_rules, plus=denial)


@decoy(lambda estate: not estate.policy.get("firewall"))
def deny_of_everything_instead_of_the_internet(estate: Estate) -> None:
    """The deny names `*` instead of the tag."""
    change_rules(estate, estate.site.node_rules, without="DenyInternet", plus=rule("DenyInternet", 4000, "Deny", "*"))


@decoy()
def allow_to_the_virtual_network_after_the_deny(estate: Estate) -> None:
    """An allow to VirtualNetwork comes too late to matter."""
    change_rules(estate, estate.site.node_rules, plus=rule("AllowVnet", 4050, "Allow", "VirtualNetwork"))


@decoy()
def denial_in_the_group_of_aks(estate: Estate) -> None:
    """A second layer denies as well."""
    change_rules(estate, NODE_RULES, plus=rule("DenyStorage", 3000, "Deny", "Storage"))


@decoy()
def internal_rule_that_does_not_mention_translation(estate: Estate) -> None:
    """disableOutboundSnat matters on public frontends only."""
    for balancing in estate.properties(estate.site.balancer)["loadBalancingRules"]:
        del balancing["properties"]["disableOutboundSnat"]


@decoy()
def route_within_the_network(estate: Estate) -> None:
    """A route to private space stays inside."""
    properties = estate.properties(estate.site.route_table)
    properties["routes"].append(
        {"name": "services", "properties": {"addressPrefix": "10.40.12.0/24", "nextHopType": "VnetLocal"}}
    )

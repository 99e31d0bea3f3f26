"""Managed services with public addresses in the cluster's network, and what a bastion lets users copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermetic.audit import hops
from hermetic.audit.checks.family import check
from hermetic.audit.cluster_scope import network_ids_of, subnets_of, whole_or_unknown
from hermetic.audit.egress.resource_lookup import everywhere, readable
from hermetic.audit.estate.arm_ids import parent_of, same_id
from hermetic.audit.estate.azure.managed_services import (
    ApplicationGateway,
    AzureFirewall,
    Bastion,
    DoorAddress,
    FirewallAddress,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation import Judgement, does_not_apply, fails, passes, whatever_is_damaged
from hermetic.audit.hops import INTERNET, Hop, path_of
from hermetic.audit.policy import Policy
from hermetic.audit.topology import PlaceKind

Door = ApplicationGateway | Bastion | AzureFirewall


@check("appgw-bastion-other-pip")
def appgw_bastion_other_pip(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Application gateways, bastions and firewalls in the network that the internet can reach."""
    doors, observations = _doors(estate, policy)
    for door in doors:
        yield from whatever_is_damaged(door.id, _public_face(policy, door))
    if doors:
        yield from whole_or_unknown(estate.cluster, "application gateways, bastions and firewalls", *observations)
    else:
        words = "no application gateway, bastion or firewall stands in the network"
        yield passes(estate.cluster, "NoDoor", words, *observations)


def _public_face(policy: Policy, door: Door) -> Iterator[Judgement]:
    if policy.profile == "filtered" and same_id(door.id, policy.firewall):
        yield does_not_apply(door.id, "DeclaredFirewall", "the declared firewall is judged by firewall-in-path", door)
    elif isinstance(door, Bastion) and door.enable_private_only_bastion is True:
        yield passes(door.id, "PrivateOnly", "enablePrivateOnlyBastion is true", door)
    elif _is_public(door):
        words = f"{_kind(door)} with a public address is in the cluster's network"
        path = path_of(INTERNET, Hop(_place(door), f"{_kind(door)} {door.name}"), "cluster network")
        yield fails(door.id, "PublicFace", words, door, paths=(path,))
    else:
        yield passes(door.id, "NoPublicFace", "none of its addresses is public", door)


@check("bastion-copy-out")
def bastion_copy_out(estate: Estate, policy: Policy) -> Iterator[Judgement]:
    """Features of a bastion that let users copy data out of a session."""
    doors, observations = _doors(estate, policy)
    bastions = [door for door in doors if isinstance(door, Bastion)]
    for bastion in bastions:
        yield from whatever_is_damaged(bastion.id, _copying_out(bastion))
    if bastions:
        yield from whole_or_unknown(estate.cluster, "bastions", *observations)
    else:
        yield passes(estate.cluster, "NoBastion", "no bastion stands in the network", *observations)


def _copying_out(bastion: Bastion) -> Iterator[Judgement]:
    switches = {
        "copy and paste": bastion.disable_copy_paste is not True,
        "file copy": bastion.enable_file_copy is True,
        "tunneling": bastion.enable_tunneling is True,
        "shareable links": bastion.enable_shareable_link is True,
        "connections by address": bastion.enable_ip_connect is True,
    }
    found = [name for name, is_on in switches.items() if is_on]
    if found:
        path = path_of(hops.machine("machine"), f"bastion {bastion.name}", "a user's computer")
        yield fails(bastion.id, "CopyingOut", f"it allows {', '.join(found)}", bastion, paths=(path,))
    else:
        yield passes(bastion.id, "NoCopyingOut", "it lets no user copy, tunnel or share", bastion)


def _doors(estate: Estate, policy: Policy) -> tuple[tuple[Door, ...], tuple[Observation, ...]]:
    networks = {one.lower() for one in network_ids_of(estate)}
    observations: list[Observation] = [*subnets_of(estate)[1]]
    found: list[Door] = []
    lists: tuple[Listing[Door], ...] = (
        everywhere(estate, policy, ApplicationGateway),
        everywhere(estate, policy, Bastion),
        everywhere(estate, policy, AzureFirewall),
    )
    for listed in lists:
        observations.append(listed)
        found += [door for door, homes in readable(listed, _networks, observations) if homes & networks]
    return tuple(sorted(found, key=lambda door: door.id.lower())), tuple(observations)


def _networks(door: Door) -> set[str]:
    """Ids, in lower case, of the networks that it has an address in or names."""
    found = {parent_of(one.subnet.id).lower() for one in _addresses(door) if one.subnet is not None}
    if isinstance(door, Bastion) and door.virtual_network is not None:
        found.add(door.virtual_network.id.lower())
    return found


def _addresses(door: Door) -> Iterable[DoorAddress | FirewallAddress]:
    if isinstance(door, ApplicationGateway):
        return (*(door.gateway_ip_configurations or ()), *(door.frontend_ip_configurations or ()))
    return door.ip_configurations or ()


def _is_public(door: Door) -> bool:
    """Whether it has a public address; a bastion of the developer SKU shares a public one."""
    if any(one.public_ip_address is not None for one in _addresses(door)):
        return True
    return isinstance(door, Bastion) and door.virtual_network is not None and not door.ip_configurations


def _place(door: Door) -> PlaceKind:
    return {ApplicationGateway: PlaceKind.GATEWAY, AzureFirewall: PlaceKind.FIREWALL}.get(type(door), PlaceKind.OTHER)


def _kind(door: Door) -> str:
    return {ApplicationGateway: "application gateway", Bastion: "bastion", AzureFirewall: "firewall"}[type(door)]

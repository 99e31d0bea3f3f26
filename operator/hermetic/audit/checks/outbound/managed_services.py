"""Managed services with public addresses in the cluster's network, and what a bastion lets users copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hermetic.audit.checks.family import check
from hermetic.audit.cluster.members import network_ids_of, subnets_of
from hermetic.audit.cluster.resource_lookup import everywhere, readable
from hermetic.audit.estate.arm_ids import parent_of, same_id
from hermetic.audit.estate.azure.managed_services import (
    ApplicationGateway,
    AzureFirewall,
    Bastion,
    FirewallAddress,
    ServiceIpConfiguration,
)
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Observation
from hermetic.audit.evaluation.each_resource import found_or_none
from hermetic.audit.evaluation.results import CheckResult, does_not_apply, fails, passes, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.hops import INTERNET, Hop, path_of
from hermetic.audit.model.topology import PlaceKind
from hermetic.audit.policy.declarations import Policy

ManagedService = ApplicationGateway | Bastion | AzureFirewall


@check("appgw-bastion-other-pip")
def appgw_bastion_other_pip(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Application gateways, bastions and firewalls in the network that the internet can reach."""
    services, observations = _managed_services(estate, policy)
    for service in services:
        yield from whatever_is_damaged(service.id, _public_face(policy, service))
    none = ("NoDoor", "no application gateway, bastion or firewall is in the network")
    yield from found_or_none(
        estate.cluster, services, "application gateways, bastions and firewalls", none, *observations
    )


def _public_face(policy: Policy, service: ManagedService) -> Iterator[CheckResult]:
    if policy.profile == "filtered" and same_id(service.id, policy.firewall):
        yield does_not_apply(
            service.id, "DeclaredFirewall", "the declared firewall is evaluated by firewall-in-path", service
        )
    elif isinstance(service, Bastion) and service.enable_private_only_bastion is True:
        yield passes(service.id, "PrivateOnly", "enablePrivateOnlyBastion is true", service)
    elif _is_public(service):
        message = f"{_kind(service)} with a public address is in the cluster's network"
        path = path_of(INTERNET, Hop(_place(service), f"{_kind(service)} {service.name}"), "cluster network")
        yield fails(service.id, "PublicFace", message, service, paths=(path,))
    else:
        yield passes(service.id, "NoPublicFace", "none of its addresses is public", service)


@check("bastion-copy-out")
def bastion_copy_out(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Features of a bastion that let users copy data out of a session."""
    services, observations = _managed_services(estate, policy)
    bastions = [service for service in services if isinstance(service, Bastion)]
    for bastion in bastions:
        yield from whatever_is_damaged(bastion.id, _copying_out(bastion))
    none = ("NoBastion", "no bastion is in the network")
    yield from found_or_none(estate.cluster, bastions, "bastions", none, *observations)


def _copying_out(bastion: Bastion) -> Iterator[CheckResult]:
    switches = {
        "copy and paste": bastion.disable_copy_paste is not True,
        "file copy": bastion.enable_file_copy is True,
        "tunneling": bastion.enable_tunneling is True,
        "shareable links": bastion.enable_shareable_link is True,
        "connections by address": bastion.enable_ip_connect is True,
    }
    features = [name for name, is_on in switches.items() if is_on]
    if features:
        path = path_of(hops.machine("machine"), f"bastion {bastion.name}", "a user's computer")
        yield fails(bastion.id, "CopyingOut", f"it allows {', '.join(features)}", bastion, paths=(path,))
    else:
        yield passes(bastion.id, "NoCopyingOut", "it lets no user copy, tunnel or share", bastion)


def _managed_services(estate: Estate, policy: Policy) -> tuple[tuple[ManagedService, ...], tuple[Observation, ...]]:
    networks = {network_id.lower() for network_id in network_ids_of(estate)}
    observations: list[Observation] = [*subnets_of(estate)[1]]
    services: list[ManagedService] = []
    lists: tuple[Listing[ManagedService], ...] = (
        everywhere(estate, policy, ApplicationGateway),
        everywhere(estate, policy, Bastion),
        everywhere(estate, policy, AzureFirewall),
    )
    for listed in lists:
        observations.append(listed)
        services += [service for service, homes in readable(listed, _networks, observations) if homes & networks]
    return tuple(sorted(services, key=lambda service: service.id.lower())), tuple(observations)


def _networks(service: ManagedService) -> set[str]:
    """Ids, in lower case, of the networks that it has an address in or names."""
    network_ids = {
        parent_of(configuration.subnet.id).lower()
        for configuration in _addresses(service)
        if configuration.subnet is not None
    }
    if isinstance(service, Bastion) and service.virtual_network is not None:
        network_ids.add(service.virtual_network.id.lower())
    return network_ids


def _addresses(service: ManagedService) -> Iterable[ServiceIpConfiguration | FirewallAddress]:
    if isinstance(service, ApplicationGateway):
        return (*(service.gateway_ip_configurations or ()), *(service.frontend_ip_configurations or ()))
    return service.ip_configurations or ()


def _is_public(service: ManagedService) -> bool:
    """Whether it has a public address; a bastion of the developer SKU shares a public one."""
    if any(configuration.public_ip_address is not None for configuration in _addresses(service)):
        return True
    return isinstance(service, Bastion) and service.virtual_network is not None and not service.ip_configurations


def _place(service: ManagedService) -> PlaceKind:
    return {ApplicationGateway: PlaceKind.GATEWAY, AzureFirewall: PlaceKind.FIREWALL}.get(
        type(service), PlaceKind.OTHER
    )


def _kind(service: ManagedService) -> str:
    return {ApplicationGateway: "application gateway", Bastion: "bastion", AzureFirewall: "firewall"}[type(service)]

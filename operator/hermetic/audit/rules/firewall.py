"""The one firewall that the profile `filtered` allows: routes to it, its policies, and the names that it passes on."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic.audit.estate.azure.managed_services import AzureFirewall, FirewallPolicy
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Lookup, Observation
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.routes import NextHopKind, OutboundRoute, leads_to_appliance
from hermetic.audit.rules.subnet_context import SubnetContext


def declared_addresses(estate: Estate, policy: Policy) -> tuple[tuple[str, ...], tuple[Observation, ...]]:
    """Private addresses of the declared firewall and its observation; both empty in the profile `sealed`.

    Raises FactDamaged where the firewall's addresses cannot be read.
    """
    if policy.profile != "filtered":
        return (), ()
    firewall = estate.one(AzureFirewall, policy.firewall)
    return (firewall.value.private_addresses if firewall.value is not None else ()), (firewall,)


def leads_to_the_firewall(outbound_route: OutboundRoute, addresses: tuple[str, ...]) -> bool:
    """Whether it is a default route to one of these addresses; a route for any other prefix never qualifies."""
    return outbound_route.is_default and leads_to_appliance(outbound_route.route, addresses)


def firewall_observations(estate: Estate, policy: Policy, around: SubnetContext) -> tuple[Observation, ...] | None:
    """Observations that every default route leads to the declared firewall, which then decides in place of the rules.

    None where a default route leads elsewhere. Where the firewall was not seen, every route to an appliance counts
    and the observations carry the problem, so that no Pass follows. Raises FactDamaged for a route or a firewall that
    cannot be read.
    """
    addresses, observations = declared_addresses(estate, policy)
    defaults = [route for route in around.outbound_routes if route.is_default and route.hop is not NextHopKind.DROPPED]
    if not observations or around.table is None or not _are_all_routed(around):
        return None
    if any(observation.problem is not None for observation in observations):
        may_lead_there = all(route.hop is NextHopKind.FORWARDED for route in defaults)
    else:
        may_lead_there = all(leads_to_the_firewall(route, addresses) for route in defaults)
    return (around.table, *observations) if defaults and may_lead_there else None


def _are_all_routed(around: SubnetContext) -> bool:
    """Whether each IP version in use has a user-defined default route; otherwise Azure's system route decides."""
    versions = {
        route.prefix.version for route in around.outbound_routes if route.is_default and route.prefix is not None
    }
    return 4 in versions and (6 in versions or not around.rule_context.has_v6)


def policies_of(estate: Estate, firewall: AzureFirewall) -> tuple[Lookup[FirewallPolicy], ...]:
    """Its policy, then the base policies of that."""
    policies: dict[str, Lookup[FirewallPolicy]] = {}
    reference = firewall.firewall_policy
    while reference is not None and reference.id.lower() not in policies:
        observation = estate.one(FirewallPolicy, reference.id)
        policies[reference.id.lower()] = observation
        reference = observation.value.base_policy if observation.value is not None else None
    return tuple(policies.values())


@dataclass(frozen=True, slots=True)
class DnsProxy:
    """The declared firewall as a DNS server: `owner` has the setting, `servers` are asked; none means Azure's own."""

    owner: str
    servers: tuple[str, ...]
    addresses: tuple[str, ...]
    """The firewall's own: it asks Azure's resolver from its own network."""


def dns_proxy(estate: Estate, policy: Policy) -> tuple[DnsProxy | None, tuple[Observation, ...]]:
    """Its DNS proxy where that is on, and the observations; none in the profile `sealed`.

    The proxy answers at the firewall's own address, so no rule of the firewall applies to names that it is asked.
    Azure documents the settings of a policy as those that apply where a firewall has one.
    """
    if policy.profile != "filtered":
        return None, ()
    firewall = estate.one(AzureFirewall, policy.firewall)
    if firewall.value is None:
        return None, (firewall,)
    policies = policies_of(estate, firewall.value)
    proxy_settings = _by_policy(policies) if policies else _classic(firewall.value)
    proxy = DnsProxy(*proxy_settings, firewall.value.private_addresses) if proxy_settings is not None else None
    return proxy, (firewall, *policies)


def _by_policy(policies: tuple[Lookup[FirewallPolicy], ...]) -> tuple[str, tuple[str, ...]] | None:
    """The policy whose settings apply, its own before those of its bases, and its servers; None where it is off."""
    values = [policy.value for policy in policies if policy.value is not None]
    for policy in values:
        if policy.dns_settings is not None:
            return (policy.id, tuple(policy.dns_settings.servers or ())) if policy.dns_settings.enable_proxy else None
    return None


def _classic(firewall: AzureFirewall) -> tuple[str, tuple[str, ...]] | None:
    """A firewall without a policy and its servers; None where its DNS proxy is off."""
    properties = {key.lower(): value for key, value in firewall.additional_properties.items()}
    if properties.get("network.dns.enableproxy", "").lower() != "true":
        return None
    servers = properties.get("network.dns.servers", "").split(",")
    return firewall.id, tuple(server.strip() for server in servers if server.strip())

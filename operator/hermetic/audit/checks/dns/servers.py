"""DNS servers of machines, and the platform's resolver: blocked names, servers that it forwards to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address

from hermetic.audit.checks.family import check, check_each
from hermetic.audit.cluster.members import scale_sets_of
from hermetic.audit.cluster.resource_lookup import interfaces_in_the_networks, readable
from hermetic.audit.egress.machines import RelayMachine, egress_paths, machines_of
from hermetic.audit.estate.arm_ids import name_of
from hermetic.audit.estate.azure.dns import ForwardingRule, LinkedRulesets
from hermetic.audit.estate.azure.vnet import NetworkInterface, NicFields, Peering, ScaleSet, VirtualNetwork
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.observation import Listing, Lookup, Observation, missing
from hermetic.audit.evaluation.each_resource import each_network, whole_or_unknown
from hermetic.audit.evaluation.results import CheckResult, fails, passes, unknown, whatever_is_damaged
from hermetic.audit.model import hops
from hermetic.audit.model.address_ranges import is_public
from hermetic.audit.model.address_ranges import network as prefix_of
from hermetic.audit.model.hops import INTERNET, POD, path_of, written
from hermetic.audit.policy.declarations import Policy
from hermetic.audit.rules.firewall import dns_proxy
from hermetic.audit.scope.dns import DefaultAction, NamePolicy, names_by_default
from hermetic.audit.scope.locked_node_group import rulesets_behind_the_lock
from hermetic.audit.scope.reachable_networks import where_readable

AZURE_DNS = "168.63.129.16"
LIST_THEM = """\
Where each of these servers answers private names only, list it under `allowedDnsServers` of the policy file.
Otherwise take the rule away:
Warning: names that only these servers know are no longer found.
az resource delete --ids ATTACHED_ID"""

OF_THE_FIREWALL = """\
Where each of these servers answers private names only, list it under `allowedDnsServers` of the policy file.
Otherwise take it out of the firewall's DNS settings, or turn its DNS proxy off there:
Warning: network rules with host names match only while the proxy is on."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """Ids of peered networks with a DNS server of this one, servers that are in none, and the observations."""

    networks: tuple[str, ...]
    elsewhere: tuple[str, ...]
    observations: tuple[Observation, ...]


def deciding_networks(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Deciding:
    """The peered networks of the network's DNS servers, and of those that the declared firewall asks.

    A server in a peered network (an inbound endpoint of a resolver, a forwarder) asks the platform's resolver from
    there, so policies and rulesets linked there decide. The nodes' own network counts in any case: 168.63.129.16
    answers every pod.
    """
    options = network.value.dhcp_options if network.value is not None else None
    proxy, firewall = dns_proxy(estate, policy)
    proxy_servers = (proxy.servers or proxy.addresses) if proxy is not None else ()
    named = (*(options.dns_servers if options is not None else ()), *proxy_servers)
    servers = [server for server in named if server.strip() != AZURE_DNS]
    if not servers:
        return Deciding((), (), (network, *firewall))
    peerings = estate.every(Peering, network.target)
    at_home = network.value.address_space.address_prefixes if network.value and network.value.address_space else ()
    network_ids: dict[str, str] = {}
    elsewhere: list[str] = []
    for server in servers:
        homes = [] if _holds(at_home, server) else list(_homes(peerings.items, server))
        network_ids |= {network_id.lower(): network_id for network_id in homes}
        if not homes and not _holds(at_home, server):
            elsewhere.append(server)
    return Deciding(
        tuple(network_ids[key] for key in sorted(network_ids)), tuple(elsewhere), (network, peerings, *firewall)
    )


def _homes(peerings: tuple[Peering, ...], server: str) -> Iterator[str]:
    for peering in peerings:
        space = peering.remote_address_space.address_prefixes if peering.remote_address_space is not None else ()
        if peering.connects and peering.remote_virtual_network is not None and _holds(space, server):
            yield peering.remote_virtual_network.id


def _holds(prefixes: tuple[str, ...] | list[str], address: str) -> bool:
    try:
        number = ip_address(address.strip())
    except ValueError:
        return False
    parsed_prefixes = (prefix_of(text) for text in prefixes)
    return any(
        prefix is not None and prefix.version == number.version and number in prefix for prefix in parsed_prefixes
    )


@check("vnet-dns-servers")
def vnet_dns_servers(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Servers of the network and of interfaces are listed in the policy, and no machines with an egress path."""
    yield from _of_interfaces(estate, policy)
    yield from _of_the_firewall(estate, policy)

    def evaluate(network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
        options = network.value.dhcp_options if network.value is not None else None
        named = options.dns_servers if options is not None else []
        yield from _evaluate(estate, policy, network.target, named, network)

    yield from each_network(estate, policy, evaluate)


def _of_interfaces(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Findings for interfaces with servers of their own; a Pass of the network covers all others."""
    nics, observations = interfaces_in_the_networks(estate, policy)
    broken: list[Observation] = []
    for nic, named in readable(nics, _named, broken):
        if named:
            yield from whatever_is_damaged(nic.id, _evaluate(estate, policy, nic.id, named, nic))
    sets = scale_sets_of(estate)
    for scale_set, named in readable(sets, _of_the_model, broken):
        if named:
            yield from whatever_is_damaged(scale_set.id, _evaluate(estate, policy, scale_set.id, named, scale_set))
    observations = (*observations, sets)
    every = where_readable(estate, policy, NetworkInterface)
    yield from whole_or_unknown(estate.cluster, "servers of interfaces", *observations, *broken, every)


def _of_the_firewall(estate: Estate, policy: Policy) -> Iterator[CheckResult]:
    """Servers that the declared firewall asks as a DNS proxy; Azure's own are evaluated by dns-security-policy."""
    proxy, observations = dns_proxy(estate, policy)
    if proxy is not None:
        yield from _evaluate(estate, policy, proxy.owner, list(proxy.servers), *observations, remedy=OF_THE_FIREWALL)
    yield from whole_or_unknown(estate.cluster, "the DNS proxy of the firewall", *observations)


def _of_the_model(scale_set: ScaleSet) -> list[str]:
    """Servers that the next instances are given."""
    return [server for nic in scale_set.nics if nic.dns_settings is not None for server in nic.dns_settings.dns_servers]


def _named(nic: NicFields) -> list[str]:
    return nic.dns_settings.dns_servers if nic.dns_settings is not None else []


def _evaluate(
    estate: Estate, policy: Policy, resource: str, named: list[str], *observations: Observation, remedy: str = ""
) -> Iterator[CheckResult]:
    custom = [server for server in named if _same(server) != AZURE_DNS]
    allowed = {_same(server) for server in policy.allowed_dns_servers}
    no_machines: Listing[RelayMachine] = Listing(estate.cluster)
    machines = machines_of(estate, policy) if custom else no_machines
    objections = [f"{server} is not on the list" for server in custom if _same(server) not in allowed]
    leading = [
        (server, machine) for server in custom for machine in machines if _same(server) in map(_same, machine.addresses)
    ]
    rests: list[Observation] = [*observations, machines]
    for server, machine in leading:
        machine_paths, reads = egress_paths(estate, policy, machine)
        rests += reads
        if machine_paths:
            objections.append(
                f"{server} is a machine with an egress path of its own ({', '.join(map(written, machine_paths))})"
            )
    if objections:
        path = path_of(POD, hops.dns(f"dns server {', '.join(custom)}"), INTERNET)
        yield fails(resource, "DnsServerNotAllowed", "; ".join(objections), *rests, paths=(path,), remedy=remedy)
    elif custom:
        yield passes(resource, "DnsServersAllowed", f"{', '.join(custom)}: all on the list", *rests)
    else:
        yield passes(resource, "AzureDns", f"{name_of(resource)} has Azure's own resolver", *rests)


def _same(address: str) -> str:
    """The canonical form of an address."""
    prefix = prefix_of(address)
    return str(prefix.network_address) if prefix is not None else address.strip().lower()


@check_each("dns-security-policy", each_network)
def dns_security_policy(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """Every name that no rule allows is blocked, in the network and in the networks of its DNS servers."""
    deciding = deciding_networks(estate, policy, network)
    for network_id in (network.target, *deciding.networks):
        yield _result_by_default(network_id, names_by_default(estate, policy, network_id))
    if deciding.elsewhere:
        message = (
            f"{', '.join(deciding.elsewhere)}: in no network in reach; the audit could not see what is blocked there"
        )
        yield unknown(network.target, "ServerNotInReach", message, *deciding.observations)


def _result_by_default(network: str, names: NamePolicy) -> CheckResult:
    if names.verdict is DefaultAction.BLOCKED:
        return passes(network, names.reason, names.message, *names.observations)
    if names.verdict is DefaultAction.ANSWERED:
        path = path_of(POD, hops.dns(f"dns of vnet {name_of(network)}"), INTERNET)
        return fails(
            network, names.reason, names.message, *names.observations, paths=(path,), fill={"VNET_ID": network}
        )
    return unknown(network, names.reason, names.message, *names.observations)


@check_each("dns-forwarding-ruleset", each_network)
def dns_forwarding_ruleset(estate: Estate, policy: Policy, network: Lookup[VirtualNetwork]) -> Iterator[CheckResult]:
    """Forwarding rulesets linked to the network, or to the networks of its DNS servers."""
    for network_id in (network.target, *deciding_networks(estate, policy, network).networks):
        yield from _rulesets_of(estate, policy, network_id)
        for linked, _ in rulesets_behind_the_lock(estate, policy, network_id):
            yield _ruleset(policy, network_id, linked, estate.every(ForwardingRule, linked))


def _rulesets_of(estate: Estate, policy: Policy, network: str) -> Iterator[CheckResult]:
    linked = estate.asked(LinkedRulesets, network)
    rulesets = (linked.value.value or ()) if linked.value is not None else ()
    for ruleset in rulesets:
        yield _ruleset(policy, network, ruleset.id, estate.every(ForwardingRule, ruleset.id))
    if linked.value is not None and not linked.value.is_whole:
        gap = missing(f"{network}: the answer of {LinkedRulesets.ACTION} is not whole")
        yield unknown(network, "RulesetsNotSeen", "linked rulesets were not seen", linked, gap)
    elif not rulesets:
        yield passes(network, "NoRuleset", "no forwarding ruleset is linked", linked)


def _ruleset(policy: Policy, network: str, ruleset: str, rules: Listing[ForwardingRule]) -> CheckResult:
    enabled = [rule for rule in rules if (rule.forwarding_rule_state or "").lower() != "disabled"]
    servers = [(rule, server.ip_address) for rule in enabled for server in rule.target_dns_servers or ()]
    public = [f"{rule.domain_name or 'every name'} to {address}" for rule, address in servers if _is_public(address)]
    without_server = [rule.name for rule in enabled if not rule.target_dns_servers]
    if public:
        path = path_of(
            POD, hops.dns(f"dns of vnet {name_of(network)}"), f"forwarding ruleset {name_of(ruleset)}", INTERNET
        )
        message = f"names are forwarded to public servers: {', '.join(public)}"
        ids = list(dict.fromkeys(rule.id for rule, address in servers if _is_public(address)))
        return fails(ruleset, "ForwardsOutside", message, rules, paths=(path,), fill={"ATTACHED_ID": ids})
    if without_server:
        return unknown(ruleset, "NoServer", f"rules name no server: {', '.join(without_server)}", rules)
    allowed = {_same(server) for server in policy.allowed_dns_servers}
    unlisted = [(rule, address) for rule, address in servers if _same(address or "") not in allowed]
    if unlisted:
        shown = ", ".join(f"{rule.domain_name or 'every name'} to {address}" for rule, address in unlisted)
        message = (
            f"names are forwarded to servers that are not on the list: {shown}; the audit did not read what they ask"
        )
        ids = list(dict.fromkeys(rule.id for rule, _ in unlisted))
        return unknown(ruleset, "ServerNotAllowed", message, rules, remedy=LIST_THEM, fill={"ATTACHED_ID": ids})
    return passes(ruleset, "ForwardsInside", "names are forwarded to servers on the list only", rules)


def _is_public(address: str | None) -> bool:
    """Whether the server's address is public, or is no address."""
    prefix = prefix_of(address or "")
    return prefix is None or is_public(prefix)

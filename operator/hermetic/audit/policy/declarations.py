"""What an audit allows: the policy file of `hermetic audit --policy`, and the profile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Literal

from pydantic import BaseModel, ConfigDict, field_validator, model_validator
from pydantic.alias_generators import to_camel

from hermetic.api.image_references import registry_of
from hermetic.api.ip_ranges import is_address, is_host_address, is_in, parse_address, unmapped
from hermetic.api.node_agents import TrustedNodeAgent
from hermetic.api.times import zoned
from hermetic.audit.estate.arm_ids import is_arm_id, same_id, subscription_of, type_of
from hermetic.audit.estate.kubernetes.names import leads_outside
from hermetic.audit.policy.allowed_destinations import AllowedHost, AllowedPrivateDestination, AllowedPublicDestination

Profile = Literal["sealed", "filtered"]

HERMETIC_NAMESPACES = ("hermetic-system", "hermetic-probe")

NIC = "Microsoft.Network/networkInterfaces"
HUBS = ("Microsoft.Network/virtualHubs", "Microsoft.Network/virtualHubs/hubVirtualNetworkConnections")
FIREWALL = "Microsoft.Network/azureFirewalls"
SUBNET = "Microsoft.Network/virtualNetworks/subnets"
NETWORKS = ("Microsoft.Network/virtualNetworks", "Microsoft.Network/virtualNetworks/virtualNetworkPeerings")
_SUBSCRIPTION = re.compile(r"(/subscriptions/)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/?", re.IGNORECASE)
LONGEST_NAME = 253
_ANY_SUBNET = f"/subscriptions/ID/resourceGroups/GROUP/providers/{SUBNET.replace('/subnets', '/VNET/subnets')}/SUBNET"
_KIND = re.compile(r"[a-z0-9][-a-z0-9.]*/(\*|[A-Za-z][A-Za-z0-9]*)")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_DOMAIN = re.compile(r"[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?(\.[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?)+\.?", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[\]{}]")


class DeclaredPrivateSubnet(BaseModel):
    """A person's statement: this subnet has been private (defaultOutboundAccess false) since this moment.

    `subnet`, `since` and `statedBy` are required. It is reported as a statement, never as a measurement.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    subnet: str
    """ARM id of one subnet; no pattern."""
    since: datetime
    """RFC 3339 date-time with its zone: 2026-07-01T08:00:00Z. It must not lie in the future."""
    stated_by: str
    """Who is responsible for the statement: a name or an address."""
    through: datetime | None = None
    """Optional: the moment up to which the author knows every write of the subnet and its network, and that it stayed
    private. A later write that the activity log shows voids the statement. Default: `since`."""

    @field_validator("subnet")
    @classmethod
    def _is_one_subnet(cls, value: str) -> str:
        subnet_id = value.strip().rstrip("/")
        if _GLOB.search(subnet_id):
            raise ValueError(f"{value!r} is a pattern; name each subnet by its ARM id")
        if (
            not _is_of(subnet_id, SUBNET)
            or len(subnet_id.split("/")) != len(_ANY_SUBNET.split("/"))
            or "" in subnet_id.split("/")[1:]
        ):
            raise ValueError(f"{value!r} is not the ARM id of a subnet ({_ANY_SUBNET})")
        return subnet_id

    @field_validator("since", "through", mode="before")
    @classmethod
    def _has_a_zone(cls, value: object) -> datetime:
        moment = value if isinstance(value, datetime) and value.utcoffset() is not None else zoned(value)
        if moment is None:
            text = value.isoformat() if hasattr(value, "isoformat") else value
            raise ValueError(f"{text!r} is not a date-time with a zone; write 2026-07-01T08:00:00Z (RFC 3339)")
        return moment.astimezone(UTC)

    @model_validator(mode="after")
    def _in_order(self) -> DeclaredPrivateSubnet:
        if self.through is not None and self.through < self.since:
            raise ValueError("`through` must not be before `since`")
        return self

    @field_validator("stated_by")
    @classmethod
    def _is_named(cls, value: str) -> str:
        name = " ".join(value.split())
        if not name or not name.isprintable() or len(name) > LONGEST_NAME:
            raise ValueError(f"must be a name of 1 to {LONGEST_NAME} printable characters")
        return name


@dataclass(frozen=True, slots=True)
class AttestedPrivate:
    """What the previous attestation states of a subnet: private since a moment, and when that was last observed.

    Its audit began at `seen_from` and ended at `seen_at`.
    """

    subnet: str
    since: datetime
    seen_from: datetime
    seen_at: datetime
    digest: str


class Policy(BaseModel):
    """Every key is optional; what is not listed is not allowed. Ids are compared without regard to case."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    profile: Profile = "sealed"
    """Sealed: no egress path. Filtered: one declared firewall, evaluated too. From --profile, not from this file."""
    own_subscriptions: tuple[str, ...] = ()
    """Subscription ids that are ours, beside those of the cluster and its virtual network."""
    allowed_peerings: tuple[str, ...] = ()
    """ARM ids of remote virtual networks or of peerings; of virtual hubs, or of a hub's connections."""
    additional_private_ranges: tuple[str, ...] = ()
    """Address ranges of our virtual networks, as CIDR, that are private although they lie outside RFC 1918."""
    allowed_dns_servers: tuple[str, ...] = ()
    """IP addresses of DNS servers that a virtual network may name."""
    allowed_dns_domains: tuple[str, ...] = ()
    """Domains that a DNS security policy may let through, with every name below them, beside the cluster's own. Also
    those that wildcards in the rules of the declared firewall may name, unless anyone may create a name below them."""
    allowed_private_link_services: tuple[str, ...] = ()
    """ARM ids of resources that a private endpoint may lead to although they are not ours, or relay what they get."""
    allowed_registries: tuple[str, ...] = ()
    """Host names of the registries that images of workloads may come from, such as contoso.azurecr.io."""
    hermetic_namespaces: tuple[str, ...] = HERMETIC_NAMESPACES
    """Where Hermetic's operator and its probe pods run: they have permissions there that no other workload has."""
    harmless_kinds: tuple[str, ...] = ()
    """Kinds of the API server that let no packet out, as GROUP/Kind, or GROUP/* for all of a group."""
    trusted_node_agents: tuple[TrustedNodeAgent, ...] = ()
    """The team's own agents on the nodes, by namespace, controller and image: these may have rights over their node."""
    sentinel_nics: tuple[str, ...] = ()
    """ARM ids of network interfaces of virtual machines in the cluster's subnets, queried for effective routes."""
    firewall: str = ""
    """ARM id of the one Azure Firewall that the profile `filtered` allows."""
    allowed_hosts: tuple[AllowedHost, ...] = ()
    """Hosts that rules of the declared firewall may name although they serve others too, or their owner is unknown."""
    allowed_public_destinations: tuple[AllowedPublicDestination, ...] = ()
    """Public prefixes that rules of the declared firewall may name although an address does not show whose it is."""
    allowed_private_destinations: tuple[AllowedPrivateDestination, ...] = ()
    """Private prefixes that rules of the declared firewall may name although no network that is read holds them."""
    subnets_private_since: tuple[DeclaredPrivateSubnet, ...] = ()
    """Since when subnets have been private, as a person states; decides `nic-default-outbound` by time."""
    attested_private: tuple[AttestedPrivate, ...] = ()
    """What the attestation of --previous states of subnets. From that option, not from the policy file."""
    audited_at: datetime | None = None
    """When the audit began, in UTC; a later date from Azure is no evidence. From the clock, not the policy file."""

    @model_validator(mode="after")
    def _agents_come_from_allowed_registries(self) -> Policy:
        if problem := next(from_elsewhere(self.trusted_node_agents, self.allowed_registries), ""):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _filtered_needs_a_firewall(self) -> Policy:
        if self.profile == "filtered" and not self.firewall:
            raise ValueError("--profile filtered needs `firewall`: the ARM id of the Azure Firewall that is allowed")
        for name, ids in (
            ("sentinelNics", self.sentinel_nics),
            ("firewall", (self.firewall,) if self.firewall else ()),
        ):
            for resource_id in ids:
                if not is_arm_id(resource_id):
                    raise ValueError(f"`{name}`: {resource_id!r} is not an ARM id (/subscriptions/…)")
        return self

    @model_validator(mode="after")
    def _one_statement_for_a_subnet(self) -> Policy:
        counted = Counter(declaration.subnet.lower() for declaration in self.subnets_private_since)
        for subnet, times in counted.items():
            if times > 1:
                raise ValueError(f"`subnetsPrivateSince`: {subnet} is named {times} times; state one moment for it")
        return self

    def private_since(self, subnet_id: str) -> DeclaredPrivateSubnet | None:
        """The statement about a subnet; None where there is none."""
        return next(
            (declaration for declaration in self.subnets_private_since if same_id(declaration.subnet, subnet_id)), None
        )

    def attested(self, subnet_id: str) -> AttestedPrivate | None:
        """The previous attestation's entry for a subnet; None where there is none."""
        return next((entry for entry in self.attested_private if same_id(entry.subnet, subnet_id)), None)

    def leads_outside(self, text: str) -> bool:
        """Whether an address of a Service, or a host name in its place, is not known to be inside here."""
        ours = is_in(parse_address(text), map(ip_network, self.additional_private_ranges))
        return leads_outside(text) and (is_host_address(text) or not ours)

    def with_hermetic_in(self, namespace: str) -> Policy:
        """The policy with this namespace as one of Hermetic's too."""
        namespaces = dict.fromkeys((*self.hermetic_namespaces, namespace))
        return self.model_copy(update={"hermetic_namespaces": tuple(namespaces)})

    def allows_peering(self, *ids: str) -> bool:
        """Whether a peering or its remote network is on the list."""
        return any(same_id(resource_id, allowed) for resource_id in ids for allowed in self.allowed_peerings)

    @property
    def searched_ids(self) -> tuple[str, ...]:
        """ARM ids, or bare ids, of subscriptions that are searched: ours, the allowed hubs' and the firewall's."""
        hubs = (allowed_id for allowed_id in self.allowed_peerings if _is_of(allowed_id, *HUBS))
        return (*self.own_subscriptions, *hubs, *((self.firewall,) if self.profile == "filtered" else ()))

    def owns(self, subscription: str, *of_the_cluster: str) -> bool:
        """Whether a subscription (bare id or /subscriptions/…) is one of ours."""
        ours = {
            subscription_of(resource_id) or resource_id.lower()
            for resource_id in (*self.own_subscriptions, *of_the_cluster)
        }
        return (subscription_of(subscription) or subscription.lower()) in ours


def never_met(policy: Policy) -> Iterator[str]:
    """Text for each entry of a policy that can never match: a typing error must not look like a rule."""
    for field, fits, description in _SHAPES:
        accepted = getattr(policy, field)
        for value in accepted if isinstance(accepted, tuple) else filter(None, (accepted,)):
            if not fits(value):
                yield f"`{to_camel(field)}`: {value!r} is not {description}"


def _is_range(text: str) -> bool:
    """A CIDR without host bits that is not the whole address space, and not of IPv4 written as IPv6."""
    try:
        network = ip_network(text)
    except ValueError:
        return False
    return "/" in text and network.prefixlen > 0 and unmapped(network) == network


def _is_of(text: str, *types: str) -> bool:
    return is_arm_id(text) and type_of(text).lower() in {resource_type.lower() for resource_type in types}


_SHAPES: tuple[tuple[str, Callable[[str], object], str], ...] = (
    ("own_subscriptions", _SUBSCRIPTION.fullmatch, "the id of a subscription"),
    ("additional_private_ranges", _is_range, "a CIDR without host bits, such as 198.18.0.0/15"),
    ("allowed_dns_servers", is_address, "an IP address"),
    ("allowed_dns_domains", _DOMAIN.fullmatch, "a domain of two labels or more, without a wildcard"),
    ("hermetic_namespaces", _DNS_LABEL.fullmatch, "the name of a namespace"),
    ("harmless_kinds", _KIND.fullmatch, "an API group and a kind (GROUP/Kind, GROUP/*)"),
    (
        "allowed_peerings",
        lambda value: _is_of(value, *NETWORKS, *HUBS),
        "the ARM id of a virtual network or a peering, or of a virtual hub or a connection of one",
    ),
    ("sentinel_nics", lambda value: _is_of(value, NIC), f"the ARM id of a network interface (…/providers/{NIC}/NAME)"),
    (
        "firewall",
        lambda value: _is_of(value, FIREWALL),
        f"the ARM id of an Azure Firewall (…/providers/{FIREWALL}/NAME)",
    ),
)


def from_elsewhere(agents: Iterable[TrustedNodeAgent], allowed: Collection[str]) -> Iterator[str]:
    """Text for each entry that cannot count because its registry is not allowed."""
    allowed_registries = {registry.lower() for registry in allowed}
    for position, agent in enumerate(agents):
        if registry_of(agent.image) not in allowed_registries:
            message = f"registry {registry_of(agent.image)} is not in `allowedRegistries`"
            yield f"`trustedNodeAgents.{position}.image`: {message}"

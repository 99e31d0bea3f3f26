"""Network security groups. Every address and port field exists twice, singular and plural; both count."""

from __future__ import annotations

from hermetic.audit.estate.azure.versions import NETWORK, PREFIX_SETS
from hermetic.audit.estate.resource import Part, Reference, Resource, arm


class SecurityRule(Part):
    """One rule of a group; of the rules that match a packet, the lowest priority applies."""

    name: str = ""
    priority: int | None = None
    direction: str | None = None
    access: str | None = None
    protocol: str | None = None
    source_address_prefix: str | None = None
    source_address_prefixes: list[str] | None = None
    source_port_range: str | None = None
    source_port_ranges: list[str] | None = None
    source_application_security_groups: list[Reference] | None = None
    destination_address_prefix: str | None = None
    destination_address_prefixes: list[str] | None = None
    destination_port_range: str | None = None
    destination_port_ranges: list[str] | None = None
    destination_application_security_groups: list[Reference] | None = None

    @property
    def sources(self) -> tuple[str, ...]:
        """Prefixes and tags of the source."""
        return _both(self.source_address_prefix, self.source_address_prefixes)

    @property
    def destinations(self) -> tuple[str, ...]:
        """Prefixes and tags of the destination."""
        return _both(self.destination_address_prefix, self.destination_address_prefixes)

    @property
    def application_security_groups(self) -> tuple[Reference, ...]:
        """Of both ends."""
        return (*(self.source_application_security_groups or ()), *(self.destination_application_security_groups or ()))

    @property
    def source_ports(self) -> tuple[str, ...]:
        """Port ranges as written."""
        return _both(self.source_port_range, self.source_port_ranges)

    @property
    def destination_ports(self) -> tuple[str, ...]:
        """Port ranges as written."""
        return _both(self.destination_port_range, self.destination_port_ranges)


@arm("Microsoft.Network/networkSecurityGroups", NETWORK)
class SecurityGroup(Resource):
    """Microsoft.Network/networkSecurityGroups with the rules that every group has by default."""

    security_rules: list[SecurityRule] | None = None
    default_security_rules: list[SecurityRule] | None = None

    @property
    def rules(self) -> tuple[SecurityRule, ...]:
        """Its own rules and the default ones, unordered."""
        return (*(self.security_rules or ()), *(self.default_security_rules or ()))


@arm("Microsoft.Network/applicationSecurityGroups/addressPrefixSets", PREFIX_SETS)
class AddressPrefixSet(Resource):
    """Addresses that are members of an application security group without an interface."""

    address_prefixes: list[str] | None = None


def _both(single: str | None, many: list[str] | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*((single,) if single else ()), *(many or ()))))

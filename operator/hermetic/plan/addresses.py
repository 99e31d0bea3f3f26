"""Which addresses of a Service are private."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.field_types import PRIVATE_RANGES
from hermetic.api.public_services import given

UNIQUE_LOCAL = "fc00::/7"


def load_balancer_addresses(service: Mapping[str, Any]) -> tuple[str, ...]:
    """Every address or host name that the load balancer has given so far."""
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
    return given((entry.get("ip"), entry.get("hostname")) for entry in ingress)


def public_addresses(service: Mapping[str, Any], policy: Configuration) -> tuple[str, ...]:
    """Those that are not known to be private. A host name is not: it can point anywhere."""
    return tuple(address for address in load_balancer_addresses(service) if not is_private(address, policy))


def is_private(text: str, policy: Configuration) -> bool:
    """Whether the text is an address of a private range; a name is not."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    ranges = (ip_network(cidr) for cidr in (*PRIVATE_RANGES, UNIQUE_LOCAL, *policy.additional_private_ranges))
    return any(address.version == net.version and address in net for net in ranges)

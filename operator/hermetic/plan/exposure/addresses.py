"""Which addresses of a Service are private."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.api.configuration import Configuration
from hermetic.api.ip_ranges import is_private
from hermetic.api.public_services import given


def load_balancer_addresses(service: Mapping[str, Any]) -> tuple[str, ...]:
    """Every address or host name that the load balancer has assigned so far."""
    ingress = service.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
    return given((entry.get("ip"), entry.get("hostname")) for entry in ingress)


def public_addresses(service: Mapping[str, Any], policy: Configuration) -> tuple[str, ...]:
    """Those that are not known to be private. A host name is not: it can point anywhere."""
    own = policy.additional_private_ranges
    return tuple(address for address in load_balancer_addresses(service) if not is_private(address, own))

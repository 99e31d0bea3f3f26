"""Destinations behind the declared firewall that the policy file accepts, each with the reason."""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from hermetic.api.ip_ranges import PRIVATE_IPV4, PRIVATE_IPV6, Network
from hermetic.audit.model.address_ranges import internet, networks, space, without

LONGEST_REASON = 512
SHORTEST = {4: 8, 6: 32}
"""By IP version, the shortest public prefix that a rule of the declared firewall may name."""
_HOST = re.compile(r"(?!.*\.[0-9]+$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})+")


def _reason(value: str) -> str:
    text = " ".join(value.split())
    if not text or not text.isprintable() or len(text) > LONGEST_REASON:
        raise ValueError(f"must say in 1 to {LONGEST_REASON} printable characters why it is acceptable")
    return text


def _host(value: str) -> str:
    host = value.strip().lower().removesuffix(".")
    if not _HOST.fullmatch(host):
        raise ValueError(f"{value!r} is not the full name of one host, such as packages.contoso.example")
    return host


def _network(value: str) -> Network:
    try:
        return ip_network(value.strip())
    except ValueError as error:
        raise ValueError(f"{value!r} is not an address or a CIDR without host bits") from error


def _public_prefix(value: str) -> str:
    network = _network(value)
    if without(space((network,)), internet()):
        raise ValueError(f"{value!r} is not public: private prefixes are listed under `allowedPrivateDestinations`")
    if network.prefixlen < SHORTEST[network.version]:
        raise ValueError(f"{value!r} is wider than a /{SHORTEST[network.version]}: a rule with it allows anything")
    return str(network)


def _prefix(value: str) -> str:
    network = _network(value)
    if without(space((network,)), space(networks((*PRIVATE_IPV4, PRIVATE_IPV6)))):
        raise ValueError(f"{value!r} is not private: firewall rules for public addresses are evaluated by themselves")
    return str(network)


Reason = Annotated[str, AfterValidator(_reason)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class AllowedHost(_Entry):
    """One host that rules of the declared firewall may name, although it serves others or its owner is not known."""

    host: Annotated[str, AfterValidator(_host)]
    """Full name of the host, without a wildcard. Names below it are not included."""
    reason: Reason
    """Why data that pods can send there is acceptable."""


class _Destination(_Entry):
    """The common fields of both kinds of prefixes."""

    prefix: str
    reason: Reason


class AllowedPublicDestination(_Destination):
    """A public prefix that rules of the declared firewall may name, although an address does not show whose it is."""

    prefix: Annotated[str, AfterValidator(_public_prefix)]
    """CIDR, or one address."""
    reason: Reason
    """Whose it is, and why data that pods can send there is acceptable."""


class AllowedPrivateDestination(_Destination):
    """A private prefix that rules of the declared firewall may name, although the audit cannot read what is there."""

    prefix: Annotated[str, AfterValidator(_prefix)]
    """CIDR, or one address, of a network that is not read: on premises, or of a subscription of others."""
    reason: Reason
    """How it is known that nothing there passes data on."""

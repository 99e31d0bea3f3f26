"""The targets of the probe, with their defaults.

Every key of `Targets` can be set by the customer; what is set replaces the default as a whole. What is sent anywhere is
fixed and carries no data: a TCP handshake, a TLS ClientHello, a DNS question for a random name below the canary, an NTP
request, a QUIC packet of a version that does not exist, and at the host's own channel a GET of its versions.
"""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from hermetic.api.ip_ranges import is_public

AZURE_DNS = "168.63.129.16"
METADATA = "169.254.169.254"

# Anycast resolvers of three operators. All listen on 443 and 53, so a refusal there comes from a firewall.
PUBLIC_V4 = ("1.1.1.1", "8.8.8.8", "9.9.9.9")
PUBLIC_V6 = ("2606:4700:4700::1111",)
TCP_PORTS = (80, 22, 53, 49152)
UDP_PORTS = (53, 123, 443)
# Microsoft Entra, Azure Resource Manager and the registry of Microsoft's images.
PUBLIC_NAMES = ("login.microsoftonline.com", "management.azure.com", "mcr.microsoft.com")
# Reserved for ever, and it resolves (RFC 2606, RFC 6761): a resolver that denies it has no access to public DNS.
KNOWN_NAME = "example.com"
WIRESERVER_PORTS = (80, 32526)
FEWEST_V4 = 3
MOST_CALLS = 64
"""Limit of calls: more would not fit into an answer, of which the kubelet keeps 4096 bytes."""


def _canonical(text: str) -> str:
    """The address in canonical form. A zone (fe80::1%eth0) is refused: it is valid on one machine only."""
    if "%" in text:
        raise ValueError(f"{text!r}: an address with a zone")
    return str(ip_address(text))


Address = Annotated[str, StringConstraints(max_length=45), AfterValidator(_canonical)]
Name = Annotated[
    str,
    StringConstraints(max_length=253, pattern=r"^[A-Za-z0-9_]([-A-Za-z0-9_]{0,62}\.)*[-A-Za-z0-9_]{0,62}[A-Za-z0-9]$"),
]
Port = Annotated[int, Field(ge=1, le=65535)]


class ProbeListener(BaseModel):
    """An address and a port."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    address: Address
    port: Port


class Targets(BaseModel):
    """What is called, asked and read. All lists may be empty, except that three public addresses must be left."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    public_addresses: Annotated[tuple[Address, ...], Field(max_length=6)] = (*PUBLIC_V4, *PUBLIC_V6)
    """Public addresses in different networks with a TLS service on 443: the more owners, the better."""
    tcp_ports: Annotated[tuple[Port, ...], Field(max_length=8)] = TCP_PORTS
    """Ports called on each public IPv4 address beside 443."""
    udp_ports: Annotated[tuple[Port, ...], Field(max_length=4)] = UDP_PORTS
    """UDP ports called on each public address."""
    public_names: Annotated[tuple[Name, ...], Field(max_length=4)] = PUBLIC_NAMES
    """Names that must not resolve to public addresses, and are called on 443 where they do."""
    storage_names: Annotated[tuple[Name, ...], Field(max_length=2)] = ()
    """Blob endpoints of storage accounts in the cluster's region that are not yours. Default: none, so Unknown."""
    storage_addresses: Annotated[tuple[Address, ...], Field(max_length=2)] = ()
    """Public addresses of such endpoints, for networks in which their names do not resolve."""
    proxies: Annotated[tuple[ProbeListener, ...], Field(max_length=4)] = ()
    """HTTP proxies that must not let the cluster through."""
    forbidden: Annotated[tuple[ProbeListener, ...], Field(max_length=8)] = ()
    """Addresses in other networks that must not answer."""
    controls: Annotated[tuple[ProbeListener, ...], Field(max_length=2)] = ()
    """What must answer, or silence means nothing. Default: the API server by its Service."""
    resolvers: Annotated[tuple[Address, ...], Field(max_length=4)] = (AZURE_DNS,)
    """Resolvers asked beside those of the pod: those of the virtual network belong here."""
    canary: Annotated[Name, Field(max_length=180)] = KNOWN_NAME
    """A registered domain without a wildcard; random names below it are asked for. Yours can log who asks."""
    cluster_name: Name = "kubernetes.default.svc.cluster.local"
    """A Service that the cluster's resolver must know."""
    metadata: bool = True
    """Whether the machine's metadata service is read (from the machine's own network only)."""
    limit_seconds: Annotated[float, Field(ge=0.2, le=10)] = 1.5
    """How long one step waits. 1.5 sees one lost packet sent again; 4 tells a dead host from a dropped packet."""

    @model_validator(mode="after")
    def _is_outside(self) -> Self:
        for field, addresses in (
            ("publicAddresses", self.public_addresses),
            ("storageAddresses", self.storage_addresses),
        ):
            if inside := [address for address in addresses if not is_public(address)]:
                raise ValueError(
                    f"`{field}`: {inside[0]} is not public, and its silence says nothing about the internet: name an "
                    "address outside of every private network, or list it under `forbidden`"
                )
        return self

    @model_validator(mode="after")
    def _fits_into_an_answer(self) -> Self:
        if (calls := len(self._calls())) > MOST_CALLS:
            raise ValueError(f"{calls} calls, and an answer has room for {MOST_CALLS}: name fewer addresses or ports")
        if sum(":" not in address for address in self.public_addresses) < FEWEST_V4:
            raise ValueError(f"`publicAddresses`: at least {FEWEST_V4} of them must be IPv4 addresses")
        return self

    def questions(self, run: str, *, host_network: bool) -> str:
        """The questions of one pod as JSON. The answer must return `run`, so that no other pod's answer is accepted."""
        return json.dumps(
            {
                "run": run,
                "limit": self.limit_seconds,
                "controls": [["control", "tls", one.address, one.port] for one in self.controls],
                "targets": self._calls(),
                "names": self._names(),
                "resolvers": list(self.resolvers),
                "canary": self.canary,
                "knownName": KNOWN_NAME,
                "clusterName": self.cluster_name,
                "imds": self.metadata and host_network,
            },
            separators=(",", ":"),
        )

    def _calls(self) -> list[list[Any]]:
        v4 = [address for address in self.public_addresses if ":" not in address]
        return [
            *(["public", "tls", address, 443] for address in self.public_addresses),
            *(["public", "tcp", address, port] for address in v4 for port in self.tcp_ports),
            *(["public", "udp", address, port] for address in self.public_addresses for port in self.udp_ports),
            *(["storage", "tls", address, 443] for address in self.storage_addresses),
            *(["proxy", "proxy", one.address, one.port] for one in self.proxies),
            *(["forbidden", "tcp", one.address, one.port] for one in self.forbidden),
            *(["wireserver", "http", AZURE_DNS, port] for port in WIRESERVER_PORTS),
            # DNS over TCP: reported, but no path to the host's channel.
            ["azureDns", "tcp", AZURE_DNS, 53],
            ["metadata", "tcp", METADATA, 80],
        ]

    def _names(self) -> list[list[Any]]:
        return [
            *(["public", name, 443] for name in self.public_names),
            *(["storage", name, 443] for name in self.storage_names),
        ]

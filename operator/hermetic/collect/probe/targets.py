"""The targets of the probe, with their defaults.

Every key of `Targets` can be set by the customer; what is set replaces the default as a whole. What is sent anywhere is
fixed and carries no data: a TCP handshake, a TLS ClientHello, a DNS question for a random name below the canary, an NTP
or STUN request, a QUIC packet and an IKE header of versions that do not exist, an empty WireGuard handshake, and at the
host's own channel a GET of its versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from hermetic.api.ip_ranges import is_public

# IANA service names and ports: FTP, SMTP, submission, DNS over TLS, IMAPS, MS SQL, Azure's KMS, MQTT, MySQL, RDP,
# PostgreSQL, AMQPS, the Kubernetes API, HTTP and HTTPS alternatives, Kafka.
SERVICE_TCP_PORTS = (21, 25, 587, 853, 993, 1433, 1688, 8883, 3306, 3389, 5432, 5671, 6443, 8080, 8443, 9093)
# IKE and its NAT traversal (RFC 7296), WireGuard, STUN (RFC 8489), NTP (RFC 5905), QUIC (RFC 9000).
UDP_PROTOCOL_PORTS = (500, 4500, 51820, 3478, 123, 443)
_LOWEST_UNLISTED, _PORT_COUNT = 1024, 65536

AZURE_DNS = "168.63.129.16"
METADATA = "169.254.169.254"

# Addresses of several kinds and owners, which block lists do not hold together; each as its owner publishes it. A list
# that the other targets leave too little room for is shortened from its end.
PUBLIC_ADDRESSES = (
    "1.1.1.1",  # resolver: developers.cloudflare.com/1.1.1.1/ip-addresses
    "13.107.6.152",  # Microsoft 365: learn.microsoft.com/microsoft-365/enterprise/urls-and-ip-address-ranges, id 1
    "185.199.108.153",  # GitHub Pages: docs.github.com, Managing a custom domain for your GitHub Pages site
    "2606:4700:4700::1111",  # resolver, as 1.1.1.1
    "129.6.15.28",  # time-a-g.nist.gov, NTP and no TLS: tf.nist.gov/tf-cgi/servers.cgi
    "76.76.21.21",  # edge of a CDN: vercel.com/docs/domains/set-up-custom-domain
    "2620:1ec:4::152",  # Microsoft 365, as 13.107.6.152
    "8.8.8.8",  # resolver: developers.google.com/speed/public-dns/docs/using
    "9.9.9.9",  # resolver: quad9.net/service/service-addresses-and-features
)
TCP_PORTS = (80, 22, 53, 49152)
UDP_PORTS = (53, 123, 443)
# Microsoft Entra, Azure Resource Manager and the registry of Microsoft's images.
PUBLIC_NAMES = ("login.microsoftonline.com", "management.azure.com", "mcr.microsoft.com")
# Reserved for ever, and it resolves (RFC 2606, RFC 6761): a resolver that denies it has no access to public DNS.
KNOWN_NAME = "example.com"
WIRESERVER_PORTS = (80, 32526)
FEWEST_V4 = 3
MOST_CALLS = 96
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

    public_addresses: Annotated[tuple[Address, ...], Field(max_length=10)] = PUBLIC_ADDRESSES
    """Public addresses of different owners and kinds, most of them with a TLS service on 443."""
    tcp_ports: Annotated[tuple[Port, ...], Field(max_length=8)] = TCP_PORTS
    """Ports called on each public address beside 443, IPv4 and IPv6 alike. A round adds one of its own to each."""
    udp_ports: Annotated[tuple[Port, ...], Field(max_length=4)] = UDP_PORTS
    """UDP ports called on each public address. A round adds the port of another protocol to each."""
    vary_ports: bool = True
    """Whether a round adds ports of its own. False for networks that raise an alarm at every port that is new."""
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
        if sum(":" not in address for address in self.called_addresses) < FEWEST_V4:
            raise ValueError(f"`publicAddresses`: at least {FEWEST_V4} of them must be IPv4 addresses")
        return self

    def questions(self, run: str, *, host_network: bool) -> str:
        """The questions of one pod as JSON. The answer must return `run`, so that no other pod's answer is accepted.

        `run` is ROUND/JOB: all pods of a round call the same targets.
        """
        return json.dumps(
            {
                "run": run,
                "limit": self.limit_seconds,
                "controls": [["control", "tls", control.address, control.port] for control in self.controls],
                "targets": [*self._calls(), *self._round_calls(run.partition("/")[0])],
                "names": self._names(),
                "resolvers": list(self.resolvers),
                "canary": self.canary,
                "knownName": KNOWN_NAME,
                "clusterName": self.cluster_name,
                "imds": self.metadata and host_network,
            },
            separators=(",", ":"),
        )

    @property
    def called_addresses(self) -> tuple[str, ...]:
        """The public addresses: those that were set, or as many of the default ones as fit into an answer."""
        if "public_addresses" in self.model_fields_set:
            return self.public_addresses
        room = MOST_CALLS - len(self._further_calls())
        return self.public_addresses[: room // (1 + len(self.tcp_ports) + len(self.udp_ports))]

    def _calls(self) -> list[list[Any]]:
        addresses = self.called_addresses
        return [
            *(["public", "tls", address, 443] for address in addresses),
            *(["public", "tcp", address, port] for address in addresses for port in self.tcp_ports),
            *(["public", "udp", address, port] for address in addresses for port in self.udp_ports),
            *self._further_calls(),
        ]

    def _round_calls(self, round_id: str) -> list[list[Any]]:
        room = MOST_CALLS - len(self._calls()) if self.vary_ports else 0
        return round_calls(round_id, self.called_addresses, self.tcp_ports, self.udp_ports, room)

    def _further_calls(self) -> list[list[Any]]:
        return [
            *(["storage", "tls", address, 443] for address in self.storage_addresses),
            *(["proxy", kind, proxy.address, proxy.port] for proxy in self.proxies for kind in self._proxy_kinds()),
            *(["forbidden", "tcp", target.address, target.port] for target in self.forbidden),
            *(["wireserver", "http", AZURE_DNS, port] for port in WIRESERVER_PORTS),
            # DNS over TCP: reported, but no path to the host's channel.
            ["azureDns", "tcp", AZURE_DNS, 53],
            ["metadata", "tcp", METADATA, 80],
        ]

    def _proxy_kinds(self) -> list[str]:
        """A proxy may tunnel to storage alone, forward without a tunnel, or speak SOCKS5."""
        return ["proxy", *(f"proxy={name}" for name in self.storage_names[:1]), "forward", "socks"]

    def _names(self) -> list[list[Any]]:
        return [
            *(["public", name, 443] for name in self.public_names),
            *(["storage", name, 443] for name in self.storage_names),
        ]


def round_calls(
    round_id: str, addresses: Sequence[str], tcp_ports: Sequence[int], udp_ports: Sequence[int], room: int
) -> list[list[Any]]:
    """At most `room` targets [ROLE, KIND, ADDRESS, PORT]; `tcp_ports` and `udp_ports` are called anyway.

    Where the room does not suffice for all addresses, the round decides which one comes first.
    """
    protocols = [port for port in UDP_PROTOCOL_PORTS if port not in udp_ports]
    services = [port for port in SERVICE_TCP_PORTS if port not in tcp_ports]
    start = _number(round_id)
    calls: list[list[Any]] = []
    for position in range(len(addresses)):
        address = addresses[(start + position) % len(addresses)]
        if (position + start) % 2 and services:
            port = services[(start // 2 + position) % len(services)]
        else:
            port = _unlisted_port(f"{round_id} {address}", tcp_ports)
        calls.append(["public", "tcp", address, port])
        if protocols:
            calls.append(["public", "udp", address, protocols[(start // 3 + position) % len(protocols)]])
    return calls[: max(room, 0)]


def _unlisted_port(seed: str, listed: Sequence[int]) -> int:
    port = _LOWEST_UNLISTED + _number(seed) % (_PORT_COUNT - _LOWEST_UNLISTED)
    while port in listed or port == 443:
        port = _LOWEST_UNLISTED + (port + 1) % (_PORT_COUNT - _LOWEST_UNLISTED)
    return port


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

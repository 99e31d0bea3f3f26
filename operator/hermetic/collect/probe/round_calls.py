"""The calls of a round that differ from round to round: an unlisted TCP port and a UDP protocol at each address.

A network that is open for some ports alone is not seen by a fixed list of ports. The calls follow from the id of the
round: two readers of a round agree on them, and the next round makes others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

# IANA service names and ports: FTP, SMTP, submission, DNS over TLS, IMAPS, MS SQL, Azure's KMS, MQTT, MySQL, RDP,
# PostgreSQL, AMQPS, the Kubernetes API, HTTP and HTTPS alternatives, Kafka.
SERVICE_TCP_PORTS = (21, 25, 587, 853, 993, 1433, 1688, 8883, 3306, 3389, 5432, 5671, 6443, 8080, 8443, 9093)
# IKE and its NAT traversal (RFC 7296), WireGuard, STUN (RFC 8489), NTP (RFC 5905), QUIC (RFC 9000).
UDP_PROTOCOL_PORTS = (500, 4500, 51820, 3478, 123, 443)
LOWEST_UNLISTED, PORT_COUNT = 1024, 65536


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
    port = LOWEST_UNLISTED + _number(seed) % (PORT_COUNT - LOWEST_UNLISTED)
    while port in listed or port == 443:
        port = LOWEST_UNLISTED + (port + 1) % (PORT_COUNT - LOWEST_UNLISTED)
    return port


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")

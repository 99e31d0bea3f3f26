"""Ports that objects name, and whether they are those of DNS alone: port 53 by UDP or TCP.

Azure's resolver answers there, at an address whose other ports are closed to pods (`ip_ranges.AZURE_HOST`). Ports by
name are those of a pod, and do not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from hermetic.audit.estate.resource import Part

_DNS = 53
_PROTOCOLS = frozenset({"TCP", "UDP"})
_NUMBERS = {"6": "TCP", "17": "UDP"}


class RulePort(Part):
    """A port of a rule: a number, or the name of a port. `protocol` absent: TCP; `end_port`: the last of a span."""

    port: int | str | None = None
    protocol: str | None = None
    end_port: int | None = None


class CiliumPorts(Part):
    """An item of `toPorts`; without ports, every port."""

    ports: list[RulePort] | None = None


class PortSpan(Part):
    start: int | None = None
    end: int | None = None
    protocol: str | None = None


class AdminPort(Part):
    """A port in v1alpha1 of the policies of administrators: one of the fields, or a name."""

    port_number: RulePort | None = None
    port_range: PortSpan | None = None


class AdminDestinationPort(Part):
    """A number, or a span."""

    number: int | None = None
    range: PortSpan | None = None


class AdminProtocolPorts(Part):
    destination_port: AdminDestinationPort | None = None


class AdminProtocol(Part):
    """An item of `protocols` in v1alpha2: one of the fields, or a port by name."""

    tcp: AdminProtocolPorts | None = None
    udp: AdminProtocolPorts | None = None


def is_dns(port: int | str | None, protocol: str | int | None = None, end_port: int | None = None) -> bool:
    """Whether a port is 53, alone, by a protocol that DNS uses; an absent protocol is TCP."""
    name = str(protocol or "TCP").upper()
    return str(port) == str(_DNS) and end_port in {None, _DNS} and _NUMBERS.get(name, name) in _PROTOCOLS


def kubernetes_ports(ports: Iterable[RulePort] | None) -> bool:
    """Of a rule of a NetworkPolicy: `ports` absent or empty is every port."""
    return _all(is_dns(port.port, port.protocol, port.end_port) for port in ports or ())


def cilium_ports(rules: Iterable[CiliumPorts] | None) -> bool:
    """Of `toPorts`; the protocol ANY is TCP, UDP and SCTP (cilium/cilium, pkg/policy/api/l4.go)."""
    ports = [port for rule in rules or () for port in rule.ports or (RulePort(),)]
    return _all(
        is_dns(port.port, None if port.protocol == "ANY" else port.protocol, port.end_port or None) for port in ports
    )


def calico_ports(ports: Iterable[int | str] | None, protocol: str | int | None) -> bool:
    """Of a destination: numbers, ranges as "53:53", names (projectcalico/api, pkg/lib/numorstring).

    Ports count only with a protocol, which Calico requires.
    """
    return _all(str(port) in {"53", "53:53"} and is_dns(_DNS, protocol) for port in ports or ())


def admin_ports(ports: Iterable[AdminPort] | None, protocols: Iterable[AdminProtocol] | None) -> bool:
    """Of a policy of administrators: `ports` of v1alpha1, `protocols` of v1alpha2 (network-policy-api, apis)."""
    return _all((*map(_is_admin_port, ports or ()), *map(_is_admin_protocol, protocols or ())))


def _is_admin_port(port: AdminPort) -> bool:
    if port.port_number is not None:
        return is_dns(port.port_number.port, port.port_number.protocol)
    span = port.port_range or PortSpan()
    return span.end == _DNS and is_dns(span.start, span.protocol)


def _is_admin_protocol(protocol: AdminProtocol) -> bool:
    ports = [transport.destination_port for transport in (protocol.tcp, protocol.udp) if transport is not None]
    return _all(port is not None and _is_dns_destination(port) for port in ports)


def _is_dns_destination(port: AdminDestinationPort) -> bool:
    span = port.range
    return is_dns(port.number) if span is None else span.end == _DNS and is_dns(span.start)


def _all(ports: Iterable[bool]) -> bool:
    """Whether there are ports, and each is one of DNS."""
    answers = tuple(ports)
    return bool(answers) and all(answers)

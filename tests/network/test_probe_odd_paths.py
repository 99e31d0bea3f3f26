"""Paths that are neither open nor closed: a portal that answers for every address, and links that lose large packets.

Such a path lets something through, so none of it may be read as isolation. RFC 8952 describes captive portals;
RFC 4459, section 3.2, describes routers that drop large packets without an ICMP message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from hermetic.audit.estate.probe.readings import Reading
from hermetic.audit.estate.probe.runs import ProbeRun
from tests.network.network_namespaces import FAR, NetworkLayout

PORTAL = {4: "198.51.100.1", 6: "[2001:db8:ff::1]"}
NO_HOST = {4: "198.51.100.200", 6: "2001:db8:ff::ffff"}
SERVER = {4: "198.51.100.7", 6: "2001:db8:ff::7"}
LARGE = 700
"""Bytes of an IP packet: above every packet of a TCP handshake, below one that carries a certificate."""
Ask = Callable[..., ProbeRun]
FAMILIES = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@contextmanager
def portal(network: NetworkLayout, family: int) -> Iterator[None]:
    """A router that sends every connection to its portal, and drops everything else."""
    ip = "ip" if family == 4 else "ip6"
    rule = f'iifname "down0" tcp dport 443 dnat to {PORTAL[family]}'
    chain = f"chain pre {{\ntype nat hook prerouting priority -100;\n{rule}\n}}"
    network.router.run("nft", "-f", "-", stdin=f"table {ip} portal {{\n{chain}\n}}\n")
    try:
        with network.router.rules("forward", f"{ip} daddr {FAR[family]} meta l4proto udp drop"):
            yield
    finally:
        network.router.run("nft", "delete", "table", ip, "portal")


@FAMILIES
def test_portal_that_answers_for_every_address_is_read_as_a_way_out(
    network: NetworkLayout, ask: Ask, start_beyond: Callable[..., None], family: int
) -> None:
    start_beyond()
    with portal(network, family):
        run = ask(targets=[["public", "tls", NO_HOST[family], 443], ["public", "udp", NO_HOST[family], 53]], limit=2.0)

    assert [reply.reading for reply in run.report.replies] == [Reading.TLS_ANSWERED, Reading.DROPPED]


@FAMILIES
def test_path_that_loses_large_packets_is_read_as_a_way_out(
    network: NetworkLayout, ask: Ask, start_beyond: Callable[..., None], family: int
) -> None:
    start_beyond()
    with network.router.rules("forward", f'iifname "up1" meta length > {LARGE} drop'):
        run = ask(targets=[["public", "tls", SERVER[family], 443], ["public", "udp", SERVER[family], 53]], limit=1.5)

    assert [reply.reading for reply in run.report.replies] == [Reading.OPEN, Reading.ANSWERED]

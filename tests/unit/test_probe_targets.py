"""The targets of a round: what every round calls, what one round adds, and the bounds of both."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from hermetic.audit.estate.probe.address_owners import OWNERS, RESOLVER, owner_of
from hermetic.collect.probe.program.asking import REQUESTS, datagram
from hermetic.collect.probe.targets import (
    MOST_CALLS,
    PUBLIC_ADDRESSES,
    SERVICE_TCP_PORTS,
    UDP_PROTOCOL_PORTS,
    ProbeListener,
    Targets,
)

Call = tuple[str, str, str, int]
ROUNDS = [f"20261127t{hour:02}0000-0a1b2c3d" for hour in range(24)]
PROXIES = tuple(ProbeListener(address="10.1.0.9", port=port) for port in (1080, 3128, 8080, 8888))
FORBIDDEN = tuple(ProbeListener(address="10.2.0.9", port=port) for port in range(1, 9))
THREE = ("198.51.100.1", "192.0.2.1", "203.0.113.1")
EVERYTHING_ELSE = {
    "storage_names": ("stranger.blob.core.windows.net",),
    "storage_addresses": ("198.51.100.30", "198.51.100.31"),
    "proxies": PROXIES,
    "forbidden": FORBIDDEN,
}


def calls_of(targets: Targets, run: str, *, host_network: bool = False) -> list[Call]:
    questions = json.loads(targets.questions(run, host_network=host_network))
    return [tuple(row) for row in questions["targets"]]


def calls_of_round_alone(targets: Targets, round_id: str) -> list[Call]:
    """What the round adds to what every other round calls as well."""
    every_round = set.intersection(*(set(calls_of(targets, f"{other}/job")) for other in ROUNDS))
    return [call for call in calls_of(targets, f"{round_id}/job") if call not in every_round]


def test_default_addresses_have_several_owners_and_kinds_in_both_families():
    owners = [owner_of(address) for address in PUBLIC_ADDRESSES]

    assert all(owner is not None for owner in owners)
    assert {owner.owner for owner in owners if owner} >= {
        "Cloudflare",
        "Google",
        "Microsoft",
        "GitHub",
        "NIST",
        "Vercel",
    }
    for family in (":", "."):
        kinds = {
            owner.kind for owner, address in zip(owners, PUBLIC_ADDRESSES, strict=True) if owner and family in address
        }
        assert len(kinds - {RESOLVER}) >= 1
        assert RESOLVER in kinds


def test_a_round_without_varied_ports_calls_the_listed_ones_alone():
    calls = [set(calls_of(Targets(vary_ports=False), f"{run}/job")) for run in ROUNDS]

    assert calls.count(calls[0]) == len(ROUNDS)
    assert {port for _, kind, _, port in calls[0] if kind == "udp"} == {53, 123, 443}


def test_both_vantages_of_a_round_call_the_same_targets():
    run = ROUNDS[0]

    assert calls_of(Targets(), f"{run}/a") == calls_of(Targets(), f"{run}/b", host_network=True)


def test_each_round_adds_one_tcp_and_one_udp_call_to_every_address_and_the_next_round_others():
    previous: list[Call] = []
    for run in ROUNDS:
        calls = calls_of_round_alone(Targets(), run)
        assert Counter((kind, address) for _, kind, address, _ in calls) == Counter(
            (kind, address) for kind in ("tcp", "udp") for address in PUBLIC_ADDRESSES
        )
        assert calls != previous
        previous = calls


def test_a_day_of_rounds_tries_every_udp_protocol_and_new_tcp_ports_over_both_families():
    calls = [call for run in ROUNDS for call in calls_of_round_alone(Targets(), run)]

    for is_v6 in (False, True):
        ports = {
            kind: {port for _, called, address, port in calls if called == kind and (":" in address) is is_v6}
            for kind in ("tcp", "udp")
        }
        assert ports["udp"] == set(UDP_PROTOCOL_PORTS) - {123, 443}
        assert len(ports["tcp"] & set(SERVICE_TCP_PORTS)) >= 5
        assert len(ports["tcp"] - set(SERVICE_TCP_PORTS)) >= 20
        assert not ports["tcp"] & set(Targets().tcp_ports)


def test_ports_that_are_not_listed_are_added_by_rounds_instead():
    targets = Targets(public_addresses=THREE, udp_ports=())
    ports = {port for run in ROUNDS for _, kind, _, port in calls_of(targets, f"{run}/job") if kind == "udp"}

    assert ports == set(UDP_PROTOCOL_PORTS)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tcp_ports": tuple(range(1, 9)), "udp_ports": (1, 2, 3, 4)},
        EVERYTHING_ELSE,
        {"tcp_ports": tuple(range(1, 9)), "udp_ports": (1, 2, 3, 4), **EVERYTHING_ELSE},
        {"public_addresses": (*THREE, "198.51.100.2", "198.51.100.3", "2001:db8::1"), **EVERYTHING_ELSE},
    ],
    ids=["default", "most ports", "most of the rest", "most ports and most of the rest", "six addresses"],
)
@pytest.mark.parametrize("run", ROUNDS[:6])
def test_no_round_exceeds_the_limit_of_calls_and_default_addresses_yield_to_what_was_set(changes, run):
    targets = Targets(**changes)
    calls = calls_of(targets, f"{run}/job")

    assert len(calls) <= MOST_CALLS
    assert len(calls) == len(set(calls))
    called = {address for subject, kind, address, _ in calls if (subject, kind) == ("public", "tls")}
    assert sum("." in address for address in called) >= 3
    assert any(":" in address for address in called)
    assert {(address, port) for _, kind, address, port in calls if kind == "tcp"} >= {
        (address, port) for address in called for port in targets.tcp_ports
    }


def test_default_addresses_that_are_left_of_a_shortened_list_have_several_kinds():
    targets = Targets(tcp_ports=tuple(range(1, 9)), udp_ports=(1, 2, 3, 4), **EVERYTHING_ELSE)
    owners = {owner_of(address) for address in targets.called_addresses}

    assert len({owner.kind for owner in owners if owner}) >= 3


def test_with_little_room_rounds_take_turns_with_the_addresses():
    """13 calls at each of six addresses, 4 at Azure's own and 8 forbidden ones leave room for six calls of a round."""
    addresses = (*THREE, "198.51.100.2", "198.51.100.3", "2001:db8::1")
    targets = Targets(
        public_addresses=addresses, tcp_ports=tuple(range(1, 9)), udp_ports=(1, 2, 3, 4), forbidden=FORBIDDEN
    )
    calls = [calls_of_round_alone(targets, run) for run in ROUNDS]

    assert {len(added) for added in calls} == {6}
    assert {address for added in calls for _, _, address, _ in added} == set(addresses)


@pytest.mark.parametrize("port", UDP_PROTOCOL_PORTS)
def test_every_udp_protocol_has_a_request_without_data(port):
    assert port in REQUESTS
    assert datagram(port, "example.com") == datagram(port, "example.org")
    assert len(datagram(port, "example.com")) <= 1200


def test_the_ike_request_has_its_own_length_and_a_version_that_must_be_answered():
    """RFC 7296, 3.1: SPIs, next payload, version, exchange, flags, message id, length."""
    header = datagram(500, "")

    assert (len(header), int.from_bytes(header[24:28], "big"), header[17] >> 4) == (28, 28, 3)
    assert datagram(4500, "") == bytes(4) + header


def test_the_stun_request_is_a_binding_request_with_the_cookie():
    """RFC 8489, 5: type, length, magic cookie, transaction id."""
    request = datagram(3478, "")

    assert (request[:2], request[2:4], request[4:8], len(request)) == (b"\0\1", b"\0\0", b"\x21\x12\xa4\x42", 20)


def test_every_prefix_of_the_table_leads_to_its_own_owner():
    for owner in OWNERS:
        assert owner_of(owner.prefix.partition("/")[0]) == owner

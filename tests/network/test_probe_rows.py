"""Every way in which a packet does not arrive, told apart with real packets: what an audit says depends on it.

Node, router and far end are network namespaces. Each row calls 100 addresses at once on three ports (one that listens,
one that does not, and UDP 53), for IPv4 and IPv6, and none of the 300 readings may be wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass

import pytest

from hermetic.audit.estate.probe.readings import Reading
from hermetic.audit.estate.probe.runs import ProbeRun
from hermetic.audit.estate.probe.situations import Situation, situation
from testbed.processes import wait_until
from tests.network.conftest import ask_in
from tests.network.network_namespaces import (
    DEFAULTS,
    FAR,
    RUNS,
    UPSTREAM,
    NetworkLayout,
    absent_neighbour,
    far_address,
    namespace_without_links,
)

LISTENS, CLOSED, NAMES = 443, 444, 53
OUTWARDS = 'iifname "down0" oifname "up1"'
Change = Callable[[NetworkLayout], AbstractContextManager[None]]


@dataclass(frozen=True)
class Row:
    """What is done to the network, and what each of the three calls must then be read as."""

    situation: Situation
    listens: Reading
    closed: Reading
    udp: Reading
    change: Change = lambda _network: nullcontext()
    address: Callable[[int, int], str] = far_address
    limit: float = 0.4
    """Seconds. Where the far end's program must answer, it may have to wait for a CPU."""


def alike(found: Situation, reading: Reading, change: Change, limit: float = 0.4) -> Row:
    return Row(found, reading, reading, reading, change, limit=limit)


def default_is(kind: str) -> Change:
    @contextmanager
    def change(network: NetworkLayout) -> Iterator[None]:
        with network.node.without(*DEFAULTS), network.node.with_(f"{kind} default", f"-6 {kind} default"):
            yield

    return change


def router(*rules: str) -> Change:
    return lambda network: network.router.rules("forward", *(f"{OUTWARDS} {rule}" for rule in rules))


def on_the_node(verdict: str) -> Change:
    return lambda network: network.node.rules("output", f"ip daddr {FAR[4]} {verdict}", f"ip6 daddr {FAR[6]} {verdict}")


@contextmanager
def no_upstream(network: NetworkLayout) -> Iterator[None]:
    """A router that knows no way says so a few times a second to each sender: each far address gets one of its own.

    Two processors at once count that wrong now and then, so a call may have to be repeated: hence the long limit.
    """
    senders = [f"203.0.113.{number + 2}" for number in range(1, RUNS + 1)]
    network.node.links("".join(f"address add {sender}/32 dev up0\n" for sender in senders))
    pairs = ", ".join(f"{far_address(4, n)} : {sender}" for n, sender in enumerate(senders, start=1))
    chain = f"chain out {{\ntype nat hook postrouting priority 100;\nsnat ip to ip daddr map {{ {pairs} }}\n}}"
    network.node.run("nft", "-f", "-", stdin=f"table ip many {{\n{chain}\n}}\n")
    try:
        with network.router.without(*UPSTREAM):
            yield
    finally:
        network.node.run("nft", "delete", "table", "ip", "many")
        network.node.links("".join(f"address del {sender}/32 dev up0\n" for sender in senders))


ROWS = {
    "no default route": alike(Situation.NO_ROUTE, Reading.NO_ROUTE, lambda network: network.node.without(*DEFAULTS)),
    "route, open": Row(Situation.OPEN, Reading.OPEN, Reading.RESET, Reading.ANSWERED, limit=4.0),
    "router drops": alike(Situation.DROPPED, Reading.DROPPED, router("drop")),
    "router rejects": alike(Situation.REJECTED, Reading.REJECTED, router("reject")),
    "router rejects, administratively prohibited": alike(
        Situation.FORBIDDEN, Reading.FORBIDDEN, router("reject with icmpx admin-prohibited")
    ),
    "router resets TCP": Row(
        Situation.ONLY_TCP_RESET,
        Reading.RESET,
        Reading.RESET,
        Reading.ANSWERED,
        router("meta l4proto tcp reject with tcp reset"),
        limit=4.0,
    ),
    "node drops": Row(
        Situation.LOCAL_DROP, Reading.DROPPED, Reading.DROPPED, Reading.LOCAL_FIREWALL, on_the_node("drop")
    ),
    "node rejects": alike(Situation.LOCAL_REJECT, Reading.LOCAL_FIREWALL, on_the_node("reject")),
    "blackhole route": alike(Situation.BLACKHOLE, Reading.BLACKHOLE, default_is("blackhole")),
    "unreachable route": alike(Situation.UNREACHABLE, Reading.UNREACHABLE, default_is("unreachable")),
    "prohibit route": alike(Situation.PROHIBITED, Reading.PROHIBITED, default_is("prohibit")),
    "router without upstream": alike(Situation.NO_UPSTREAM, Reading.NO_UPSTREAM, no_upstream, limit=5.0),
    "only UDP 53 dropped": Row(
        Situation.ONLY_UDP_DROPPED, Reading.OPEN, Reading.RESET, Reading.DROPPED, router("udp dport 53 drop")
    ),
    "dead host on a live subnet": Row(
        Situation.DEAD_HOST,
        Reading.DEAD_HOST,
        Reading.DEAD_HOST,
        Reading.DEAD_HOST,
        address=absent_neighbour,
        limit=8.0,
    ),
}


@pytest.fixture(scope="module", autouse=True)
def open_network(start_beyond, ask):
    start_beyond()
    open_targets = [["public", "tcp", far_address(family, 1), LISTENS] for family in (4, 6)]
    # neighbours learn of one another at the first packet, and 300 at once are more than wait for that
    wait_until(
        "open network",
        lambda: {reply.reading for reply in ask(targets=open_targets).report.replies} == {Reading.OPEN},
        (),
    )


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", ROWS)
def test_every_row_is_read_as_what_it_is(network, ask, name, family):
    row = ROWS[name]
    addresses = [row.address(family, number) for number in range(1, RUNS + 1)]

    with row.change(network):
        run = ask(targets=[call for address in addresses for call in calls(address)], limit=row.limit)

    expected = {LISTENS: row.listens, CLOSED: row.closed, NAMES: row.udp}
    wrong = Counter(
        f"{reply.target.port} read as {reply.reading}: {reply.raw.partition('/')[0]}"
        for reply in run.report.replies
        if reply.reading is not expected[reply.target.port]
    )
    assert not wrong
    assert Counter(by_address(run)) == {row.situation: RUNS}


def test_a_row_has_a_name_of_its_own():
    assert len({row.situation for row in ROWS.values()}) == len(ROWS)


def calls(address: str) -> list[list[object]]:
    return [
        ["public", "tcp", address, LISTENS],
        ["public", "tcp", address, CLOSED],
        ["public", "udp", address, NAMES],
    ]


def by_address(run: ProbeRun) -> list[Situation]:
    replies = run.report.replies
    return [situation(replies[start : start + 3]) for start in range(0, len(replies), 3)]


@pytest.mark.usefixtures("network")
def test_a_room_without_ipv6_has_no_way_to_it_and_says_so():
    with namespace_without_links() as namespace:
        run = ask_in(namespace, targets=[*calls("2001:db8:ff::1"), *calls("198.51.100.1")])

    readings = [reply.reading for reply in run.report.replies]
    assert readings == [Reading.NO_FAMILY] * 3 + [Reading.NO_ROUTE] * 3
    assert run.report.v6_defaults == run.report.v6_addresses == ()
    assert not run.report.control_answered


def test_without_forwarding_errors_silence_is_silence_and_nothing_else(network, ask):
    """A router that is not asked to say why must not change what is concluded."""
    with ExitStack() as stack:
        stack.enter_context(
            network.router.rules("forward", f"{OUTWARDS} limit rate 1/second reject", f"{OUTWARDS} drop")
        )
        run = ask(targets=[call for number in range(1, 11) for call in calls(far_address(4, number))])

    assert {reply.reading for reply in run.report.replies} == {Reading.REJECTED, Reading.DROPPED}
    assert set(by_address(run)) == {Situation.REJECTED, Situation.DROPPED}

"""The network situation between a pod and one address, from all attempts there.

A single attempt gives only its own result. Where TCP ends in silence and a datagram is refused by the kernel at once,
a firewall of the machine itself dropped both; where TCP is reset and a datagram is answered, only TCP is closed.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from hermetic.audit.estate.probe.readings import Reading, Reply


class Situation(StrEnum):
    """The situations that measurements with real packets distinguish."""

    OPEN = "open"
    ONLY_UDP_DROPPED = "open, but UDP is dropped"
    ONLY_TCP_RESET = "open, but TCP is reset"
    NO_ROUTE = "no route"
    BLACKHOLE = "blackhole route"
    UNREACHABLE = "unreachable route"
    PROHIBITED = "prohibited route"
    DROPPED = "dropped on the way"
    REJECTED = "rejected on the way"
    FORBIDDEN = "administratively prohibited on the way"
    NO_UPSTREAM = "no route beyond a router"
    LOCAL_DROP = "dropped by a local firewall"
    LOCAL_REJECT = "rejected by a local firewall"
    DEAD_HOST = "no such host"
    UNCLEAR = "unclear"


# The most specific first: routers rate-limit ICMP errors, so silence beside an error changes nothing.
_TELLING = {
    Reading.NO_ROUTE: Situation.NO_ROUTE,
    Reading.NO_FAMILY: Situation.NO_ROUTE,
    Reading.BLACKHOLE: Situation.BLACKHOLE,
    Reading.UNREACHABLE: Situation.UNREACHABLE,
    Reading.PROHIBITED: Situation.PROHIBITED,
    Reading.NO_UPSTREAM: Situation.NO_UPSTREAM,
    Reading.FORBIDDEN: Situation.FORBIDDEN,
    Reading.REJECTED: Situation.REJECTED,
    Reading.DEAD_HOST: Situation.DEAD_HOST,
    Reading.DROPPED: Situation.DROPPED,
}


def situation(replies: Iterable[Reply]) -> Situation:
    """The situation that all attempts at one address together show."""
    attempts = tuple(replies)
    tcp = {reply.reading for reply in attempts if reply.target.kind != "udp"}
    udp = {reply.reading for reply in attempts if reply.target.kind == "udp"}
    both = tcp | udp
    if not both or Reading.UNREADABLE in both:
        return Situation.UNCLEAR
    if any(reading.came_through for reading in both):
        return _open(tcp, udp)
    if Reading.LOCAL_FIREWALL in both:
        return Situation.LOCAL_DROP if Reading.DROPPED in tcp else Situation.LOCAL_REJECT
    if any(reading.was_refused for reading in both):
        return Situation.UNCLEAR
    return next(outcome for reading, outcome in _TELLING.items() if reading in both)


def _open(tcp: set[Reading], udp: set[Reading]) -> Situation:
    if not any(reading.came_through for reading in tcp) and tcp == {Reading.RESET}:
        return Situation.ONLY_TCP_RESET
    return Situation.ONLY_UDP_DROPPED if udp == {Reading.DROPPED} else Situation.OPEN

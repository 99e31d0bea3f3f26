"""The meaning of one connection attempt of the probe.

The codes are those of `hermetic.collect.probe.program`; their meanings were measured with real packets, row by row, and
tests/network measures them again. An errno alone leaves several causes open. The ICMP message behind it, which the
kernel keeps for the socket, decides most of them: by its sender and its code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class Reading(StrEnum):
    """The result of one attempt."""

    OPEN = "open"
    TLS_ANSWERED = "TLS answered"
    TLS_ALERT = "answered with a TLS alert"
    HTTP_ANSWERED = "HTTP answered"
    ANSWERED = "answered"
    DNS_ERROR = "answered with DNS that need not come from outside"
    PASSED_ON = "passed on by a proxy"
    WANTS_CREDENTIALS = "a proxy that wants credentials"
    PROXY_REFUSED = "refused by a proxy"
    PROXY_UNCLEAR = "an answer of a proxy that decides nothing"
    FAR_END_REFUSED = "refused by the far end"
    RESET = "reset"
    NO_ROUTE = "no route"
    BLACKHOLE = "blackhole route"
    UNREACHABLE = "unreachable route"
    PROHIBITED = "prohibited route"
    NO_FAMILY = "no such address family"
    LOCAL_FIREWALL = "local firewall"
    DROPPED = "dropped"
    REJECTED = "rejected on the way"
    FORBIDDEN = "administratively prohibited on the way"
    NO_UPSTREAM = "no route beyond a router"
    DEAD_HOST = "no such host"
    UNREADABLE = "unreadable"

    @property
    def came_through(self) -> bool:
        """A reply came from outside: the packet left, and one came back."""
        return self in _CAME_THROUGH

    @property
    def was_refused(self) -> bool:
        """Refused in the name of the target: by the far end, or by a firewall in its place; which one is unknown."""
        return self in {Reading.RESET, Reading.FAR_END_REFUSED}

    @property
    def was_held(self) -> bool:
        """Consistent with isolation."""
        return not (self.came_through or self.was_refused or self in {Reading.UNREADABLE, Reading.DNS_ERROR})


_CAME_THROUGH = frozenset(
    {Reading.OPEN, Reading.TLS_ANSWERED, Reading.TLS_ALERT, Reading.HTTP_ANSWERED, Reading.ANSWERED, Reading.PASSED_ON}
    | {Reading.WANTS_CREDENTIALS, Reading.PROXY_REFUSED, Reading.PROXY_UNCLEAR}
)
_ANSWER = re.compile(
    r"(?P<word>[osladtg]|p(?P<status>\d{1,3})|h\d{1,3}|x\w{1,64}"
    r"|e(?P<errno>\d{1,4})(:(?P<type>\d{1,3})\.(?P<code>\d{1,3})@(?P<offender>[0-9a-f.:]+|=))?)(/(?P<ms>\d{1,7}))?"
)
_WORDS = {"o": Reading.OPEN, "s": Reading.TLS_ANSWERED, "l": Reading.TLS_ALERT, "a": Reading.ANSWERED}
_WORDS |= {"d": Reading.DNS_ERROR, "t": Reading.DROPPED}
# asm-generic/errno.h: EPERM, EACCES, EINVAL, EAFNOSUPPORT, ENETUNREACH, ECONNRESET, ETIMEDOUT, ECONNREFUSED,
# EHOSTUNREACH
_BY_ERRNO = {
    1: Reading.LOCAL_FIREWALL,
    13: Reading.PROHIBITED,
    22: Reading.BLACKHOLE,
    97: Reading.NO_FAMILY,
    101: Reading.NO_ROUTE,
    104: Reading.RESET,
    110: Reading.DROPPED,
    111: Reading.RESET,
    113: Reading.UNREACHABLE,
}
# RFC 792 and 1812 (type 3), RFC 4443 (type 1)
_V4_CODES = {0: Reading.NO_UPSTREAM, 1: Reading.DEAD_HOST, 9: Reading.FORBIDDEN, 10: Reading.FORBIDDEN} | {
    13: Reading.FORBIDDEN
}
_V6_CODES = {0: Reading.NO_UPSTREAM, 1: Reading.FORBIDDEN, 3: Reading.DEAD_HOST, 5: Reading.FORBIDDEN} | {
    6: Reading.FORBIDDEN
}
_HOST_UNREACHABLE = {(3, 1), (1, 3)}
# EADDRNOTAVAIL: IPv6 is switched off; for IPv4 it could also mean that all ports are in use.
NO_ADDRESS = 99
NEIGHBOUR_WAIT_MS = 900
"""Milliseconds: an unanswered ARP or neighbour request fails after seconds; a firewall refuses at once."""


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """One address that was tried.

    `role` says what the address stands for (public, storage, proxy, wireserver, ...), `kind` the protocol (tcp, tls,
    http, proxy, proxy=NAME, forward, socks, udp). For tls a service is known to listen there.
    """

    role: str
    kind: str
    address: str
    port: int

    def __str__(self) -> str:
        shown = f"[{self.address}]" if ":" in self.address else self.address
        return f"{shown}:{self.port}/{'udp' if self.kind == 'udp' else 'tcp'}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The result for a target; `offender` is the router or host whose ICMP message ended the attempt, or ""."""

    target: ProbeTarget
    reading: Reading
    offender: str = ""
    raw: str = ""


def reply(target: ProbeTarget, raw: object) -> Reply:
    """Parse one answer; text of another form is UNREADABLE. Never raises."""
    match = _ANSWER.fullmatch(raw) if isinstance(raw, str) else None
    if match is None:
        return Reply(target, Reading.UNREADABLE, raw=str(raw)[:80])
    offender = match["offender"] or ""
    return Reply(target, _reading(match, target), "" if offender == "=" else offender, match[0])


def _reading(match: re.Match[str], target: ProbeTarget) -> Reading:
    word = match["word"]
    if match["status"]:
        return _by_proxy_status(int(match["status"]), target)
    if word.startswith("h"):
        return Reading.HTTP_ANSWERED
    if match["errno"] is None:
        return _WORDS.get(word, Reading.UNREADABLE)
    errno, waited = int(match["errno"]), int(match["ms"] or 0)
    if errno == NO_ADDRESS and ":" in target.address:
        return Reading.NO_FAMILY
    if match["offender"] is None:
        unreachable = errno == 113 and waited >= NEIGHBOUR_WAIT_MS
        return Reading.DEAD_HOST if unreachable else _BY_ERRNO.get(errno, Reading.UNREADABLE)
    return _by_icmp(match, target, waited)


def _by_proxy_status(status: int, target: ProbeTarget) -> Reading:
    """RFC 9110: 403 refuses, 407 asks for credentials, 404 to a forwarded request was written at the far end."""
    if 200 <= status < 300 or (target.kind == "forward" and status == 404):
        return Reading.PASSED_ON
    return {403: Reading.PROXY_REFUSED, 407: Reading.WANTS_CREDENTIALS}.get(status, Reading.PROXY_UNCLEAR)


def _by_icmp(match: re.Match[str], target: ProbeTarget, waited: int) -> Reading:
    kind, code, offender = int(match["type"]), int(match["code"]), match["offender"]
    if offender == target.address:
        return Reading.FAR_END_REFUSED
    if offender == "=":
        absent = (kind, code) in _HOST_UNREACHABLE and waited >= NEIGHBOUR_WAIT_MS
        return Reading.DEAD_HOST if absent else Reading.LOCAL_FIREWALL
    codes = _V6_CODES if ":" in offender else _V4_CODES
    return codes.get(code, Reading.REJECTED) if kind in {1, 3} else Reading.REJECTED

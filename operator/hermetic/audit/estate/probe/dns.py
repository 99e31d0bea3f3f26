"""The meaning of one DNS answer of the probe."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hermetic.api.ip_ranges import is_address, is_public
from hermetic.audit.estate.probe.readings import ProbeTarget, reply


class DnsReading(StrEnum):
    """The behaviour of a resolver for one question."""

    PUBLIC_ADDRESS = "answered with a public address"
    PRIVATE_ADDRESS = "answered with a private address"
    PUBLIC_DENIAL = "denied by the public zone itself"
    DENIED = "denied by the resolver"
    SILENT = "no answer"
    UNCLEAR = "an answer that decides nothing"

    @property
    def went_out(self) -> bool:
        """The question reached public name servers: the owner of a zone can read data that queries encode."""
        return self in {DnsReading.PUBLIC_ADDRESS, DnsReading.PUBLIC_DENIAL}


@dataclass(frozen=True, slots=True)
class DnsReply:
    """The answer of `server`; `contents` are addresses and names, `raw` the probe's own text."""

    server: str
    reading: DnsReading
    contents: tuple[str, ...] = ()
    raw: str = ""

    @property
    def found_something(self) -> bool:
        """Whether the name exists according to this resolver: addresses, or names that it is an alias of."""
        return self.raw.startswith("r0:") and bool(self.contents) and self.reading is not DnsReading.DENIED


_RESPONSE = re.compile(r"r(?P<code>\d{1,2}):(?P<contents>[^;|/]{0,400});(?P<zone>[^;|/]{0,300})")
# What a DNS security policy of Azure answers for a name that it blocks; with NXDOMAIN if configured. "invalid" is
# reserved (RFC 2606), so that no public zone uses it.
_BLOCKED_BY_POLICY = "blockpolicy.azuredns.invalid"
_NO_ERROR, _SERVER_FAILURE, _NO_SUCH_NAME, _REFUSED = 0, 2, 3, 5


def dns_reply(server: str, domain: str, raw: object) -> DnsReply:
    """Parse the answer of a resolver about a random name below a domain. Never raises."""
    text = raw.partition("/")[0] if isinstance(raw, str) else ""
    match = _RESPONSE.fullmatch(text)
    if match is None:
        return DnsReply(server, _without_response(server, raw), raw=str(raw)[:80])
    contents = tuple(match["contents"].split(",")) if match["contents"] else ()
    return DnsReply(server, _reading(int(match["code"]), contents, match["zone"], domain), contents, text)


def _without_response(server: str, raw: object) -> DnsReading:
    reading = reply(ProbeTarget("dns", "udp", server, 53), raw).reading
    # A port that is closed, or that a firewall resets, is no egress path either.
    return DnsReading.SILENT if reading.was_held or reading.was_refused else DnsReading.UNCLEAR


def _reading(code: int, contents: tuple[str, ...], zone: str, domain: str) -> DnsReading:
    addresses = [content for content in contents if is_address(content)]
    if code == _NO_ERROR and addresses:
        return DnsReading.PUBLIC_ADDRESS if any(map(is_public, addresses)) else DnsReading.PRIVATE_ADDRESS
    if (code in {_SERVER_FAILURE, _REFUSED} and not contents) or _is_blocked_by_policy(code, contents):
        return DnsReading.DENIED
    if contents or code not in {_NO_ERROR, _NO_SUCH_NAME}:
        return DnsReading.UNCLEAR
    if code == _NO_SUCH_NAME and not _is_public_zone_of(domain, zone):
        return DnsReading.DENIED
    return DnsReading.PUBLIC_DENIAL if _is_public_zone_of(domain, zone) else DnsReading.UNCLEAR


def _is_blocked_by_policy(code: int, contents: tuple[str, ...]) -> bool:
    named = {content.lower().rstrip(".") for content in contents}
    return code in {_NO_ERROR, _NO_SUCH_NAME} and named == {_BLOCKED_BY_POLICY}


def _is_public_zone_of(domain: str, zone: str) -> bool:
    """Whether the zone of the SOA record, the authority of the denial, is one that only public servers have.

    The root and top-level domains are excluded: a private root may deny for them. Resolvers that omit the record are
    detected by the other question, for a name that certainly exists.
    """
    signed, queried = zone.lower().strip("."), domain.lower().strip(".")
    return "." in signed and f".{queried}".endswith(f".{signed}")

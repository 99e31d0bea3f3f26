"""DNS queries, encoded and decoded here: the system's resolver hides which server answered, and its records."""

from __future__ import annotations

import os
import socket
import struct

from hermetic.collect.probe.program.calling import ask, is_address, tls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermetic.collect.probe.program.racing import Steps

A, CNAME, SOA, AAAA = 1, 5, 6, 28


def resolve(server: str, name: str, kind: int, limit: float) -> Steps:
    """Ask one server for one type of record."""
    asked = query(name, kind)
    return ask(server, 53, asked, limit, lambda message: answer(asked, message))


def named(name: str, port: int, servers: Sequence[str], limit: float) -> Steps:
    """`DNS answer|TLS answer`: asks the pod's resolvers until one returns addresses, then connects to the first."""
    outcome = "t"
    for server, kind in [(server, kind) for server in servers for kind in (A, AAAA)]:
        outcome = yield from resolve(server, name, kind, limit)
        addresses = [found for found in outcome[3:].split(";")[0].split(",") if is_address(found)]
        if outcome.startswith("r0:") and addresses:
            called = yield from tls(addresses[0], port, limit, name)
            return f"{outcome}|{called}"
    return outcome


def random_label(domain: str) -> str:
    """A random label, so that no cache has the answer."""
    return f"hermetic-{os.urandom(6).hex()}.{domain}"


def query(name: str, kind: int) -> bytes:
    """One query with recursion desired and a random id."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.strip(".").split("."))
    return os.urandom(2) + struct.pack("!HHHHH", 0x0100, 1, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1)


def answer(asked: bytes, message: bytes) -> str:
    """`r<code>:<addresses and names>;<zone>`, or `g` for a datagram that does not answer this query."""
    try:
        if message[:2] != asked[:2] or not message[2] & 0x80:
            return "g"
        found = list(records(message))
    except (IndexError, ValueError, struct.error, OSError):
        return "g"
    addresses = [content for kind, _, content in found if kind in (A, AAAA)]
    aliases = [content for kind, _, content in found if kind == CNAME]
    # well-known names have three aliases and more: addresses must not be the part that is left out
    contents = (addresses + aliases)[:3]
    zones = [owner for kind, owner, _ in found if kind == SOA][:1]
    return f"r{message[3] & 15}:{','.join(contents)};{''.join(zones)}"


def public_denial(asked: bytes, message: bytes, domain: str) -> bool:
    """Whether the denial of a random name is authoritative: by a public zone above the name, with two labels or more.

    REFUSED, SERVFAIL, and an address for a name that does not exist, come from resolvers inside a network too.
    """
    parsed = answer(asked, message)
    contents, _, zone = parsed.partition(":")[2].partition(";")
    zone = zone.lower().strip(".")
    return parsed[:3] in ("r0:", "r3:") and not contents and "." in zone and f".{domain}".lower().endswith(f".{zone}")


def records(message: bytes) -> Iterator[tuple[int, str, str]]:
    """(type, owner, content) of every record of the answer and authority sections that matters here."""
    questions, answers, authorities = struct.unpack_from("!HHH", message, 4)
    at = 12
    for _ in range(questions):
        at = name_at(message, at)[1] + 4
    for _ in range(answers + authorities):
        owner, at = name_at(message, at)
        kind, _, _, size = struct.unpack_from("!HHIH", message, at)
        at += 10
        if kind in (A, AAAA):
            family = socket.AF_INET if kind == A else socket.AF_INET6
            yield kind, owner, socket.inet_ntop(family, message[at : at + size])
        elif kind in (CNAME, SOA):
            yield kind, owner, name_at(message, at)[0]
        at += size


def name_at(message: bytes, at: int) -> tuple[str, int]:
    """The name at an offset, and the offset after it."""
    labels: list[str] = []
    behind = 0
    for _ in range(128):
        size = message[at]
        if size >= 192:
            behind = behind or at + 2
            at = (size & 63) << 8 | message[at + 1]
            continue
        if not size:
            return ".".join(labels) or ".", behind or at + 1
        labels.append(printable(message[at + 1 : at + 1 + size]))
        at += 1 + size
    raise ValueError("a name that points at itself")


def printable(label: bytes) -> str:
    """A label for our answer: without its separators, and shortened."""
    kept = "".join(chr(byte) if chr(byte).isalnum() or chr(byte) in "-_" else "?" for byte in label if byte < 128)
    return kept[:40]

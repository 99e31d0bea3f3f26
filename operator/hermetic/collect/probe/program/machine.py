"""Settings of the kernel and the resolver. What cannot be read is None, never empty."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# linux/route.h: a reject route
REJECT = 0x200


def facts() -> dict[str, Any]:
    """Default routes as `gateway device`, global IPv6 addresses, name servers."""
    without_v6 = not Path("/proc/net/if_inet6").exists() and Path("/proc/net/route").exists()
    return {
        "v4": parsed("/proc/net/route", v4_defaults),
        "v6": [] if without_v6 else parsed("/proc/net/ipv6_route", v6_defaults),
        "v6Addresses": [] if without_v6 else parsed("/proc/net/if_inet6", v6_globals),
        "nameservers": parsed("/etc/resolv.conf", nameservers),
    }


def parsed(path: str, read: Callable[[str], Any]) -> Any:
    """The text of a file; None if it cannot be read."""
    try:
        return read(Path(path).read_text())
    except (OSError, ValueError, IndexError, struct.error):
        return None


def v4_defaults(table: str) -> list[str]:
    """Default routes of the main table, as /proc/net/route shows them: addresses in host byte order."""
    rows = [line.split() for line in table.splitlines()[1:]]
    return [
        f"{socket.inet_ntop(socket.AF_INET, struct.pack('=I', int(gateway, 16)))} {device}"
        for device, destination, gateway, flags, _, _, _, mask, *_ in rows
        if destination == mask == "00000000" and not int(flags, 16) & REJECT
    ][:2]


def v6_defaults(table: str) -> list[str]:
    """Default routes of every table; the kernel's unreachable route, on `lo`, is left out."""
    rows = [line.split() for line in table.splitlines()]
    return [
        f"{socket.inet_ntop(socket.AF_INET6, bytes.fromhex(gateway))} {device}"
        for destination, length, _, _, gateway, _, _, _, flags, device in rows
        if destination == "0" * 32 and length == "00" and not int(flags, 16) & REJECT
    ][:2]


def v6_globals(table: str) -> list[str]:
    """IPv6 addresses of global scope; two are enough to show that there are some."""
    rows = [line.split() for line in table.splitlines()]
    return [
        socket.inet_ntop(socket.AF_INET6, bytes.fromhex(address)) for address, _, _, scope, *_ in rows if scope == "00"
    ][:2]


def nameservers(configuration: str) -> list[str]:
    """The servers that the resolver asks, at most three (MAXNS)."""
    rows = [line.split() for line in configuration.splitlines()]
    return [row[1].split("%")[0] for row in rows if len(row) > 1 and row[0] == "nameserver"][:3]

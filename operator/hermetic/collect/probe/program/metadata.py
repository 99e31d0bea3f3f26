"""What the host says about the machine: Azure's instance metadata service, asked directly and never through a proxy."""

from __future__ import annotations

import http.client
import io
import json
from ipaddress import ip_address

from hermetic.collect.probe.program.calling import tcp
from hermetic.collect.probe.program.racing import READ

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from hermetic.collect.probe.program.racing import Steps

ADDRESS = "169.254.169.254"
PATHS = {
    "loadbalancer": "/metadata/loadbalancer?api-version=2020-10-01",
    "network": "/metadata/instance/network?api-version=2021-02-01",
    "compute": "/metadata/instance/compute?api-version=2021-02-01",
}
LARGEST_BYTES = 262144


def document(what: str, limit: float, into: list[Any]) -> Steps:
    """Request one document; its HTTP status and its summary are appended to `into`."""

    def further(sock: socket.socket) -> Steps:
        request = f"GET {PATHS[what]} HTTP/1.1\r\nHost: {ADDRESS}\r\nMetadata: true\r\nConnection: close\r\n\r\n"
        sock.send(request.encode())
        received = b""
        while len(received) < LARGEST_BYTES:
            yield sock, READ, limit
            more = sock.recv(65536)
            if not more:
                break
            received += more
        status, body = response(received)
        into[:] = [status, summary(what, body)]
        return "o"

    return tcp(ADDRESS, 80, limit, further)


class Received:
    """Received bytes in place of a socket, from which http.client reads a response."""

    def __init__(self, received: bytes) -> None:
        self.received = received

    def makefile(self, _mode: str) -> io.BytesIO:
        return io.BytesIO(self.received)


def response(received: bytes) -> tuple[int, Any]:
    """(status, JSON body); (0, None) for what is no HTTP, None for a body that is no JSON."""
    reading = http.client.HTTPResponse(Received(received))  # type: ignore[arg-type]  # makefile is all it calls
    try:
        reading.begin()
        return reading.status, json.loads(reading.read())
    except http.client.HTTPException:
        return 0, None
    except ValueError:
        return reading.status, None


def summary(what: str, body: Any) -> Any:
    """What matters of a document; None when it does not have the shape that it should have.

    `loadbalancer`: {"public": [address...], "more": count, "outboundRules": count}; `network`: [public address...];
    `compute`: the fields that name the machine. The first list holds private addresses too: where it is cut, what may
    be public is kept, and `more` counts what is not shown.
    """
    try:
        if what == "loadbalancer":
            found = body["loadbalancer"]
            public = sorted({text(entry["frontendIpAddress"]) for entry in found["publicIpAddresses"]}, key=is_private)
            rules = [text(entry["frontendIpAddress"]) for entry in found["outboundRules"]]
            return {"public": public[:4], "more": len(public[4:]), "outboundRules": len(rules)}
        if what == "network":
            entries = [text(one["publicIpAddress"]) for nic in body["interface"] for one in nic["ipv4"]["ipAddress"]]
            return [public for public in entries if public][:4] if entries else None
        return {key: text(body[key]) for key in ("subscriptionId", "resourceGroupName", "vmScaleSetName", "vmId")}
    except (LookupError, TypeError):
        return None


def is_private(address: str) -> bool:
    """Whether it is empty or a private address; anything that is no address counts as public."""
    try:
        return not address or not ip_address(address).is_global
    except ValueError:
        return False


def text(value: Any) -> str:
    """The value if it is text, cut to what a name may have; raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError
    return value[:128]

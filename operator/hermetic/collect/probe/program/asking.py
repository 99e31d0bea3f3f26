"""Tries every target once and writes one line with the answers."""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from pathlib import Path

from hermetic.collect.probe.program import machine, metadata
from hermetic.collect.probe.program.calling import (
    ask,
    connect_request,
    forward_request,
    http,
    is_address,
    proxy,
    socks,
    tcp,
    tls,
)
from hermetic.collect.probe.program.dns import A, named, public_denial, query, random_label, resolve
from hermetic.collect.probe.program.racing import race

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from hermetic.collect.probe.program.racing import Steps

QUESTIONS = "HERMETIC_PROBE"
MESSAGE_FILE = Path("/dev/termination-log")
MESSAGE_BYTES = 4096
PACKED = "z"
# An IKE header of major version 3, which a server should answer with the version that it supports (RFC 7296, 2.5).
IKE = b"hermetic" + bytes(8) + b"\x00\x30\x22\x08" + bytes(4) + (28).to_bytes(4, "big")
REQUESTS = {
    123: b"\x23" + bytes(47),
    # a reserved QUIC version: a server must answer with those that it supports (RFC 9000, 6.1)
    443: b"\xc0\x1a\x2a\x3a\x4a\x08hermetic\x08hermetic".ljust(1200, b"\0"),
    500: IKE,
    # four zero bytes tell IKE from ESP (RFC 3948, 2.2)
    4500: bytes(4) + IKE,
    # a STUN binding request without attributes (RFC 8489, 5)
    3478: b"\x00\x01\x00\x00\x21\x12\xa4\x42" + b"hermetic".ljust(12, b"\0"),
    # type and size of a WireGuard handshake; a server answers its own peers alone (wireguard.com/protocol)
    51820: b"\x01".ljust(148, b"\0"),
}


def call(target: Sequence[Any], limit: float, canary: str) -> Steps:
    """The attempt for a target, by its protocol."""
    what, kind, address, port = target
    if kind == "tls":
        return tls(address, port, limit)
    if kind == "http":
        return http(address, port, limit)
    if what == "proxy":
        return call_proxy(target, limit, canary)
    if kind == "udp":
        payload = datagram(port, canary)
        return ask(address, port, payload, limit, lambda message: udp_answer(port, payload, message, canary))
    return tcp(address, port, limit)


def call_proxy(target: Sequence[Any], limit: float, canary: str) -> Steps:
    """The attempt at a proxy: SOCKS5, a forwarded request, or a tunnel to the kind's name or the canary."""
    _, kind, address, port = target
    if kind == "socks":
        return socks(address, port, limit, canary)
    if kind == "forward":
        return proxy(address, port, limit, forward_request(canary))
    return proxy(address, port, limit, connect_request(kind.partition("=")[2] or canary))


def udp_answer(port: int, asked: bytes, message: bytes, canary: str) -> str:
    """`a`, or `d` for a DNS message that a resolver inside the network can have written as well."""
    return "d" if port == 53 and not public_denial(asked, message, canary) else "a"


def datagram(port: int, canary: str) -> bytes:
    """The datagram that the usual listener on a UDP port answers: a fixed request without any data of ours."""
    return query(random_label(canary), A) if port == 53 else REQUESTS.get(port, b"hermetic probe")


def controls(asked: dict[str, Any]) -> list[Steps]:
    """Attempts at what must be reachable, else no other timeout is evidence: as given, or the API server's Service."""
    limit, canary = asked["limit"], asked["canary"]
    if asked["controls"]:
        return [call(control, limit, canary) for control in asked["controls"]]
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
    if is_address(host):
        return [tls(host, port, limit)]
    return [named(host, port, machine.facts()["nameservers"] or [], limit)]


def answers(asked: dict[str, Any]) -> dict[str, Any]:
    """The result. The controls run first and again last: timeouts count if one of them answered before or after."""
    limit, canary = asked["limit"], asked["canary"]
    facts = machine.facts()
    own = facts["nameservers"] or []
    servers = [*own, *(one for one in asked["resolvers"] if one not in own)]
    documents: dict[str, list[Any]] = {what: [] for what in metadata.PATHS} if asked["imds"] else {}
    groups = {
        "targets": [call(target, limit, canary) for target in asked["targets"]],
        "names": [named(name, port, own, limit) for _, name, port in asked["names"]],
        "dns": [resolve(server, random_label(canary), A, limit) for server in servers],
        "known": [resolve(server, asked["knownName"], A, limit) for server in servers],
        "clusterName": [resolve(server, asked["clusterName"], A, limit) for server in own],
        "imds": [metadata.document(what, limit, into) for what, into in documents.items()],
    }
    before = race(controls(asked))
    outcomes = iter(race([steps for group in groups.values() for steps in group]))
    by_group = {name: [next(outcomes) for _ in group] for name, group in groups.items()}
    after = race(controls(asked))
    result = {"v": 1, "run": asked["run"], "controls": [before, after], **by_group}
    return {**result, "servers": servers, "metadata": documents, **facts}


def write_answer(result: dict[str, Any]) -> None:
    """Write the line to the log and the termination message; what exceeds the kubelet's limit is compressed."""
    line = json.dumps(result, separators=(",", ":"))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    message = (
        line if len(line) <= MESSAGE_BYTES else PACKED + base64.b64encode(zlib.compress(line.encode(), 9)).decode()
    )
    if len(message) > MESSAGE_BYTES:
        # a truncated result cannot be read: report that instead
        message = json.dumps({"v": 1, "run": result["run"], "tooLong": len(line)})
    if MESSAGE_FILE.exists():
        MESSAGE_FILE.write_text(message)


def main() -> None:
    """Read the questions from the environment."""
    write_answer(answers(json.loads(os.environ[QUESTIONS])))

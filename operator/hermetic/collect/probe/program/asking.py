"""Tries every target once and writes one line with the answers."""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from pathlib import Path

from hermetic.collect.probe.program import machine, metadata
from hermetic.collect.probe.program.calling import ask, http, is_address, proxy, tcp, tls
from hermetic.collect.probe.program.dns import A, named, query, random_label, resolve
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


def call(target: Sequence[Any], limit: float, canary: str) -> Steps:
    """The attempt for a target, by its protocol."""
    _, kind, address, port = target
    if kind == "tls":
        return tls(address, port, limit)
    if kind == "http":
        return http(address, port, limit)
    if kind == "proxy":
        return proxy(address, port, limit, canary)
    if kind == "udp":
        return ask(address, port, datagram(port, canary), limit, lambda _: "a")
    return tcp(address, port, limit)


def datagram(port: int, canary: str) -> bytes:
    """The datagram that the usual listener on a UDP port answers: a fixed request without any data of ours."""
    if port == 53:
        return query(random_label(canary), A)
    if port == 123:
        return b"\x23" + bytes(47)
    if port == 443:
        # a reserved QUIC version: a server must answer with those that it supports (RFC 9000, 6.1)
        return b"\xc0\x1a\x2a\x3a\x4a\x08hermetic\x08hermetic".ljust(1200, b"\0")
    return b"hermetic probe"


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

"""A watch whose API server is gone without a word: a host that lost power, a firewall that forgot the connection.

No packet tells the client, so only its own TCP keepalive can. The packets are real: a rule of nftables drops them.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network.network_namespaces import NetworkLayout, far_address

PROGRAM = Path(__file__).with_name("watch_over_tcp.py")
PORT, UNRESPONSIVE_SECONDS = 6443, 5.0
ADDRESS = far_address(4, 1)


def started(enter: list[str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([*enter, sys.executable, str(PROGRAM), *arguments], stdout=subprocess.PIPE, text=True)


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.fixture
def watch(network: NetworkLayout) -> Iterator[subprocess.Popen[str]]:
    """A watch that has begun, of a server that says nothing more."""
    server = started(network.beyond.enter, "serve", ADDRESS, str(PORT))
    assert line_of(server) == "listening"
    client = started(network.node.enter, "watch", ADDRESS, str(PORT), str(UNRESPONSIVE_SECONDS))
    assert line_of(client) == "ADDED"
    yield client
    for process in (client, server):
        process.kill()
        process.communicate()


def test_a_watch_of_a_server_that_is_gone_is_broken_within_the_limit(
    network: NetworkLayout, watch: subprocess.Popen[str]
) -> None:
    with network.router.rules("forward", f"tcp dport {PORT} drop", f"tcp sport {PORT} drop"):
        seconds, message = line_of(watch).split(" ", 1)
    assert float(seconds) < UNRESPONSIVE_SECONDS + 5  # a busy machine starts nft late
    assert "no answer in time" in message or "timed out" in message.lower()


def test_a_silent_watch_of_a_server_that_is_there_stays_open(watch: subprocess.Popen[str]) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        watch.wait(2 * UNRESPONSIVE_SECONDS)

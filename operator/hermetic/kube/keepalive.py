"""TCP keepalive: a connection whose other end is gone breaks, however long the other end may rightly say nothing.

An API server sends nothing over a watch while nothing changes. Bookmarks are no sign of life: "clients should not
assume bookmarks are returned at any specific interval, nor may they assume the server will send any BOOKMARK event"
(https://kubernetes.io/docs/reference/using-api/api-concepts/#watch-bookmarks). Kubernetes 1.30 to 1.32 sends none for
a kind that does not change.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

UNRESPONSIVE_SECONDS = 75.0
PROBES = 3
_IDLE_OPTIONS = ("TCP_KEEPIDLE", "TCP_KEEPALIVE")
"""Linux and Windows have the first, macOS the second."""

SocketFactory = Callable[[tuple[Any, ...]], socket.socket]


def socket_factory(unresponsive_seconds: float = UNRESPONSIVE_SECONDS) -> SocketFactory:
    """Opens sockets for aiohttp that fail with ETIMEDOUT after that many seconds without a sign of the other end."""
    options = tuple(_options(unresponsive_seconds))

    def open_socket(address: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, *_ = address
        opened = socket.socket(family, kind, protocol)
        for level, option, value in options:
            opened.setsockopt(level, option, value)
        return opened

    return open_socket


def _options(seconds: float) -> Iterator[tuple[int, int, int]]:
    """(level, option, value) of every option that this system has; the first probe leaves after two fifths."""
    interval = max(1, round(seconds / (PROBES + 2)))
    values = dict.fromkeys(_IDLE_OPTIONS, 2 * interval) | {
        "TCP_KEEPINTVL": interval,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": round(seconds * 1000),  # bytes that were sent count like a probe
    }
    yield socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1
    for name, value in values.items():
        option = getattr(socket, name, None)
        if option is not None:
            yield socket.IPPROTO_TCP, option, value

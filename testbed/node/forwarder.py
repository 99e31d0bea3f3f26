"""Carries TCP connections from the machine's loopback into the node's network namespace.

The listening socket was made outside and stays there; the connections are accepted and forwarded inside.
"""

from __future__ import annotations

import contextlib
import socket
import threading

CHUNK = 65536


def forward(listener: socket.socket, port: int) -> None:
    """Accepts for ever on `listener`, in a thread of its own, and connects to `port` on this namespace's loopback."""
    threading.Thread(target=_accept, args=(listener, port), daemon=True).start()


def _accept(listener: socket.socket, port: int) -> None:
    while True:
        outer, _ = listener.accept()
        threading.Thread(target=_join, args=(outer, port), daemon=True).start()


def _join(outer: socket.socket, port: int) -> None:
    try:
        inner = socket.create_connection(("127.0.0.1", port))
    except OSError:
        outer.close()
        return
    with outer, inner:
        back = threading.Thread(target=_pump, args=(inner, outer), daemon=True)
        back.start()
        _pump(outer, inner)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(CHUNK):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)

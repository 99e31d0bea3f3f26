"""A pod's network that leads nowhere: one namespace, a default route into nothing, and every packet written down.

`eth0` has the pod's address; its other end lies in the same namespace and answers no packet, as a NetworkPolicy that
drops. The namespace has no link to the machine, so no packet can leave.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

POD = "10.244.1.5"
CLONE_NEWNET = 0x40000000
ICMPV6, HOP_BY_HOP = 58, 0
Result = TypeVar("Result")


@dataclass
class PodNetwork:
    """`name` is that of the namespace. `packets` are all that `eth0` saw, the kernel's own IPv6 housekeeping apart."""

    name: str
    packets: list[str] = field(default_factory=list)
    threads: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        self.threads = ThreadPoolExecutor(16, initializer=self._enter)

    def inside(self, ask: Callable[[], Result]) -> Result:
        """What `ask` gives when its sockets are opened in here."""
        return self.threads.submit(ask).result()

    def _enter(self) -> None:
        with Path(f"/var/run/netns/{self.name}").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), f"setns {self.name}")

    def _listen(self) -> socket.socket:
        listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
        listener.bind(("eth0", 0))
        return listener

    def _write_down(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                if seen := packet_as_text(listener.recv(65535)):
                    self.packets.append(seen)


@contextlib.contextmanager
def pod_network() -> Iterator[PodNetwork]:
    """The namespace, while the context lasts. Needs root."""
    name = f"hermetic-engine-{os.getpid()}"
    _ip("netns", "add", name)
    network = PodNetwork(name)
    try:
        for command in (
            "link set lo up", "link add eth0 type veth peer name beyond", "link set beyond up",
            f"addr add {POD}/24 dev eth0", "link set eth0 up", "route add default via 10.244.1.1 dev eth0",
            "neigh add 10.244.1.1 lladdr 02:00:00:00:00:01 dev eth0 nud permanent",
        ):  # fmt: skip
            _ip("-n", name, *command.split())
        listener = network.inside(network._listen)  # noqa: SLF001 - its own class
        threading.Thread(target=network._write_down, args=(listener,), daemon=True).start()  # noqa: SLF001
        yield network
        listener.close()
    finally:
        network.threads.shutdown(wait=False)
        _ip("netns", "delete", name)


def packet_as_text(packet: bytes) -> str:
    """One packet in words; "" for what the kernel sends of itself when an interface with IPv6 comes up."""
    kind = struct.unpack("!H", packet[12:14])[0]
    if kind == 0x86DD:
        header, to = packet[20], socket.inet_ntop(socket.AF_INET6, packet[38:54])
        return "" if header in (ICMPV6, HOP_BY_HOP) and to.startswith("ff02::") else f"IPv6 {header} to {to}"
    if kind == 0x0800:
        begin = 14 + (packet[14] & 15) * 4
        ports = struct.unpack("!HH", packet[begin : begin + 4]) if packet[23] in (6, 17) else (0, 0)
        return f"IPv4 {packet[23]} to {socket.inet_ntoa(packet[30:34])}:{ports[1]} {_name_asked(packet[begin + 8 :])}"
    return f"ethernet {kind:#x}"


def _name_asked(question: bytes) -> str:
    return question[12:60].decode("latin-1") if len(question) > 12 else ""


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)

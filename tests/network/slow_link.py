"""A slow or lossy link of a router: run as a program in the router's namespace, for one direction.

It makes the TUN device `slow0`, reads the IP packets that are routed to it, and writes each back after its delay, as if
it came in on that device. The device, and every route to it, is gone when the program ends.

Its first argument is a JSON object: {"milliseconds": DELAY, "jitter": MILLISECONDS, "seed": NUMBER, "lost": NUMBER or
null}. The jitter is added by a seeded generator, so that packets overtake one another. With `lost` (0, 1 or 2) the
link loses every third packet of each flow, that of this number first. It prints a line when the device is there.
"""

from __future__ import annotations

import fcntl
import heapq
import json
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections import Counter

# linux/if_tun.h: TUNSETIFF; IFF_TUN | IFF_NO_PI, packets without a header of the device
TUNSETIFF, PLAIN_PACKETS = 0x400454CA, 0x1001
DEVICE, LARGEST = b"slow0", 65536


def open_device() -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH22x", DEVICE, PLAIN_PACKETS))
    # without a link-local address the kernel sends nothing of its own here
    for setting in (("addrgenmode", "none"), ("up",)):
        subprocess.run(["ip", "link", "set", DEVICE.decode(), *setting], check=True)
    return device


def flow_of(packet: bytes) -> bytes | None:
    """Protocol, addresses and ports; None for IPv6 multicast, which no router forwards."""
    if packet[0] >> 4 == 4:
        return packet[9:10] + packet[12:24]
    return None if packet[24] == 0xFF else packet[6:7] + packet[8:44]


class Link:
    """Packets on their way, by the time at which they arrive."""

    def __init__(self, milliseconds: int, jitter: int, seed: int, lost: int | None) -> None:
        self.milliseconds, self.jitter, self.lost = milliseconds, jitter, lost
        self.generator = random.Random(seed)
        self.sent: Counter[bytes] = Counter()
        self.under_way: list[tuple[float, int, bytes]] = []

    def take(self, packet: bytes) -> None:
        flow = flow_of(packet)
        if flow is None:
            return
        number = self.sent[flow]
        self.sent[flow] += 1
        if self.lost is not None and number % 3 == self.lost:
            return
        delay = (self.milliseconds + self.generator.uniform(0, self.jitter)) / 1000
        heapq.heappush(self.under_way, (time.monotonic() + delay, self.sent.total(), packet))

    def arrived(self) -> list[bytes]:
        packets = []
        while self.under_way and self.under_way[0][0] <= time.monotonic():
            packets.append(heapq.heappop(self.under_way)[2])
        return packets

    def next_arrival(self) -> float | None:
        """Seconds from now; None while no packet is under way."""
        return max(0.0, self.under_way[0][0] - time.monotonic()) if self.under_way else None


def main(wanted: dict) -> None:
    device, link = open_device(), Link(**wanted)
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    while True:
        if select.select([device], [], [], link.next_arrival())[0]:
            link.take(os.read(device, LARGEST))
        for packet in link.arrived():
            os.write(device, packet)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))

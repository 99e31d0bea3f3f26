"""Network namespaces joined by veth pairs: a node, its router, and everything beyond.

    node     203.0.113.2/24, 2001:db8:1::2/64     where the probe runs
    router   203.0.113.1,    2001:db8:1::1        passes on, or does not
    beyond   198.51.100.0/24, 2001:db8:ff::/64    answers as the internet would; other addresses on demand

All of them are documentation addresses, and no namespace has a link to the machine: no packet can leave. Everything is
gone when the holders of the namespaces are ended, which the kernel does when this process ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.packages import SEARCH

TOOLS = ("ip", "nft", "unshare", "nsenter", "setpriv", "mount")
NODE, ROUTER, BEYOND = {4: "203.0.113.2", 6: "2001:db8:1::2"}, {4: "203.0.113.1", 6: "2001:db8:1::1"}, "beyond"
FAR = {4: "198.51.100.0/24", 6: "2001:db8:ff::/64"}
RUNS = 100

# Linux limits how often a machine says why it refuses: each of many calls at once must hear it here. And it waits a
# second before it uses an IPv6 address, for another machine to object.
SETTINGS = """
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
echo 0 > /proc/sys/net/ipv4/icmp_ratelimit
echo 0 > /proc/sys/net/ipv6/icmp/ratelimit
echo 1000000 > /proc/sys/net/ipv4/icmp_msgs_per_sec
echo 1000000 > /proc/sys/net/ipv4/icmp_msgs_burst
echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad
"""


def missing_requirement() -> str:
    """Why this machine cannot make the namespaces; "" when it can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=SEARCH)]
    return f"{', '.join(missing)}: not installed" if missing else ""


def far_address(family: int, number: int) -> str:
    """One of the addresses beyond the router, by number from 1."""
    return f"198.51.100.{number}" if family == 4 else f"2001:db8:ff::{number:x}"


def absent_neighbour(family: int, number: int) -> str:
    """An address on the node's own link that no machine has."""
    return f"203.0.113.{100 + number}" if family == 4 else f"2001:db8:1::1:{number:x}"


@dataclass(frozen=True)
class NetworkNamespace:
    """One network namespace, with mounts of its own."""

    holder: subprocess.Popen[bytes]

    @property
    def enter(self) -> list[str]:
        """In front of a command, it runs the command in here."""
        return ["nsenter", f"--target={self.holder.pid}", "--net", "--mount", "--"]

    def run(self, *command: str, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
        """Runs a command in here and returns what it printed; a failing one raises with what it said."""
        surroundings = {"PATH": SEARCH, **(environment or {})}
        done = subprocess.run(
            [*self.enter, *command],
            input=stdin,
            env=surroundings,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode != 0:
            raise AssertionError(f"{' '.join(command)[:200]}: exit {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def links(self, lines: str) -> None:
        """Commands of `ip`, one a line."""
        self.run("ip", "-batch", "-", stdin=lines)

    @contextmanager
    def rules(self, hook: str, *rules: str) -> Iterator[None]:
        """nftables rules on `forward` or `output` while the block runs."""
        body = "\n".join(rules)
        chain = f"chain gap {{\ntype filter hook {hook} priority 0; policy accept;\n{body}\n}}"
        self.run("nft", "-f", "-", stdin=f"table inet gap {{\n{chain}\n}}\n")
        try:
            yield
        finally:
            self.run("nft", "delete", "table", "inet", "gap")

    @contextmanager
    def without(self, *routes: str) -> Iterator[None]:
        """Without these routes (as `ip route` takes them, `-6` in front where it is one) while the block runs."""
        for route in routes:
            self.run("ip", *_verb(route, "del"))
        try:
            yield
        finally:
            for route in routes:
                self.run("ip", *_verb(route, "add"))

    @contextmanager
    def with_(self, *routes: str) -> Iterator[None]:
        """With these routes while the block runs."""
        for route in routes:
            self.run("ip", *_verb(route, "add"))
        try:
            yield
        finally:
            for route in routes:
                self.run("ip", *_verb(route, "del"))


def _verb(route: str, verb: str) -> list[str]:
    arguments = route.split()
    return ["-6", "route", verb, *arguments[1:]] if arguments[0] == "-6" else ["route", verb, *arguments]


@dataclass(frozen=True)
class NetworkLayout:
    """The three namespaces of the network."""

    node: NetworkNamespace
    router: NetworkNamespace
    beyond: NetworkNamespace

    def add_beyond(self, *addresses: str) -> None:
        """Lets the far side answer at further addresses, and the router know the way."""
        for address in addresses:
            v6 = ":" in address
            self.beyond.run("ip", "address", "add", f"{address}/{128 if v6 else 32}", "dev", "lo")
            self.router.run("ip", *_verb(f"{'-6 ' if v6 else ''}{address} via {_far_side(6 if v6 else 4)}", "add"))


DEFAULTS = (f"default via {ROUTER[4]}", f"-6 default via {ROUTER[6]}")


def _far_side(family: int) -> str:
    return "192.0.2.2" if family == 4 else "2001:db8:2::2"


UPSTREAM = tuple(f"{'-6 ' if family == 6 else ''}{FAR[family]} via {_far_side(family)}" for family in (4, 6))


@contextmanager
def network_namespaces() -> Iterator[NetworkLayout]:
    """Makes the namespaces, veth pairs, addresses and routes, with everything open."""
    namespaces = [_namespace() for _ in range(3)]
    try:
        layout = NetworkLayout(*namespaces)
        _connect(layout)
        yield layout
    finally:
        for namespace in namespaces:
            namespace.holder.kill()
            namespace.holder.wait()


@contextmanager
def namespace_without_links() -> Iterator[NetworkNamespace]:
    """A namespace without any link but its loopback, and without IPv6, as some pods have it."""
    namespace = _namespace()
    try:
        namespace.run("sh", "-c", "ip link set lo up; echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6")
        yield namespace
    finally:
        namespace.holder.kill()
        namespace.holder.wait()


def _namespace() -> NetworkNamespace:
    # the first line says that the namespaces are there: before, nsenter would enter those of the machine
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "sh", "-c", "echo; exec sleep infinity"]
    holder = subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, env={"PATH": SEARCH}, cwd=Path("/")
    )
    assert holder.stdout is not None
    with holder.stdout:
        if not holder.stdout.readline():
            raise AssertionError(f"no network namespace: unshare ended with {holder.wait()}")
    return NetworkNamespace(holder)


def _connect(made: NetworkLayout) -> None:
    node, router, beyond = made.node, made.router, made.beyond
    for namespace in (node, router, beyond):
        namespace.run("sh", "-c", SETTINGS)
    node.links("link set lo up\nlink add up0 type veth peer name down0\n")
    node.run("ip", "link", "set", "down0", "netns", str(router.holder.pid))
    router.links("link set lo up\nlink add up1 type veth peer name down1\n")
    router.run("ip", "link", "set", "down1", "netns", str(beyond.holder.pid))
    node.links(_link("up0", NODE[4], NODE[6]) + "".join(_route_line(route) for route in DEFAULTS))
    router.links(_link("down0", ROUTER[4], ROUTER[6]) + _link("up1", "192.0.2.1", "2001:db8:2::1"))
    beyond.links("link set lo up\n" + _link("down1", _far_side(4), _far_side(6)))
    beyond.links("route add default via 192.0.2.1\nroute add default via 2001:db8:2::1\n")
    beyond.links("".join(_far_lines()))
    router.links("".join(_route_line(route) for route in UPSTREAM))


def _link(device: str, v4: str, v6: str) -> str:
    # without the wait for a duplicate, the address can be used at once
    return f"address add {v4}/24 dev {device}\naddress add {v6}/64 dev {device} nodad\nlink set {device} up\n"


def _route_line(route: str) -> str:
    return f"route add {route.removeprefix('-6 ')}\n"


def _far_lines() -> Iterator[str]:
    for number in range(1, RUNS + 1):
        yield f"address add {far_address(4, number)}/32 dev lo\n"
        yield f"address add {far_address(6, number)}/128 dev lo nodad\n"

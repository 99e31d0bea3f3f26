"""The mounts, links and routes of the node's namespaces, made before any of its programs starts.

All of them are in namespaces of our own and end with the last process in them.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.controlplane import SERVICE_NETWORK
from testbed.node.addresses import (
    CLIENT_ADDRESS,
    CLIENT_GATEWAY,
    CLIENT_GATEWAY_OF_SECOND,
    CLIENT_ON_SECOND,
    CLIENT_PREFIX,
    FIRST,
    LOAD_BALANCER_NETWORK,
    NODE_ADDRESS,
    SECOND,
)

CLIENT_NAMESPACE = "client"
SECOND_NAMESPACE = "second"
MARK_OF_FIRST, MARK_OF_SECOND = 1, 2
"""Of packets of the client to load balancers: the node that they go to. The tables of routes have the same numbers."""

# The kubelet sets these for the whole machine. It finds files in their place that already say what it wants.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}

# A route is needed before nftables can rewrite an address; a bridge without ports swallows what nothing rewrites.
LINKS = f"""
link set lo up
link add vnet0 type bridge
address add {NODE_ADDRESS}/32 dev vnet0
link set vnet0 up
route add {SERVICE_NETWORK} dev vnet0
route add {LOAD_BALANCER_NETWORK} dev vnet0
netns add {CLIENT_NAMESPACE}
link add client0 type veth peer name eth0 netns {CLIENT_NAMESPACE}
address add {CLIENT_GATEWAY}/{CLIENT_PREFIX} dev client0
link set client0 up
-n {CLIENT_NAMESPACE} link set lo up
-n {CLIENT_NAMESPACE} address add {CLIENT_ADDRESS}/{CLIENT_PREFIX} dev eth0
-n {CLIENT_NAMESPACE} link set eth0 up
-n {CLIENT_NAMESPACE} route add default via {CLIENT_GATEWAY}
"""

# The link between the nodes, by which each finds the other and its pods, and the client's link to the second. Which of
# its two links the client takes to a load balancer follows from the mark of the packet.
SECOND_LINKS = f"""
netns add {SECOND_NAMESPACE}
link add second0 type veth peer name eth0 netns {SECOND_NAMESPACE}
address add {FIRST.address}/32 dev second0
link set second0 up
route add {SECOND.address}/32 dev second0
route add {SECOND.pod_network} via {SECOND.address} dev second0
-n {SECOND_NAMESPACE} link set lo up
-n {SECOND_NAMESPACE} address add {SECOND.address}/32 dev eth0
-n {SECOND_NAMESPACE} link set eth0 up
-n {SECOND_NAMESPACE} route add {FIRST.address}/32 dev eth0
-n {SECOND_NAMESPACE} route add {FIRST.pod_network} via {FIRST.address} dev eth0
link add client1 netns {SECOND_NAMESPACE} type veth peer name eth1 netns {CLIENT_NAMESPACE}
-n {SECOND_NAMESPACE} address add {CLIENT_GATEWAY_OF_SECOND}/{CLIENT_PREFIX} dev client1
-n {SECOND_NAMESPACE} link set client1 up
-n {CLIENT_NAMESPACE} address add {CLIENT_ON_SECOND}/{CLIENT_PREFIX} dev eth1
-n {CLIENT_NAMESPACE} link set eth1 up
-n {CLIENT_NAMESPACE} rule add fwmark {MARK_OF_FIRST} lookup {MARK_OF_FIRST}
-n {CLIENT_NAMESPACE} route add {LOAD_BALANCER_NETWORK} via {CLIENT_GATEWAY} dev eth0 table {MARK_OF_FIRST}
-n {CLIENT_NAMESPACE} rule add fwmark {MARK_OF_SECOND} lookup {MARK_OF_SECOND}
-n {CLIENT_NAMESPACE} route add {LOAD_BALANCER_NETWORK} via {CLIENT_GATEWAY_OF_SECOND} dev eth1 table {MARK_OF_SECOND}
-n {SECOND_NAMESPACE} route add {CLIENT_ADDRESS}/32 via {CLIENT_ON_SECOND} dev client1
-n {SECOND_NAMESPACE} link add vnet0 type bridge
-n {SECOND_NAMESPACE} link set vnet0 up
-n {SECOND_NAMESPACE} route add {SERVICE_NETWORK} dev vnet0 src {SECOND.address}
-n {SECOND_NAMESPACE} route add {LOAD_BALANCER_NETWORK} dev vnet0 src {SECOND.address}
"""


def lay_mounts(folder: Path, *, inside_another: bool = False) -> None:
    """Gives the node a /run, a /var/log and state folders of its own, all under `folder`.

    `inside_another`: in a mount namespace that was made in that of a node, whose /var/lib may be written to. A further
    overlay on its overlay is more than the kernel allows where this machine's root is one as well.
    """
    _run("mount", "--make-rshared", "/")  # the kubelet's mounts must reach the containers; the peer group is ours alone
    _run("mount", "-t", "tmpfs", "tmpfs", "/run")
    for name in ("lock", "state/upper", "state/work"):
        Path("/run", name).mkdir(parents=True)
    if not inside_another:
        # an overlay, so that the mount points need not be made on the machine itself
        layers = "lowerdir=/var/lib,upperdir=/run/state/upper,workdir=/run/state/work"
        _run("mount", "-t", "overlay", "overlay", "-o", layers, "/var/lib")
    for source, target in (("kubelet", "/var/lib/kubelet"), ("containerd", "/var/lib/containerd"), ("log", "/var/log")):
        bind(folder / source, Path(target))
    _use_cluster_names(folder)
    for name, value in KERNEL_SETTINGS.items():
        setting = folder / "kernel" / name.replace("/", ".")
        setting.parent.mkdir(exist_ok=True)
        setting.write_text(f"{value}\n")
        _run("mount", "--bind", str(setting), f"/proc/sys/{name}")


def _use_cluster_names(folder: Path) -> None:
    """The node asks its own CoreDNS. The machine's resolver is out of reach anyway and does not belong in messages."""
    names = folder / "resolv.conf"
    names.write_text(f"nameserver {NODE_ADDRESS}\n")
    resolver = Path("/etc/resolv.conf").resolve()
    resolver.parent.mkdir(parents=True, exist_ok=True)  # below the /run that has just become ours
    if not resolver.exists():
        resolver.touch()
    _run("mount", "--bind", str(names), str(resolver))


def bind(source: Path, target: Path) -> None:
    source.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    _run("mount", "--bind", str(source), str(target))


def lay_network(nodes: int) -> None:
    """The links of this namespace, and with two nodes also those of the second."""
    for links in (LINKS, SECOND_LINKS)[:nodes]:
        for line in links.strip().splitlines():
            _run("ip", *line.split())
    if nodes == 2:
        _accept_answers_on_both_links()
    forward_packets()


def _accept_answers_on_both_links() -> None:
    """Of the client: answers come over the link of their connection, which an unmarked packet may not take."""
    accept = "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done"
    _run("nsenter", f"--net=/run/netns/{CLIENT_NAMESPACE}", "sh", "-c", accept)


def forward_packets() -> None:
    """As every node does between its pods and its links."""
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)

"""Which node a connection to a load balancer goes to: as Azure's, a new one to a node whose health check answers.

    python -m testbed.node.balancer --kubeconfig FILE

A Service with `externalTrafficPolicy: Local` has a port at which kube-proxy answers 200 on a node that runs a ready pod
of it. New connections of the client go to such a node; without one they go where the last ones went. A connection that
is open stays on its node when the health check there fails: its pod answers while it ends, and the other node knows
nothing of it. The client's kernel remembers the node of each connection (a mark of conntrack) and has a table of routes
for each node (testbed/node/mounts_and_routes.py).
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.errors import ApiError
from testbed.node.addresses import FIRST, LOAD_BALANCER_NETWORK, SECOND, NodeIdentity
from testbed.node.mounts_and_routes import CLIENT_NAMESPACE, MARK_OF_FIRST, MARK_OF_SECOND

POLL_SECONDS = 0.5
TIMEOUT_SECONDS = 1.0
MARKS = {FIRST: MARK_OF_FIRST, SECOND: MARK_OF_SECOND}
TABLE = f"""
table ip balancer {{
  map nodes {{
    type ipv4_addr : mark
  }}
  chain output {{
    type route hook output priority mangle
    ip daddr {LOAD_BALANCER_NETWORK} ct state new ct mark set ip daddr map @nodes
    ip daddr {LOAD_BALANCER_NETWORK} meta mark set ct mark
  }}
}}
"""
"""Of the client, for `nft -f`. An address that the map lacks leaves the mark 0, which no table of routes is for."""


def balanced(services: list[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    """The address and the health check's port of each Service that has both."""
    for service in services:
        port = service["spec"].get("healthCheckNodePort")
        for ingress in (service.get("status", {}).get("loadBalancer") or {}).get("ingress") or ():
            if port:
                yield ingress["ip"], port


def is_healthy(host: str, port: int) -> bool:
    """Whether kube-proxy of this node has a ready pod behind the port."""
    connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def nodes_of(
    addresses: Iterable[tuple[str, int]], before: Mapping[str, NodeIdentity]
) -> Iterator[tuple[str, NodeIdentity]]:
    """Each address with the node for its new connections; `before`: as it was until now."""
    for address, port in addresses:
        healthy = [node for node in MARKS if is_healthy(node.address, port)]
        current = before.get(address)
        if healthy and current not in healthy:
            yield address, healthy[0]
        elif current is not None:
            yield address, current


def elements(nodes: Mapping[str, NodeIdentity]) -> str:
    """The content of the map for `nft -f`, in the place of what it had."""
    marks = ", ".join(f"{address} : {MARKS[node]}" for address, node in sorted(nodes.items()))
    return "flush map ip balancer nodes\n" + (f"add element ip balancer nodes {{ {marks} }}\n" if marks else "")


def _load(rules: str) -> None:
    enter = ("nsenter", f"--net=/run/netns/{CLIENT_NAMESPACE}")
    subprocess.run([*enter, "nft", "--file", "-"], input=rules, text=True, check=True)


def main(arguments: list[str]) -> int:
    """Until it is ended; new connections follow their Service within a second."""
    parser = argparse.ArgumentParser(prog="python -m testbed.node.balancer", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    api, in_force = Api(parser.parse_args(arguments).kubeconfig), dict[str, NodeIdentity]()
    _load(TABLE)
    while True:
        try:
            nodes = dict(nodes_of(balanced(api.get("/api/v1/services")["items"]), in_force))
        except (OSError, ApiError) as error:
            print(f"not read: {error}", file=sys.stderr, flush=True)
            nodes = in_force
        if nodes != in_force:
            _load(elements(nodes))
            print(", ".join(f"{address}: {node.name}" for address, node in nodes.items()), file=sys.stderr, flush=True)
            in_force = nodes
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Which node the packets of a load balancer go to: as Azure's, one of those whose health check answers.

    python -m testbed.node.balancer --kubeconfig FILE

A Service with `externalTrafficPolicy: Local` has a port at which kube-proxy answers 200 on a node that runs a ready pod
of it. The client's route to the Service's address leads to such a node; without one it stays as it was.
"""

from __future__ import annotations

import argparse
import http.client
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from testbed.api import Api
from testbed.errors import ApiError
from testbed.node.addresses import CLIENT_ADDRESS, CLIENT_GATEWAY, CLIENT_GATEWAY_OF_SECOND, FIRST, SECOND
from testbed.node.mounts_and_routes import CLIENT_NAMESPACE

POLL_SECONDS = 0.5
TIMEOUT_SECONDS = 1.0
GATEWAYS = {FIRST: (CLIENT_GATEWAY, "eth0"), SECOND: (CLIENT_GATEWAY_OF_SECOND, "eth1")}


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


def main(arguments: list[str]) -> int:
    """Until it is ended; a route follows its Service within a second."""
    parser = argparse.ArgumentParser(prog="python -m testbed.node.balancer", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    api, routes = Api(parser.parse_args(arguments).kubeconfig), dict[str, str]()
    while True:
        try:
            services = api.get("/api/v1/services")["items"]
        except (OSError, ApiError) as error:
            print(f"not read: {error}", file=sys.stderr, flush=True)
            services = []
        for address, port in balanced(services):
            healthy = [node for node in GATEWAYS if is_healthy(node.address, port)]
            if healthy and routes.get(address) not in {node.name for node in healthy}:
                gateway, device = GATEWAYS[healthy[0]]
                route = ("route", "replace", f"{address}/32", "via", gateway, "dev", device, "src", CLIENT_ADDRESS)
                subprocess.run(["ip", "-n", CLIENT_NAMESPACE, *route], check=True)
                routes[address] = healthy[0].name
        time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m testbed.csi`: CSI node plug-ins on the kubelet's sockets, serving volumes from a local folder.

It stands in for `file.csi.azure.com` and `nfs.csi.k8s.io` at the boundary where the kubelet meets them; Kubernetes, the
kubelet and the pod cannot tell. What it does not show: NFS itself (latency, locking, root squash, encryption).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from concurrent import futures
from pathlib import Path

import grpc

from testbed.csi.driver import Call, Driver
from testbed.csi.shares import AZURE_FILES, NFS
from testbed.protobuf import Message, field

KUBELET = Path("/var/lib/kubelet")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.csi", description=__doc__)
    parser.add_argument("--driver", action="append", help=f"a driver name (default: {AZURE_FILES} and {NFS})")
    parser.add_argument("--node", required=True)
    parser.add_argument("--shares", required=True, type=Path, help="the backing folder")
    parser.add_argument("--calls", required=True, type=Path, help="file that gets one JSON line per call")
    parser.add_argument("--kubelet", type=Path, default=KUBELET)
    chosen = parser.parse_args(arguments)
    drivers = [Driver(name, chosen.node, chosen.shares, chosen.calls) for name in chosen.driver or (AZURE_FILES, NFS)]
    servers = [server for driver in drivers for server in serve(driver, chosen.kubelet)]
    for server in servers:
        server.wait_for_termination()
    return 0


def serve(driver: Driver, kubelet: Path) -> list[grpc.Server]:
    """The driver's own socket, then the one through which the kubelet finds it."""
    socket = kubelet / "plugins" / driver.name / "csi.sock"
    registration = kubelet / "plugins_registry" / f"{driver.name}-reg.sock"
    calls = {"csi.v1.Identity": driver.identity(), "csi.v1.Node": driver.node_calls()}
    return [
        listen(socket, calls),
        listen(registration, {"pluginregistration.Registration": registration_calls(driver, socket)}),
    ]


def registration_calls(driver: Driver, socket: Path) -> dict[str, Call]:
    def notify(message: Message, _context: grpc.ServicerContext) -> bytes:
        driver.log("registered", {"accepted": message.flag(1), "error": message.text(2)})
        return b""

    info = field(1, "CSIPlugin") + field(2, driver.name) + field(3, str(socket)) + field(4, "1.0.0")
    return {"GetInfo": lambda _message, _context: info, "NotifyRegistrationStatus": notify}


def listen(socket: Path, services: Mapping[str, Mapping[str, Call]]) -> grpc.Server:
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.unlink(missing_ok=True)
    server = grpc.server(futures.ThreadPoolExecutor(8))
    for service, calls in services.items():
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(call, request_deserializer=Message, response_serializer=bytes)
            for name, call in calls.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

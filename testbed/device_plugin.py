"""`python -m testbed.device_plugin RESOURCE COUNT`: GPUs that are not there, offered to a real kubelet.

It serves the kubelet's device plug-in API as NVIDIA's plug-in does: the node advertises the resource, the scheduler
counts it, and a container that gets devices finds their ids in NVIDIA_VISIBLE_DEVICES. Nothing computes.

A device is unhealthy while a file of its name (`GPU-0`) exists in the folder given as --unhealthy: the node's
allocatable count falls within a second, its capacity does not.

With --driver FOLDER containers get a driver too: the folder is mounted where `testbed.simulated_nvml` reads the state
of each device. A file `next.json` there becomes the state of the next device that is handed out.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path

import grpc

from testbed.protobuf import Message, field
from testbed.simulated_nvml import FOLDER as FOLDER_IN_CONTAINER
from testbed.simulated_nvml import NEXT_STATE

FOLDER = Path("/var/lib/kubelet/device-plugins")
API_VERSION = "v1beta1"
VISIBLE_DEVICES = {"nvidia.com/gpu": "NVIDIA_VISIBLE_DEVICES", "amd.com/gpu": "AMD_VISIBLE_DEVICES"}
POLL_SECONDS = 0.3


@dataclass(frozen=True)
class Devices:
    """The devices of one resource and where their health is read."""

    resource: str
    count: int
    unhealthy: Path
    driver: Path | None = None

    def health(self) -> dict[str, str]:
        """Device id to `Healthy` or `Unhealthy`."""
        ids = [f"GPU-{number}" for number in range(self.count)]
        return {device: "Unhealthy" if (self.unhealthy / device).exists() else "Healthy" for device in ids}

    def list_and_watch(self, _request: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """The whole list at once and again whenever a device's health changes."""
        last_sent: dict[str, str] = {}
        while context.is_active():
            now = self.health()
            if now != last_sent:
                last_sent = now
                yield b"".join(field(1, field(1, device) + field(2, health)) for device, health in now.items())
            time.sleep(POLL_SECONDS)

    def allocate(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        """One answer per container: its devices, in the variable that the container runtime hook would read."""
        return b"".join(field(1, self._container(message.texts(1))) for message in Message(request).messages(1))

    def _container(self, ids: list[str]) -> bytes:
        print(f"{self.resource}: {', '.join(ids)} given to a container", flush=True)
        variable = field(1, VISIBLE_DEVICES.get(self.resource, "VISIBLE_DEVICES")) + field(2, ",".join(ids))
        return field(1, variable) + (self._mount(self.driver, ids) if self.driver is not None else b"")

    @staticmethod
    def _mount(driver: Path, ids: list[str]) -> bytes:
        """The driver's folder, read-only, in the form of `ContainerAllocateResponse.mounts`."""
        with contextlib.suppress(FileNotFoundError):
            (driver / NEXT_STATE).rename(driver / f"{ids[0]}.json")
        return field(2, field(1, str(FOLDER_IN_CONTAINER)) + field(2, str(driver)) + field(3, True))

    @property
    def socket_name(self) -> str:
        return self.resource.replace("/", "_") + ".sock"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m testbed.device_plugin", description=__doc__)
    parser.add_argument("resource", help="for example nvidia.com/gpu")
    parser.add_argument("count", type=int)
    parser.add_argument("--unhealthy", type=Path, required=True)
    parser.add_argument("--driver", type=Path)
    chosen = parser.parse_args(arguments)
    chosen.unhealthy.mkdir(parents=True, exist_ok=True)
    if chosen.driver is not None:
        chosen.driver.mkdir(parents=True, exist_ok=True)
    keep_registered(Devices(chosen.resource, chosen.count, chosen.unhealthy, chosen.driver))
    return 0


def keep_registered(devices: Devices) -> None:
    """Registers again whenever the kubelet's socket is a new one: a restarted kubelet has forgotten its plug-ins."""
    server: grpc.Server | None = None
    registered: int | None = None
    while True:
        with contextlib.suppress(FileNotFoundError, grpc.RpcError):
            kubelet = (FOLDER / "kubelet.sock").stat().st_ino
            if kubelet != registered or not (FOLDER / devices.socket_name).exists():
                if server is not None:
                    server.stop(grace=None)
                server = serve(devices)
                register(devices)
                registered = kubelet
        time.sleep(POLL_SECONDS)


def serve(devices: Devices) -> grpc.Server:
    socket = FOLDER / devices.socket_name
    socket.unlink(missing_ok=True)
    handlers = {
        "ListAndWatch": grpc.unary_stream_rpc_method_handler(devices.list_and_watch),
        "Allocate": grpc.unary_unary_rpc_method_handler(devices.allocate),
        **{
            name: grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
            for name in ("GetDevicePluginOptions", "PreStartContainer", "GetPreferredAllocation")
        },
    }
    server = grpc.server(futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("v1beta1.DevicePlugin", handlers),))
    server.add_insecure_port(f"unix:{socket}")
    server.start()
    return server


def register(devices: Devices) -> None:
    request = field(1, API_VERSION) + field(2, devices.socket_name) + field(3, devices.resource)
    with grpc.insecure_channel(f"unix:{FOLDER}/kubelet.sock") as kubelet:
        kubelet.unary_unary("/v1beta1.Registration/Register")(request, timeout=10)
    print(f"{devices.resource}: {devices.count} registered with the kubelet", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

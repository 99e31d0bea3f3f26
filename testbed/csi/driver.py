"""The node half of a CSI driver, as the kubelet calls it: stage, publish, and back.

Every call is a JSON line of the call log, so that a test can hold what the operator rendered against what a driver is
really told.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from testbed.csi.mounts import MountError, bind, is_read_only, options_are_known, release
from testbed.csi.shares import AZURE_FILES, BadVolumeError, Export, export_of, fault_of
from testbed.protobuf import Message, field

STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, VOLUME_MOUNT_GROUP = 1, 2, 6
CAPABILITIES = {AZURE_FILES: (STAGE_UNSTAGE_VOLUME, GET_VOLUME_STATS, VOLUME_MOUNT_GROUP)}
NFS_CAPABILITIES = (GET_VOLUME_STATS,)
BYTES_UNIT = 1
DEFAULT_PERMISSIONS = {AZURE_FILES: "0777"}

Call = Callable[[Message, grpc.ServicerContext], bytes]


@dataclass(frozen=True)
class Request:
    """What a stage or publish call asks for, whichever of the two it is."""

    volume: str
    target: Path
    staging: Path | None
    read_only: bool
    options: list[str]
    attributes: dict[str, str]
    described: dict[str, Any]


@dataclass(frozen=True)
class Driver:
    """One driver by name: `file.csi.azure.com` mounts when it stages, `nfs.csi.k8s.io` when it publishes."""

    name: str
    node: str
    backing: Path
    calls: Path

    @property
    def stages(self) -> bool:
        return STAGE_UNSTAGE_VOLUME in self.capabilities

    @property
    def capabilities(self) -> tuple[int, ...]:
        return CAPABILITIES.get(self.name, NFS_CAPABILITIES)

    def identity(self) -> dict[str, Call]:
        return {
            "GetPluginInfo": lambda _message, _context: field(1, self.name) + field(2, "stand-in"),
            "GetPluginCapabilities": lambda _message, _context: b"",
            "Probe": lambda _message, _context: field(1, field(1, True)),
        }

    def node_calls(self) -> dict[str, Call]:
        return {
            "NodeGetInfo": lambda _message, _context: field(1, self.node),
            "NodeGetCapabilities": self.node_capabilities,
            "NodeStageVolume": self.stage,
            "NodeUnstageVolume": self.unstage,
            "NodePublishVolume": self.publish,
            "NodeUnpublishVolume": self.unpublish,
            "NodeGetVolumeStats": self.statistics,
        }

    def node_capabilities(self, _message: Message, _context: grpc.ServicerContext) -> bytes:
        return b"".join(field(1, field(1, field(1, capability))) for capability in self.capabilities)

    def stage(self, message: Message, context: grpc.ServicerContext) -> bytes:
        request = _staging(message)
        self.log("NodeStageVolume", request.described)
        self._mount(request, context)
        return b""

    def publish(self, message: Message, context: grpc.ServicerContext) -> bytes:
        request = _publishing(message)
        self.log("NodePublishVolume", request.described)
        if self.stages and request.staging is not None:
            bind(request.staging, request.target, request.read_only)
        else:
            self._mount(request, context)
        return b""

    def unstage(self, message: Message, _context: grpc.ServicerContext) -> bytes:
        self.log("NodeUnstageVolume", {"volume": message.text(1), "target": message.text(2)})
        release(Path(message.text(2)))
        return b""

    def unpublish(self, message: Message, _context: grpc.ServicerContext) -> bytes:
        self.log("NodeUnpublishVolume", {"volume": message.text(1), "target": message.text(2)})
        release(Path(message.text(2)))
        return b""

    def statistics(self, message: Message, _context: grpc.ServicerContext) -> bytes:
        disk = os.statvfs(message.text(2))
        available, total = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
        used = (disk.f_blocks - disk.f_bfree) * disk.f_frsize
        return field(1, field(1, available) + field(2, total) + field(3, used) + field(4, BYTES_UNIT))

    def log(self, call: str, described: dict[str, Any]) -> None:
        line = json.dumps({"time": round(time.time(), 3), "driver": self.name, "call": call, **described})
        with self.calls.open("a") as log:
            log.write(line + "\n")

    def _mount(self, request: Request, context: grpc.ServicerContext) -> None:
        """Answers as the real driver does: the codes and the texts are what an operator has to read in events."""
        try:
            export = export_of(self.name, request.volume, request.attributes)
            self._suffer_fault(export, context)
            self._bind_export(export, request)
        except BadVolumeError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except MountError as error:
            context.abort(grpc.StatusCode.INTERNAL, str(error))

    def _suffer_fault(self, export: Export, context: grpc.ServicerContext) -> None:
        fault = fault_of(self.backing, export.share)
        if fault is None:
            return
        time.sleep(fault.delay_seconds)
        if fault.code:
            context.abort(grpc.StatusCode[fault.code], fault.message)

    def _bind_export(self, export: Export, request: Request) -> None:
        source = self.backing / export.path
        if not options_are_known(request.options):
            raise MountError(_as_reported(export, request, "mount.nfs: an incorrect mount option was specified"))
        if not source.is_dir():
            message = f"mount.nfs: mounting {export.source} failed, reason given by server: No such file or directory"
            raise MountError(_as_reported(export, request, message))
        bind(source, request.target, request.read_only or "ro" in request.options)
        self._set_permissions(source, request)

    def _set_permissions(self, source: Path, request: Request) -> None:
        """The real drivers chmod after mounting unless `mountPermissions` is "0"; read-only mounts refuse it."""
        mode = int(request.attributes.get("mountPermissions", DEFAULT_PERMISSIONS.get(self.name, "0")), 8)
        if mode == 0 or source.stat().st_mode & 0o7777 == mode:
            return
        if is_read_only(request.target):
            release(request.target)
            raise MountError(f"chmod {request.target}: read-only file system")
        request.target.chmod(mode)


def _as_reported(export: Export, request: Request, output: str) -> str:
    options = ",".join(["vers=4", "minorversion=1", "sec=sys", *request.options])
    return (
        f"volume({request.volume}) mount {export.source} on {request.target} failed with mount failed: exit status 32\n"
        f"Mounting command: mount\nMounting arguments: -t nfs -o {options} {export.source} {request.target}\n"
        f"Output: {output}"
    )


def _staging(message: Message) -> Request:
    capability = _capability(message.message(4))
    described = {
        "volume": message.text(1),
        "target": message.text(3),
        "attributes": message.mapping(6),
        "secrets": sorted(message.mapping(5)),
        **capability,
    }
    return Request(
        described["volume"], Path(described["target"]), None, False, capability["mountOptions"],
        described["attributes"], described,
    )  # fmt: skip


def _publishing(message: Message) -> Request:
    capability = _capability(message.message(5))
    described = {
        "volume": message.text(1),
        "staging": message.text(3),
        "target": message.text(4),
        "readOnly": message.flag(6),
        "attributes": message.mapping(8),
        "secrets": sorted(message.mapping(7)),
        **capability,
    }
    staging = Path(described["staging"]) if described["staging"] else None
    return Request(
        described["volume"], Path(described["target"]), staging, described["readOnly"], capability["mountOptions"],
        described["attributes"], described,
    )  # fmt: skip


def _capability(message: Message) -> dict[str, Any]:
    mount = message.message(2)
    return {
        "fsType": mount.text(1),
        "mountOptions": mount.texts(2),
        "mountGroup": mount.text(3),
        "accessMode": message.message(3).number(1),
    }

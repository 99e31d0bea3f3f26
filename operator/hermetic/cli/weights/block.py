"""The `weights:` block of a ModelDeployment that serves what was staged: digest, facts, allowed files and caches."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermetic.weights.copying import Staged
    from hermetic.weights.staging import Options

_MOUNTS = Path("/proc/self/mountinfo")
_NFS = frozenset({"nfs", "nfs4", "aznfs"})
_AZURE = re.compile(r"(?P<account>[a-z0-9]{3,24})\.(?:privatelink\.)?file\.core\.(?P<cloud>[a-z.]+)")
_PUBLIC_CLOUD = "windows.net"
_LOOPBACK = re.compile(r"127\.[0-9.]+|localhost")
_ESCAPED = re.compile(r"\\([0-7]{3})")

_ACCOUNT, _SHARE, _REGISTRY = "contosomodels", "models", "contoso.azurecr.io"
"""Examples, where nothing on this host says which share or registry it is."""
_NOT_IN_IMAGE_NAMES = re.compile(r"[^a-z0-9]+")


def weights_block(
    staged: Staged, source: Path, destination: Path, options: Options, caches: dict[str, Any]
) -> dict[str, Any]:
    """The value of `spec.weights`."""
    allow = sorted(options.allowed.used)
    integrity = {"integrity": {"digest": staged.root, **({"allow": allow} if allow else {})}}
    return {
        **_source(staged, source, destination, options),
        **({} if staged.image else integrity),
        **({} if staged.facts is None else {"facts": staged.facts}),
        **caches,
    }


def wrong_with_block(block: dict[str, Any]) -> str:
    """Why a ModelDeployment cannot have this block; "" where it can."""
    from pydantic import ValidationError

    from hermetic.api.validation_errors import problems_of
    from hermetic.api.weights import Weights

    try:
        Weights.model_validate(block)
    except ValidationError as error:
        problem = problems_of(error, Weights)[0]
        return f"weights.{problem.path} {problem.message}"
    return ""


def block_as_text(block: dict[str, Any], excludes: tuple[str, ...], *, is_example: bool) -> str:
    """YAML, a line for each field, with comments about what to replace and what was left out."""
    member = next(iter(block))
    lines = [f"# Write the name of your own share or registry into {member}."] if is_example else []
    lines += [f"# Staged with --exclude {pattern!a}" for pattern in excludes]
    # A value in JSON is one in YAML.
    fields = (f"  {name}: {json.dumps(value)}" for name, value in block.items())
    return "\n".join((*lines, "weights:", *fields))


def is_on_known_share(destination: Path, staged: Staged) -> bool:
    """Whether the block names the share by what is mounted."""
    return not staged.image and share_of(destination) is not None


def _source(staged: Staged, source: Path, destination: Path, options: Options) -> dict[str, Any]:
    if not staged.image:
        folder = {"azureFiles": {"account": _ACCOUNT, "share": _SHARE, "folder": destination.absolute().name}}
        return share_of(destination) or folder
    image = options.image
    path = image.path if image is not None else ""
    if image is not None and image.base is not None:
        return {"bakedImage": {"path": f"/{path}"}}
    name = _NOT_IN_IMAGE_NAMES.sub("-", source.absolute().name.casefold()).strip("-") or "model"
    return {
        "imageVolume": {"reference": f"{_REGISTRY}/models/{name}@{staged.image}", **({"path": path} if path else {})}
    }


def share_of(folder: Path, mounts: str | None = None) -> dict[str, Any] | None:
    """The member of `spec.weights` for a folder, `azureFiles` or `nfs`; None where it lies on no NFS mount.

    `mounts`: the text of /proc/self/mountinfo (proc_pid_mountinfo(5)).
    """
    absolute_folder = os.path.abspath(folder)  # noqa: PTH100 - resolve() would follow links
    lines = _lines() if mounts is None else mounts.splitlines()
    mount: tuple[str, str] | None = None
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if len(fields) < 5 or len(kind) < 2:
            continue
        point = _unescaped(fields[4])
        is_above = absolute_folder == point or absolute_folder.startswith(f"{point.rstrip('/')}/")
        if is_above and (mount is None or len(point) >= len(mount[0])):
            source = f"{_unescaped(kind[1])}{'' if fields[3] == '/' else _unescaped(fields[3])}"
            mount = point, source if kind[0] in _NFS else ""
    if mount is None or ":/" not in mount[1]:
        return None
    server, _, export = mount[1].partition(":/")
    return _member(server, export.strip("/"), absolute_folder[len(mount[0].rstrip("/")) :].strip("/"))


def _member(server: str, export: str, folder: str) -> dict[str, Any]:
    matched = _AZURE.fullmatch(server)
    account, _, remainder = export.partition("/")
    share, _, above = remainder.partition("/")
    # A mount over TLS has stunnel on this host as its server; the export still begins with the storage account.
    if share and (matched or _LOOPBACK.fullmatch(server)):
        cloud = matched["cloud"] if matched else _PUBLIC_CLOUD
        named = {"server": f"{account}.file.core.{cloud}"} if cloud != _PUBLIC_CLOUD else {}
        return {"azureFiles": {"account": account, **named, "share": share, **_folder(above, folder)}}
    return {"nfs": {"server": server, "path": f"/{export}", **_folder("", folder)}}


def _folder(above: str, folder: str) -> dict[str, str]:
    path = "/".join(part for part in (above, folder) if part)
    return {"folder": path} if path else {}


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda matched: chr(int(matched[1], 8)), text)


def _lines() -> list[str]:
    try:
        return _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []

"""What to do about a registry or share that is not allowed: correct the name, copy into an allowed one, or ask.

The order is that of safety: a line that allows a mistyped name or a public registry is never the first suggestion.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from hermetic.api.allow_lists import AllowedRegistry, AllowedShare
from hermetic.api.text import first_of

_AZURE_REGISTRY = ".azurecr.io"
_DOCKER = "docker.io"
_SIMILARITY = 0.8
_MOST_NAMED = 3


def registry_suggestion(reference: str, allowed: list[AllowedRegistry], line: str) -> str:
    """What to do about the image; `allowed` are the registries of its namespace, `line` would allow this one."""
    host = reference.partition("/")[0]
    repositories = [name for entry in allowed if entry.host == host for name in entry.repositories]
    if repositories:
        listed = first_of(sorted(set(repositories)), _MOST_NAMED)
        return f"of this registry these are allowed: {listed}; {_platform_team('registries')}"
    near = closest(host, [entry.host for entry in allowed])
    if near:
        return f"did you mean '{near}', which is allowed there? If not, {_platform_team('registries')}"
    if not _is_host(host):
        return _mirror(reference, allowed)
    return f"{_mirror(reference, allowed)}; or {_platform_team('registries', line)}"


def share_suggestion(name: str, allowed: Iterable[AllowedShare], line: str) -> str:
    """What to do about the share `name` ("ACCOUNT/SHARE" or "SERVER:PATH"); `allowed` are those of its namespace."""
    names = sorted({share_name(entry) for entry in allowed})
    if name in names:
        return f"leave `server` out, or {_platform_team('shares', line)}"
    near = closest(name, names)
    if near:
        return f"did you mean '{near}', which is allowed there? If not, {_platform_team('shares')}"
    listed = f"copy the weights to an allowed share, which is {first_of(names, _MOST_NAMED)}; or " if names else ""
    return f"{listed}{_platform_team('shares', line)}"


def share_name(entry: AllowedShare) -> str:
    """The name by which messages call an entry of `shares`."""
    return f"{entry.server}:{entry.path}" if entry.path else f"{entry.account}/{entry.share}"


def closest(name: str, candidates: Iterable[str]) -> str:
    """The candidate that the name is probably a misspelling of; "" for none."""
    return next(iter(difflib.get_close_matches(name, candidates, n=1, cutoff=_SIMILARITY)), "")


def _is_host(name: str) -> bool:
    """Whether the first part of a reference is a registry: without a dot or a port it is a folder of Docker Hub."""
    return "." in name or ":" in name or name == "localhost"


def _mirror(reference: str, allowed: list[AllowedRegistry]) -> str:
    """How to copy the image by digest into an allowed registry; the whole command for one of Azure."""
    host, _, below = reference.partition("/")
    note, source = "", reference
    if not _is_host(host):
        note = f"the image names no registry, and '{host}' is a folder of {_DOCKER}; "
        source, below = f"{_DOCKER}/{reference}", reference
    entry = next((entry for entry in allowed if entry.host.endswith(_AZURE_REGISTRY)), None)
    if entry is None:
        hosts = first_of([entry.host for entry in allowed], _MOST_NAMED)
        return f"{note}copy the image into an allowed registry{f', which is {hosts}' if hosts else ''}"
    path, _, digest = below.partition("@")
    target = "/".join([*(prefix.rstrip("/") for prefix in entry.repositories[:1]), path])
    name = entry.host.removesuffix(_AZURE_REGISTRY)
    command = f"az acr import --name {name} --source {source} --repository {target}"
    return f"{note}copy it with '{command}' and set the image to {entry.host}/{target}@{digest}"


def _platform_team(key: str, line: str = "") -> str:
    return f"ask the platform team to allow it in the operator's configuration, under `{key}`{line and f': {line}'}"

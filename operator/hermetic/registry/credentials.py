"""Credentials of a registry: given, in the environment, or in a file that `docker login` or `podman login` writes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermetic.errors import InputError

USERNAME_VARIABLE, PASSWORD_VARIABLE = "HERMETIC_REGISTRY_USERNAME", "HERMETIC_REGISTRY_PASSWORD"
TOKEN_USER = "00000000-0000-0000-0000-000000000000"  # noqa: S105 - a user name
"""The user name that goes with a token of `az acr login --expose-token`.

https://learn.microsoft.com/azure/container-registry/container-registry-authentication
"""
_LARGEST_FILE = 2**20


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and a password, or a refresh token of the registry; `origin` names where they were found."""

    username: str
    secret: str = field(repr=False)
    origin: str
    is_refresh_token: bool = False


def given_credentials(username: str, password: str, origin: str) -> Credentials:
    """Credentials as typed; the user of tokens of Azure has a refresh token in place of a password."""
    return Credentials(username, password, origin, is_refresh_token=username == TOKEN_USER)


def find_credentials(host: str, environment: Mapping[str, str]) -> Credentials | None:
    """Credentials for the registry at `host` (with its port); None where there are none. Raises InputError."""
    username, password = environment.get(USERNAME_VARIABLE, ""), environment.get(PASSWORD_VARIABLE, "")
    if password:
        return given_credentials(username or TOKEN_USER, password, f"the variable {PASSWORD_VARIABLE}")
    for file in _files(environment):
        if (credentials := _of_file(file, host)) is not None:
            return credentials
    return None


def _files(environment: Mapping[str, str]) -> Iterator[Path]:
    """In the order in which containers/image and docker search: containers-auth.json(5), docker's DOCKER_CONFIG."""
    home = environment.get("HOME", "")
    if file := environment.get("REGISTRY_AUTH_FILE"):
        yield Path(file)
    if folder := environment.get("XDG_RUNTIME_DIR"):
        yield Path(folder) / "containers" / "auth.json"
    if folder := environment.get("DOCKER_CONFIG") or (f"{home}/.docker" if home else ""):
        yield Path(folder) / "config.json"


def _of_file(file: Path, host: str) -> Credentials | None:
    try:
        with file.open("rb") as opened:
            document = json.loads(opened.read(_LARGEST_FILE))
    except OSError:
        return None
    except ValueError as error:
        raise InputError(
            f"{file}: is not JSON: {error}", fix="correct it, or give --username and --password-stdin"
        ) from None
    settings = document if isinstance(document, dict) else {}
    for key, entry in _entries(settings, "auths"):
        if _host_of(key) == host and isinstance(entry, dict) and (credentials := _of_entry(entry, file)):
            return credentials
    if helper := _helper(settings, host):
        fix = f"docker-credential-{helper} get, and give what it prints with --username and --password-stdin"
        raise InputError(f"{file}: the program '{helper}' keeps the credentials of {host}; it is not run", fix=fix)
    return None


def _entries(settings: dict[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    entries = settings.get(name)
    yield from entries.items() if isinstance(entries, dict) else ()


def _of_entry(entry: dict[str, Any], file: Path) -> Credentials | None:
    username, password = _decoded(entry.get("auth"))
    if token := entry.get("identitytoken"):
        return Credentials(username or TOKEN_USER, str(token), str(file), is_refresh_token=True)
    return given_credentials(username, password, str(file)) if password else None


def _decoded(auth: Any) -> tuple[str, str]:
    try:
        username, _, password = base64.b64decode(str(auth or ""), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return username, password.rstrip("\0")


def _helper(settings: dict[str, Any], host: str) -> str:
    """The program that keeps credentials, where the file has an entry for this host that holds none itself."""
    if named := next((helper for key, helper in _entries(settings, "credHelpers") if _host_of(key) == host), ""):
        return str(named)
    is_listed = any(_host_of(key) == host for key, _ in _entries(settings, "auths"))
    return str(settings.get("credsStore") or "") if is_listed else ""


def _host_of(key: str) -> str:
    """`docker login` writes a host, and wrote a URL in the past; podman writes a path too, which is not read here."""
    return (
        key.removeprefix("https://").removeprefix("http://").removesuffix("/").removesuffix("/v2").removesuffix("/v1")
    )

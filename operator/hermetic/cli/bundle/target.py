"""The registry that a bundle is loaded into: its options on the command line, and the names that it gives."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from hermetic.errors import InputError
from hermetic.registry.credentials import TOKEN_USER, Credentials, find_credentials, given_credentials
from hermetic.registry.transport import Endpoint

Function = TypeVar("Function", bound=Callable[..., Any])
_HOST = re.compile(r"[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*(?::[0-9]{1,5})?")
_PREFIX = re.compile(r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*")
_LARGEST_PASSWORD = 64 * 2**10


@dataclass(frozen=True, slots=True)
class Target:
    """A registry, the path in it, its credentials (None for none), and a PEM file of an authority to trust."""

    endpoint: Endpoint
    prefix: str
    credentials: Credentials | None
    authority: Path | None

    def repository(self, name: str) -> str:
        """The repository below the path."""
        return f"{self.prefix}/{name}" if self.prefix else name


def target_options(function: Function) -> Function:
    """--to, --prefix, --username, --password-stdin, --ca-file, --plain-http and --token-host."""
    for option in (
        click.option(
            "--token-host", default="", metavar="HOST", help="Another host that issues its tokens and gets the login."
        ),
        click.option("--plain-http", is_flag=True, help="The registry has no TLS."),
        click.option(
            "--ca-file", type=click.Path(path_type=Path), metavar="FILE", help="PEM of an authority to trust too."
        ),
        click.option("--password-stdin", is_flag=True, help="Read the password, or a token, from standard input."),
        click.option("--username", default="", help="User. Default with --password-stdin: that of a token of Azure."),
        click.option(
            "--prefix", default="", metavar="PATH", help="Path before the repositories hermetic, charts/hermetic."
        ),
        click.option("--to", "host", required=True, metavar="HOST", help="The registry, such as contoso.azurecr.io."),
    ):
        function = option(function)
    return function


def target_of(options: Mapping[str, Any]) -> Target:
    """The registry that the options name. Raises InputError."""
    host, token_host, prefix = options["host"], options["token_host"], options["prefix"]
    for option, name in (("--to", host), ("--token-host", token_host)):
        if name and not _HOST.fullmatch(name):
            raise InputError(
                f"{option} {name}: is not a host, or a host with a port",
                fix=f"{option} contoso.azurecr.io; a path goes into --prefix",
            )
    if prefix and not _PREFIX.fullmatch(prefix):
        raise InputError(f"--prefix {prefix}: is not the path of a repository in lower case", fix="--prefix platform")
    endpoint = Endpoint(host.lower(), options["plain_http"], token_host.lower())
    credentials = _credentials(endpoint.host, options["username"], password_stdin=options["password_stdin"])
    return Target(endpoint, prefix, credentials, options["ca_file"])


def _credentials(host: str, username: str, *, password_stdin: bool) -> Credentials | None:
    if not password_stdin:
        if username:
            raise InputError("--username: has no password", fix="give it on standard input with --password-stdin")
        return find_credentials(host, os.environ)
    password = sys.stdin.read(_LARGEST_PASSWORD).strip("\r\n")
    if not password:
        raise InputError("--password-stdin: standard input is empty", fix="az acr login --name NAME --expose-token")
    return given_credentials(username or TOKEN_USER, password, "standard input")

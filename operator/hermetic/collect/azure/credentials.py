"""The token for ARM: from HERMETIC_ARM_TOKEN, or from azure-identity's default chain. It is kept only here.

No repr, log line, error or snapshot of this package contains the token.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hermetic.collect.azure.clouds import Cloud
from hermetic.errors import InputError, Unreachable

VARIABLE = "HERMETIC_ARM_TOKEN"
FIX = f"log in ('az login'), or put a bearer token into {VARIABLE}; --snapshot FILE audits without Azure"
LONGEST = 300
_REFUSED = re.compile(r"AADSTS[0-9]+: [^\n]*")
_CLI = re.compile(r"AzureCliCredential: ([^\n]*)")
_NONE = "DefaultAzureCredential failed to retrieve a token"
EARLY_SECONDS = 300
"""A token is renewed this long before it expires."""


class Tokens(Protocol):
    """A source of bearer tokens."""

    async def current(self) -> str:
        """A token. Raises Unreachable when none can be obtained."""

    async def another(self) -> str:
        """A new token, after ARM refused the current one; "" when none can be obtained."""


class GivenToken:
    """The token of the environment; it cannot be renewed."""

    def __init__(self, token: str) -> None:
        # It goes into a header: an invalid value must fail here, and not later in an error that would show it.
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError(
                f"{VARIABLE} is not a bearer token: it holds blanks or characters that a header cannot carry"
            )
        self._token = token

    async def current(self) -> str:
        return self._token

    async def another(self) -> str:
        return ""


class IdentityTokens:
    """Tokens of azure-identity, which is imported when the first one is needed. `make` builds a credential."""

    def __init__(self, cloud: Cloud, now: Callable[[], float], make: Callable[[Cloud], Any] | None = None) -> None:
        self._cloud = cloud
        self._now = now
        self._make = make or _default_chain
        self._credential: Any = None
        self._token = ""
        self._expires = 0.0

    async def current(self) -> str:
        """The kept token, or a new one shortly before it expires."""
        if not self._token or self._now() > self._expires - EARLY_SECONDS:
            await self._fetch()
        return self._token

    async def another(self) -> str:
        """A token of a new credential: the old one would return its cached token."""
        self._credential = None
        try:
            await self._fetch()
        except Unreachable:
            return ""
        return self._token

    async def _fetch(self) -> None:
        # The chain runs subprocesses and blocking HTTP, which must not block the event loop.
        token, expires = await asyncio.to_thread(self._asked)
        self._token, self._expires = token, float(expires)

    def _asked(self) -> tuple[str, float]:
        from azure.core.exceptions import AzureError

        try:
            if self._credential is None:
                self._credential = self._make(self._cloud)
            token = self._credential.get_token(self._cloud.scope)
        except (AzureError, OSError, ValueError) as error:
            raise Unreachable(f"no Azure login for {self._cloud.endpoint}: {_why(error)}", fix=FIX) from None
        return str(token.token), float(token.expires_on)


def tokens_for(cloud: Cloud, environment: Mapping[str, str], now: Callable[[], float]) -> Tokens:
    """The token of the environment when it is set, else the default chain. `now` is the time in Unix seconds."""
    token = environment.get(VARIABLE, "").strip()
    return GivenToken(token) if token else IdentityTokens(cloud, now)


def _default_chain(cloud: Cloud) -> Any:
    from azure.identity import DefaultAzureCredential

    # It logs a page about its attempts; the error has the relevant part.
    logging.getLogger("azure.identity").setLevel(logging.CRITICAL)
    return DefaultAzureCredential(authority=cloud.authority) if cloud.authority else DefaultAzureCredential()


def _why(error: BaseException) -> str:
    """One sentence of azure-identity's long error message."""
    text = str(error)
    if (refused := _REFUSED.search(text)) is not None:
        return f"Microsoft Entra ID refused the one that was found: {refused[0][:LONGEST]}"
    if _NONE in text:
        cli = _CLI.search(text)
        tried = "no environment variables, no workload or managed identity"
        return f"{tried}; Azure CLI: {cli[1][:LONGEST]}" if cli is not None else tried
    return f"{type(error).__name__}: {next(iter(text.splitlines()), '')[:LONGEST]}"

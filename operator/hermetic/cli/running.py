"""Coroutines of commands, run to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(what: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, for a result of any size.

    When asyncio gives the handler of SIGINT back, it asks `signal` which one is set, and that writes the handler out in
    full, twice, with its task and all that the task returned. Of an estate that takes more memory than the estate. So
    the task returns nothing.
    """
    found: list[T] = []

    async def kept() -> None:
        found.append(await what)

    asyncio.run(kept())
    return found[0]

"""Runs the coroutines of commands."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, for a result of any size.

    When asyncio restores the handler of SIGINT, it asks `signal` for the current one, which formats that handler twice,
    with its task and the task's result. For an estate that text takes more memory than the estate. So the task returns
    nothing.
    """
    results: list[T] = []

    async def kept() -> None:
        results.append(await coroutine)

    asyncio.run(kept())
    return results[0]

"""Long loops on the event loop, which must never be blocked for more than some milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def cooperatively(items: Iterable[T], *, every: int) -> AsyncIterator[T]:
    """Yield the items, and give control to the event loop after each `every` of them."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)

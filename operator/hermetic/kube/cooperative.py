"""Long loops on the event loop, which must never be held for more than some milliseconds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")


async def cooperatively(items: Iterable[T], *, every: int) -> AsyncIterator[T]:
    """The items; after each `every` of them everything else that waits gets its turn."""
    for number, item in enumerate(items, 1):
        yield item
        if number % every == 0:
            await asyncio.sleep(0)

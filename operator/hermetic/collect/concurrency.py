"""Runs coroutines concurrently; the first failure cancels the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


async def side_by_side(things: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """All results, in the order of the arguments. Raises the first failure itself, not an exception group."""
    tasks: list[asyncio.Task[T]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks.extend(group.create_task(thing) for thing in things)
    except BaseExceptionGroup as failed:
        raise _first(failed) from None
    return [task.result() for task in tasks]


async def both(coroutine: Coroutine[Any, Any, A], other: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """As `side_by_side`, for two of different types."""
    things: tuple[Coroutine[Any, Any, Any], ...] = (coroutine, other)
    first, second = await side_by_side(things)
    return first, second


def _first(failed: BaseExceptionGroup[Any]) -> BaseException:
    error: BaseException = failed
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

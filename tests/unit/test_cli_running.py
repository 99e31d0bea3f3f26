"""Running a coroutine to its end: its result is handed back, and never written out."""

from __future__ import annotations

import asyncio

import pytest

from hermetic.cli.running import run


class Estate:
    times_written = 0

    def __repr__(self) -> str:
        self.times_written += 1
        return "an estate"


def test_the_result_is_handed_back_without_being_written_out() -> None:
    estate = Estate()

    async def look() -> Estate:
        await asyncio.sleep(0)
        return estate

    assert run(look()) is estate
    assert estate.times_written == 0


def test_what_was_raised_is_raised() -> None:
    async def look() -> None:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        run(look())

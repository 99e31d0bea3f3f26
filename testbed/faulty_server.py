"""A server in a thread of its own, with faults: what the simulator of Azure and the proxy of the API server share."""

from __future__ import annotations

import asyncio
import threading
from typing import Generic, Self, TypeVar

F = TypeVar("F")


class FaultyServer(Generic[F]):
    """Serves from `start` to `stop`. `_serve` of a subclass sets `_loop`, `_end` and, once it listens, `_started`."""

    NAME = "faulty-server"
    _loop: asyncio.AbstractEventLoop
    _end: asyncio.Event

    def __init__(self, faults: list[F]) -> None:
        self._faults = faults
        self._started = threading.Event()
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Returns when it listens."""
        self._thread = threading.Thread(target=self._run, name=self.NAME, daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Breaks what is open and returns when the thread has ended."""
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def inject(self, fault: F) -> F:
        """From now on; delays add up."""
        self._faults = [*self._faults, fault]
        return fault

    def lift(self, *faults: F) -> None:
        """Takes faults away; all of them when none is named."""
        gone = {id(fault) for fault in faults or self._faults}
        self._faults = [fault for fault in self._faults if id(fault) not in gone]

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - the thread ends here: start() raises it
            self._failure = error
        finally:
            self._started.set()

    async def _serve(self) -> None:
        raise NotImplementedError

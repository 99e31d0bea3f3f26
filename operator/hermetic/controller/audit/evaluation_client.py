"""Client of the evaluation process: sends a case and awaits the findings without blocking the event loop.

Every failure of that process is raised as EvaluationFailed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from dataclasses import dataclass

import structlog

from hermetic.audit.model.findings import Finding
from hermetic.controller.audit.evaluation_case import LENGTH_BYTES, Case, length_of, packed_case, unpacked

IDLE_SECONDS = 60.0
"""After this long without a case the process is ended, which frees its memory."""
LONGEST_SECONDS = 240.0
"""Less than the time after which the operator reports itself unhealthy. Ten thousand pods take ten seconds."""
COMMAND = (sys.executable, "-m", "hermetic.controller.audit.evaluation_process")

log = structlog.get_logger(__name__)


class EvaluationFailed(Exception):
    """There are no findings: a check raised, or the evaluation process ended or did not answer."""


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class EvaluationClient:
    """Evaluates one case at a time in another process, which it starts when there is none."""

    def __init__(self, command: tuple[str, ...] = COMMAND, *, longest: float = LONGEST_SECONDS) -> None:
        self._command = command
        self._longest = longest
        self._running: _Running | None = None
        self._idle: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id of the evaluation process; None where there is none."""
        return self._running.process.pid if self._running is not None else None

    async def __call__(self, case: Case) -> tuple[Finding, ...]:
        """The findings of a case. Raises EvaluationFailed."""
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(self._longest):
                findings = await self._exchanged(case)
        except TimeoutError:
            await self._end()
            raise EvaluationFailed(f"no findings after {self._longest:.0f} s") from None
        except (OSError, EOFError) as error:
            code = await self._end()
            raise EvaluationFailed(f"the evaluation process ended (exit code {code})") from error
        except BaseException:
            await self._end()  # a late answer must not be read as the answer to the next case
            raise
        self._idle = asyncio.create_task(self._end_when_idle())
        return findings

    async def close(self) -> None:
        """End the process; the next case starts a new one."""
        if self._idle is not None:
            self._idle.cancel()
        await self._end()

    async def _end_when_idle(self) -> None:
        await asyncio.sleep(IDLE_SECONDS)
        await self._end()

    async def _end(self) -> int | None:
        running, self._running = self._running, None
        if running is None:
            return None
        running.writer.close()
        with contextlib.suppress(OSError):
            await running.writer.wait_closed()
        running.process.kill()
        return await asyncio.to_thread(running.process.wait)

    async def _exchanged(self, case: Case) -> tuple[Finding, ...]:
        if self._running is not None and self._running.process.poll() is not None:
            await self._end()
        running = self._running = self._running or await _started(self._command)
        for frame in packed_case(case):
            running.writer.write(frame)
            await running.writer.drain()
            await asyncio.sleep(0)
        findings: list[Finding] = []
        while (some := await _received(running.reader)) is not None:
            if isinstance(some[0], str):
                words, trace = some
                log.error("a check failed", because=words, trace=trace)
                raise EvaluationFailed(words)
            findings += some
        return tuple(findings)


async def _started(command: tuple[str, ...]) -> _Running:
    ours, theirs = socket.socketpair()
    path = os.pathsep.join(part for part in sys.path if part)
    environment = {**os.environ, "PYTHONPATH": path}  # however this process was started
    with theirs:
        process = subprocess.Popen(command, stdin=theirs.fileno(), stdout=theirs.fileno(), env=environment)  # noqa: S603, ASYNC220
    return _Running(process, *await asyncio.open_connection(sock=ours))


async def _received(reader: asyncio.StreamReader) -> tuple[Finding, ...] | tuple[str, str] | None:
    head = await reader.readexactly(LENGTH_BYTES)
    found: tuple[Finding, ...] | tuple[str, str] | None = unpacked(await reader.readexactly(length_of(head)))
    return found

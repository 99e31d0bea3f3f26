"""The command line as tests use it: in this process where calls are many, as a program where the process matters."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from hermetic.cli import main

PROGRAM = (sys.executable, "-m", "hermetic")


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines that begin with 'error: '."""
        return [line for line in self.err.splitlines() if line.startswith("error: ")]

    @property
    def fixes(self) -> list[str]:
        """The lines that begin with 'fix: '."""
        return [line for line in self.err.splitlines() if line.startswith("fix: ")]


def hermetic(*arguments: str | Path, stdin: str | bytes = b"") -> Ran:
    """One command in this process: its streams are not a terminal."""
    out, err = _stream(b""), _stream(b"")
    typed = stdin.encode() if isinstance(stdin, str) else stdin
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "stdin", _stream(typed)):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            return Ran(int(end.code or 0), _written(out), _written(err))
    raise AssertionError("a command ends by exiting")


def hermetic_process(
    *arguments: str | Path, stdin: bytes = b"", environ: Mapping[str, str] | None = None, timeout: float = 60
) -> Ran:
    """One command as a process of its own."""
    done = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(environ or {})},
        timeout=timeout,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def _stream(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()

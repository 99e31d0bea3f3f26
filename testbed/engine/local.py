"""The stand-in as a process of this machine, from the very files that an image of it would have."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from testbed.engine import image_files

READY = re.compile(r"Starting hermetic engine stand-in on port (\d+)")
START_SECONDS = 90


def unpack(root: Path) -> Path:
    """Writes the image's files below `root`."""
    for path, content, mode in image_files():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.chmod(mode)
    return root


@dataclass
class Running:
    """A started stand-in; everything it prints is in `output`."""

    process: subprocess.Popen[str]
    output: list[str] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False

    def follow(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.output.append(line.rstrip("\n"))
                self._news.notify_all()
        with self._news:
            self._closed = True
            self._news.notify_all()

    def wait_for_line(self, pattern: str | re.Pattern[str], seconds: float = START_SECONDS) -> re.Match[str]:
        """The first line that matches. Raises AssertionError with all output when it does not come."""

        def found() -> re.Match[str] | None:
            return next((match for line in self.output if (match := re.search(pattern, line))), None)

        with self._news:
            self._news.wait_for(lambda: found() or self._closed, seconds)
            match = found()
        if match is None:
            raise AssertionError(f"no line like {pattern!r} in:\n" + "\n".join(self.output))
        return match

    @property
    def port(self) -> int:
        """The port it serves on, once it is ready."""
        return int(self.wait_for_line(READY)[1])

    @property
    def text(self) -> str:
        return "\n".join(self.output)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def exit_code(self, seconds: float = START_SECONDS) -> int:
        """Waits for the end, and for the last line."""
        code = self.process.wait(seconds)
        with self._news:
            self._news.wait_for(lambda: self._closed, seconds)
        return code


@contextmanager
def running(root: Path, program: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator[Running]:
    """Starts `root`/`program` with nothing in its environment but PATH and what is given; ends it at the end."""
    process = subprocess.Popen(
        [sys.executable, str(root / program), *arguments],
        env={"PATH": os.environ["PATH"], **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    started = Running(process)
    follower = threading.Thread(target=started.follow, daemon=True)
    follower.start()
    try:
        yield started
    finally:
        process.kill()
        process.wait()
        follower.join()
        assert process.stdout is not None
        process.stdout.close()

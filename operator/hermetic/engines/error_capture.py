"""The command that keeps an engine's first errors for the status. Its source is an argument; nothing is mounted.

The kubelet takes the last 4 KiB of /dev/termination-log for the container's message, and the last 2 KiB of the log
only where that file is empty. The file is written only when the engine fails.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


def keeping_first_errors(*command: str) -> tuple[str, ...]:
    """The command, run by the `python3` of the image: any of 3.8 or later will do."""
    return ("python3", "-I", "-S", "-B", "-c", _program(), *command)


@cache
def _program() -> str:
    return resources.files("hermetic.in_container").joinpath("error_capture.py").read_text(encoding="utf-8")

"""Progress messages of the test bed: on stderr, so that stdout stays data."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """One line of progress."""
    print(f"testbed: {message}", file=sys.stderr, flush=True)

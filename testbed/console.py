"""What the test bed tells the person who waits for it: on stderr, so that stdout stays data."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """One line of progress."""
    print(f"testbed: {message}", file=sys.stderr, flush=True)

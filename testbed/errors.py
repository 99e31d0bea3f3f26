"""What can go wrong in the test bed.

BedError
├── CannotRunError     this machine lacks something a person can install; tests skip with the reason
├── BuildError         `go build` said no; carries the end of its output
├── ComponentError     a program died or did not become ready; carries the end of its log
└── ApiError           the API server answered with an error; carries the HTTP status
"""

from __future__ import annotations


class BedError(Exception):
    """Anything the test bed gives up on; the message is meant for a person."""


class CannotRunError(BedError):
    """The machine lacks something that the message names, and nothing was started."""


class BuildError(BedError):
    """A program could not be built."""


class ComponentError(BedError):
    """A started program died or did not get ready in time."""


class ApiError(BedError):
    """The API server answered with an error status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason

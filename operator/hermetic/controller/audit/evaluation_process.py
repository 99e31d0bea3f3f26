"""`python -m hermetic.controller.audit.evaluation_process`: evaluates the cases on standard input until it ends.

A separate process, since ten thousand pods take seconds of processor time: in the operator's process, even in a
thread, garbage collection alone would block the event loop for half a second.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from typing import Any, BinaryIO

from hermetic.audit.model.findings import Finding
from hermetic.controller.audit.evaluation_case import (
    LENGTH_BYTES,
    Case,
    length_of,
    packed_fault,
    packed_findings,
    unpacked,
    unpacked_case,
)

NICENESS = 10
"""Processes that need the same processor have priority over the evaluation."""
LONGEST_WORDS = 500


def main() -> int:
    """Evaluate case after case; ends when the operator closes the pipe or ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the operator handles Ctrl-C and then closes the pipe
    os.nice(NICENESS)
    # The garbage is the case itself: collected once, after its answer was sent.
    gc.disable()
    gc.freeze()
    with contextlib.suppress(BrokenPipeError), _answers() as target:
        while _answered_one(sys.stdin.buffer, target):
            gc.collect()
    return 0


def _answers() -> BinaryIO:
    """Reserve standard output for answers: from now on `print` writes to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _answered_one(source: BinaryIO, target: BinaryIO) -> bool:
    """Answer one case; False at the end of the input."""
    bare = _received(source)
    if not isinstance(bare, Case):
        return False
    for frame in evaluated(bare, iter(lambda: _received(source), None)):
        target.write(frame)
    target.flush()
    return True


def evaluated(bare: Case, parts: Iterator[Any]) -> Iterator[bytes]:
    try:
        findings: tuple[Finding, ...] = unpacked_case(bare, parts).findings()
    except Exception as error:  # noqa: BLE001 - it is sent as the answer
        # No later handler could report it: the operator logs it and goes on reconciling.
        yield packed_fault(repr(error)[:LONGEST_WORDS], traceback.format_exc())
    else:
        yield from packed_findings(findings)


def _received(source: BinaryIO) -> Any:
    """The content of the next frame; None at the end of the input."""
    head = source.read(LENGTH_BYTES)
    return unpacked(source.read(length_of(head))) if len(head) == LENGTH_BYTES else None


if __name__ == "__main__":
    sys.exit(main())

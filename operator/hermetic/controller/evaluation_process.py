"""`python -m hermetic.controller.evaluation_process`: judge what comes on standard input, until it ends.

In a process of its own, since ten thousand pods take seconds of processor time: in the operator's process, in a thread
as well, the collection of garbage alone would hold the event loop for half a second.
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

from hermetic.audit.findings import Finding
from hermetic.controller.evaluation_input import Case
from hermetic.controller.framing import (
    LENGTH_BYTES,
    length_of,
    packed_fault,
    packed_findings,
    unpacked,
    unpacked_case,
)

NICENESS = 10
"""What serves models goes first where both want the same processor."""
LONGEST_WORDS = 500


def main() -> int:
    """Judge case after case; ends with the operator, whatever ends that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the operator's to see, which then closes the pipe
    os.nice(NICENESS)
    # The garbage of one case is the case, and goes when the answer is out.
    gc.disable()
    gc.freeze()
    with contextlib.suppress(BrokenPipeError), _answers() as target:
        while _judged_one(sys.stdin.buffer, target):
            gc.collect()
    return 0


def _answers() -> BinaryIO:
    """Standard output, from now on for answers alone: whatever prints, prints to standard error."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _judged_one(source: BinaryIO, target: BinaryIO) -> bool:
    """False when there is no other case."""
    bare = _received(source)
    if not isinstance(bare, Case):
        return False
    for frame in _answered(bare, iter(lambda: _received(source), None)):
        target.write(frame)
    target.flush()
    return True


def _answered(bare: Case, parts: Iterator[Any]) -> Iterator[bytes]:
    try:
        findings: tuple[Finding, ...] = unpacked_case(bare, parts).findings()
    except Exception as error:  # noqa: BLE001 - it is told as the answer
        # The last place that can tell: the operator says it, and goes on serving.
        yield packed_fault(repr(error)[:LONGEST_WORDS], traceback.format_exc())
    else:
        yield from packed_findings(findings)


def _received(source: BinaryIO) -> Any:
    """What the next frame holds; None at the end of the input."""
    head = source.read(LENGTH_BYTES)
    return unpacked(source.read(length_of(head))) if len(head) == LENGTH_BYTES else None


if __name__ == "__main__":
    sys.exit(main())

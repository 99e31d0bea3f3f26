"""What a kubelet takes for the message of a container that failed, under FallbackToLogsOnError."""

from __future__ import annotations

# kubernetes/pkg/kubelet/container/runtime.go: MaxContainerTerminationMessageLength, ...LogLength, ...LogLines
OF_A_FILE, OF_A_LOG, LINES_OF_A_LOG = 4096, 2048, 80


def message(log: bytes, written: bytes = b"") -> str:
    """The end of what was `written` to the file of last words; where that is empty, the end of the log."""
    if not written:
        lines = log.splitlines(keepends=True)[-LINES_OF_A_LOG:]
        written = b"".join(lines)[-OF_A_LOG:]
    return written[-OF_A_FILE:].decode("utf-8", "replace")

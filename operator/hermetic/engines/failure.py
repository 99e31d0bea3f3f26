"""What an engine's last words mean. The signatures were collected from real failures of the engines."""

from __future__ import annotations

import re

from hermetic.api.reasons import Reason

# Root cause first: the generic line comes last in every log, and the first match wins.
SIGNATURES: tuple[tuple[re.Pattern[str], Reason], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (r"unrecognized arguments|invalid choice: ", Reason.ENGINE_ARGUMENTS_REFUSED),
        (r"repo id must (be in the form|use alphanumeric)", Reason.MODEL_PATH_MISSING),
        (r"outgoing traffic has been disabled", Reason.FETCH_ATTEMPTED),
        (r"invalid repository id or local directory", Reason.MODEL_INCOMPLETE),
        (r"cannot find any model weights with", Reason.MODEL_INCOMPLETE),
        (r"incomplete metadata, file not fully covered", Reason.MODEL_INCOMPLETE),
        (r"couldn't instantiate the backend tokenizer", Reason.MODEL_INCOMPLETE),
        (r"no such file or directory:.*\.safetensors", Reason.MODEL_UNREADABLE),
        (r"contains custom code which must be executed", Reason.REMOTE_CODE_REQUIRED),
        (r"greater than the derived max_model_len", Reason.CONTEXT_TOO_LONG),
        (r"must be divisible by tensor parallel size", Reason.TENSOR_PARALLEL_INVALID),
        (r"larger than the available kv cache memory", Reason.GPU_MEMORY_TOO_SMALL),
        (r"no available memory for the cache blocks", Reason.GPU_MEMORY_TOO_SMALL),
        (r"cuda out of memory|outofmemoryerror", Reason.GPU_MEMORY_TOO_SMALL),
        (r"free memory on device.*less than desired gpu memory", Reason.GPU_BUSY),
        (r"permission denied: '?/weights", Reason.MODEL_UNREADABLE),
        (r"(permissionerror|read-only file system).*(cache|\.config|/home)", Reason.CACHE_UNWRITABLE),
        (r"insufficient space in /dev/shm", Reason.SHARED_MEMORY_TOO_SMALL),
        (r"cuda driver version is insufficient|error 803", Reason.DRIVER_TOO_OLD),
    )
)

_NOISE = re.compile(
    r"engine core initialization failed|^\s*(file \"|traceback|\^+$|raise |self\.|return )", re.IGNORECASE
)


def diagnose(last_words: str) -> Reason | None:
    """The reason behind a termination message, or None for words that nobody has seen yet."""
    return next((reason for pattern, reason in SIGNATURES if pattern.search(last_words)), None)


def telling_line(last_words: str, limit: int = 300) -> str:
    """The line that a person should read: the one that matches a signature, else the last that is not noise."""
    lines = [line.strip() for line in last_words.splitlines() if line.strip()]
    for line in lines:
        if any(pattern.search(line) for pattern, _ in SIGNATURES):
            return line[:limit]
    plain = [line for line in lines if not _NOISE.search(line)]
    return (plain or lines or [""])[-1][:limit]

"""Reasons for an engine's termination messages. The signatures were collected from real failures of the engines."""

from __future__ import annotations

import re

from hermetic.api.reasons import Reason

Signatures = tuple[tuple[re.Pattern[str], Reason], ...]


def compiled(*signatures: tuple[str, Reason]) -> Signatures:
    """Patterns with their reasons, case-insensitive. The first match wins."""
    return tuple((re.compile(pattern, re.IGNORECASE), reason) for pattern, reason in signatures)


# Root cause first: the generic line comes last in every log. These are vLLM's; a NIM, which contains vLLM, shares them.
SIGNATURES: Signatures = compiled(
    (r"unrecognized arguments|invalid choice: ", Reason.ENGINE_ARGUMENTS_REFUSED),
    (r"error: argument \S+: |error: ambiguous option", Reason.ENGINE_ARGUMENTS_REFUSED),
    (r"--enable-auto-tool-choice requires", Reason.ENGINE_ARGUMENTS_REFUSED),
    (r"repo id must (be in the form|use alphanumeric)", Reason.MODEL_PATH_MISSING),
    (r"outgoing traffic has been disabled", Reason.FETCH_ATTEMPTED),
    (r"downloading or loading vocab file", Reason.FETCH_ATTEMPTED),
    (r"invalid tiktoken vocab file", Reason.MODEL_INCOMPLETE),
    # A folder without its configuration is named by its path; a bare name is one that would be downloaded.
    (r"invalid repository id or local directory specified: '(?!/)", Reason.FETCH_ATTEMPTED),
    (r"invalid repository id or local directory", Reason.MODEL_INCOMPLETE),
    (r"model architectures .* (are|is) not supported", Reason.MODEL_UNSUPPORTED),
    (r"cannot find any model weights with", Reason.MODEL_INCOMPLETE),
    (r"weight files referenced in index but missing", Reason.MODEL_INCOMPLETE),
    # A truncated or empty file, or a Git LFS pointer in its place.
    (r"safetensorerror: error while deserializing header", Reason.MODEL_INCOMPLETE),
    (r"config file at .* is not a valid json file", Reason.MODEL_INCOMPLETE),
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

LONGEST_LINE = 300
_WRAPPER = re.compile(r"(engine core|workerproc) initialization failed", re.IGNORECASE)
_NOISE = re.compile(r"^\s*(file \"|traceback|\^+$|raise |self\.|return )", re.IGNORECASE)
_EXCEPTION = re.compile(r"(\([^()]*\) )?([A-Za-z_]\w*\.)*[A-Za-z_]\w*(Error|Exception)\b")


def diagnose(last_words: str, signatures: Signatures = SIGNATURES) -> Reason | None:
    """The reason behind a termination message, or None if no signature matches."""
    return next((reason for pattern, reason in signatures if pattern.search(last_words)), None)


def telling_line(last_words: str, signatures: Signatures = SIGNATURES) -> str:
    """The line to show: the one that the reason is read from, else the last error.

    Errors that only report the end of a worker process are skipped: they do not name the cause.
    """
    lines = [line.strip() for line in last_words.splitlines() if line.strip()]
    for pattern, _ in signatures:
        for line in lines:
            if pattern.search(line):
                return line[:LONGEST_LINE]
    plain = [line for line in lines if not _WRAPPER.search(line) and not _NOISE.search(line)]
    exceptions = [line for line in plain if _EXCEPTION.match(line)]
    return (exceptions or plain or lines or [""])[-1][:LONGEST_LINE]

"""Reasons for an engine's termination messages. The signatures were collected from real failures of the engines."""

from __future__ import annotations

import re

from hermetic.api.engine_reasons import EngineReason
from hermetic.api.text import cut_middle

Signatures = tuple[tuple[re.Pattern[str], EngineReason], ...]


def compiled(*signatures: tuple[str, EngineReason]) -> Signatures:
    """Patterns with their reasons, case-insensitive. The first match wins."""
    return tuple((re.compile(pattern, re.IGNORECASE), reason) for pattern, reason in signatures)


# Root cause first: the generic line comes last in every log. These are vLLM's; a NIM, which contains vLLM, shares them.
SIGNATURES: Signatures = compiled(
    (r"unrecognized arguments|invalid choice: ", EngineReason.ENGINE_ARGUMENTS_REFUSED),
    (r"error: argument \S+: |error: ambiguous option", EngineReason.ENGINE_ARGUMENTS_REFUSED),
    (r"--enable-auto-tool-choice requires", EngineReason.ENGINE_ARGUMENTS_REFUSED),
    (r"invalid (tool call|reasoning) parser: ", EngineReason.ENGINE_ARGUMENTS_REFUSED),
    (r"supplied chat template .*failed to be opened", EngineReason.ENGINE_ARGUMENTS_REFUSED),
    (r"quantization method specified in the model config .*does not match", EngineReason.ENGINE_ARGUMENTS_REFUSED),
    (
        r"does not support lora yet|is not supported for this model\. supported models",
        EngineReason.ENGINE_ARGUMENTS_REFUSED,
    ),
    (r"loading lora .* failed: no adapter found", EngineReason.ADAPTER_MISSING),
    (r"repo id must (be in the form|use alphanumeric)", EngineReason.MODEL_PATH_MISSING),
    (r"outgoing traffic has been disabled", EngineReason.FETCH_ATTEMPTED),
    (r"downloading or loading vocab file", EngineReason.FETCH_ATTEMPTED),
    (r"invalid tiktoken vocab file", EngineReason.MODEL_INCOMPLETE),
    # A folder without its configuration is named by its path; a bare name is one that would be downloaded.
    (r"invalid repository id or local directory specified: '(?!/)", EngineReason.FETCH_ATTEMPTED),
    (r"invalid repository id or local directory", EngineReason.MODEL_INCOMPLETE),
    (r"model architectures .* (are|is) not supported", EngineReason.MODEL_UNSUPPORTED),
    (r"cannot find any model weights with", EngineReason.MODEL_INCOMPLETE),
    (r"weight files referenced in index but missing", EngineReason.MODEL_INCOMPLETE),
    # A truncated or empty file, or a Git LFS pointer in its place.
    (r"safetensorerror: error while deserializing header", EngineReason.MODEL_INCOMPLETE),
    (r"config file at .* is not a valid json file", EngineReason.MODEL_INCOMPLETE),
    (r"couldn't instantiate the backend tokenizer", EngineReason.MODEL_INCOMPLETE),
    # The library `tokenizers`: a tokenizer.json that is cut short, or a Git LFS pointer in its place.
    (r"exception: (expected (value|ident)|eof while parsing) .*at line \d+ column \d+", EngineReason.MODEL_INCOMPLETE),
    (r"weights were not initialized from checkpoint", EngineReason.MODEL_INCOMPLETE),
    (r"no such file or directory:.*\.safetensors", EngineReason.MODEL_UNREADABLE),
    (r"contains custom code which must be executed", EngineReason.REMOTE_CODE_REQUIRED),
    (r"greater than the derived max_model_len", EngineReason.CONTEXT_TOO_LONG),
    (r"must be divisible by tensor parallel size", EngineReason.TENSOR_PARALLEL_INVALID),
    (r"is not divisible by weight quantization block_", EngineReason.TENSOR_PARALLEL_INVALID),
    (r"world size \(\d+\) is larger than the number of available gpus", EngineReason.GPU_COUNT_MISMATCH),
    (r"larger than the available kv cache memory", EngineReason.GPU_MEMORY_TOO_SMALL),
    (r"no available memory for the cache blocks", EngineReason.GPU_MEMORY_TOO_SMALL),
    (r"cuda out of memory|outofmemoryerror", EngineReason.GPU_MEMORY_TOO_SMALL),
    (r"free memory on device.*less than desired gpu memory", EngineReason.GPU_BUSY),
    (r"permission denied: '?/weights", EngineReason.MODEL_UNREADABLE),
    (r"(permission denied|read-only file system): '?/\S*/flashinfer_cubin/", EngineReason.IMAGE_NOT_WRITABLE),
    (r"(permissionerror|read-only file system).*(cache|\.config|/home)", EngineReason.CACHE_UNWRITABLE),
    (r"insufficient space in /dev/shm", EngineReason.SHARED_MEMORY_TOO_SMALL),
    (r"no space left on device.*/dev/shm", EngineReason.SHARED_MEMORY_TOO_SMALL),
    (r"no space left on device", EngineReason.DISK_FULL),
    (r"cuda driver version is insufficient|error 803", EngineReason.DRIVER_TOO_OLD),
    (r"no kernel image is available for execution", EngineReason.GPU_UNSUPPORTED),
    (r"bfloat16 is only supported on gpus", EngineReason.GPU_UNSUPPORTED),
    (r"is not supported for the current gpu\. minimum capability", EngineReason.GPU_UNSUPPORTED),
    (r"unable to open /dev/kfd|no (hip|cuda) gpus are available", EngineReason.GPU_NOT_VISIBLE),
    (r"failed to infer device type", EngineReason.GPU_NOT_VISIBLE),
    # NCCL itself (src/net.cc, src/plugin/net.cc), which may use InfiniBand alone where the spec asks for it.
    (r"network ib not found|failed to initialize any net plugin", EngineReason.INTERCONNECT_DEGRADED),
    # The line of in_container/group_member.py, with a failure that it explains.
    (
        r"rlimit_memlock is \d+ bytes[\s\S]*(nccl error|ibv_reg_mr|cannot allocate memory)",
        EngineReason.INTERCONNECT_MEMLOCK,
    ),
    # Last: a worker that ends for one of the reasons above leaves the others with this error.
    (r"nccl error", EngineReason.GPU_COMMUNICATION_FAILED),
)

LONGEST_LINE = 300
_WRAPPER = re.compile(r"(engine core|workerproc) initialization failed", re.IGNORECASE)
_NOISE = re.compile(r"^\s*(file \"|traceback|\^+$|raise |self\.|return )", re.IGNORECASE)
_EXCEPTION = re.compile(r"(\([^()]*\) )?([A-Za-z_]\w*\.)*[A-Za-z_]\w*(Error|Exception)\b")


def diagnose(last_words: str, signatures: Signatures = SIGNATURES) -> EngineReason | None:
    """The reason behind a termination message, or None if no signature matches."""
    return next((reason for pattern, reason in signatures if pattern.search(last_words)), None)


def telling_line(last_words: str, signatures: Signatures = SIGNATURES) -> str:
    """The line to show: the one that the reason is read from, else the last error.

    Errors that only report the end of a worker process are skipped: they do not name the cause.
    """
    lines = [line.strip() for line in last_words.splitlines() if line.strip()]
    text = "\n".join(lines)
    for pattern, _ in signatures:
        if match := pattern.search(text):
            first = text.rfind("\n", 0, match.start()) + 1
            line = text[first:].partition("\n")[0]
            return _around(line, match.start() - first, min(match.end() - first, len(line)))
    plain = [line for line in lines if not _WRAPPER.search(line) and not _NOISE.search(line)]
    exceptions = [line for line in plain if _EXCEPTION.match(line)]
    return cut_middle((exceptions or plain or lines or [""])[-1], LONGEST_LINE)


def _around(line: str, start: int, end: int) -> str:
    """The line; of a long one what stands around the characters from `start` to `end`."""
    if len(line) <= LONGEST_LINE:
        return line
    room = max(LONGEST_LINE - 2 - (end - start), 0)
    first = max(min(start - room // 3, len(line) - (LONGEST_LINE - 2)), 0)
    last = first + LONGEST_LINE - 2
    return f"{'…' if first else ''}{line[first:last]}{'…' if last < len(line) else ''}"

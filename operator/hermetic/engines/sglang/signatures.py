"""Reasons for termination messages of an SGLang server: from its source, and from the libraries shared with vLLM."""

from __future__ import annotations

from hermetic.api.reasons import Reason
from hermetic.engines import failure_signatures

SIGNATURES: failure_signatures.Signatures = (
    *failure_signatures.compiled(
        # A warning with the same text is not a cause: only the error counts.
        (r"error: .*greater than the derived context_length", Reason.CONTEXT_TOO_LONG),
        (r"assertionerror: \d+ is not divisible by \d+", Reason.TENSOR_PARALLEL_INVALID),
        (r"not enough memory\. please try to increase --mem-fraction-static", Reason.GPU_MEMORY_TOO_SMALL),
        (r"leaves? (no gpu memory|no room) for the (full )?kv (cache|pool)", Reason.GPU_MEMORY_TOO_SMALL),
        (r"not enough gpu memory for hybrid", Reason.GPU_MEMORY_TOO_SMALL),
        (r"error: the memory capacity is unbalanced", Reason.GPU_BUSY),
    ),
    *failure_signatures.SIGNATURES,
)

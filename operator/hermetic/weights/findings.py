"""Findings about weights, and the termination message that carries them to a kubelet."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hermetic.api.text import one_line
from hermetic.api.weights_reasons import WeightsReason

LARGEST_MESSAGE = 4096
"""Bytes of a termination message that a kubelet keeps."""
_LONGEST_VALUE = 256


@dataclass(frozen=True, slots=True)
class WeightsFinding:
    """One finding. `expected` and `observed` are digests, sizes or text; "" where they do not apply."""

    reason: WeightsReason
    file: str
    expected: str = ""
    observed: str = ""

    @property
    def message(self) -> str:
        """One line for people."""
        where = f"{one_line(self.file)}: " if self.file else ""
        compared = f"expected {self.expected}, found {self.observed}" if self.expected else self.observed
        return f"{self.reason.value}: {where}{one_line(compared)}"

    def as_json(self) -> dict[str, Any]:
        """The fields of the public JSON form."""
        return {
            "reason": self.reason.value, "file": self.file, "expected": self.expected, "found": self.observed,
        }  # fmt: skip


def termination_message(findings: list[WeightsFinding], summary: dict[str, Any]) -> bytes:
    """JSON of at most 4096 bytes: the summary, and as many findings as fit, the first one always.

    Long names and values are truncated in the middle; `omitted` counts the findings that did not fit.
    """
    documents: list[dict[str, Any]] = []
    written = b""
    for count, finding in enumerate((None, *findings)):
        if finding is not None:
            documents.append({key: _cut(value) for key, value in finding.as_json().items()})
        form = {**summary, "findings": documents, "omitted": len(findings) - count}
        text = json.dumps(form, ensure_ascii=True, separators=(",", ":")).encode()
        if len(text) > LARGEST_MESSAGE:
            break
        written = text
    return written


def _cut(value: str) -> str:
    if len(value) <= _LONGEST_VALUE:
        return value
    half = _LONGEST_VALUE // 2 - 2
    return f"{value[:half]}...{value[-half:]}"

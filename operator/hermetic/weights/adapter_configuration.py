"""What engines refuse of `adapter_config.json`, which PEFT writes beside the tensors of an adapter.

vLLM ends on such an adapter when it starts (`_validate_features` and `validate_legal` of `PEFTHelper`,
vllm/lora/peft_helper.py). SGLang reads `r`, `lora_alpha` and `target_modules` alone (`LoRAConfig`,
python/sglang/srt/lora/lora_config.py), so its answers would lack what the other fields ask for.

Which modules a model has is not known here: both engines compare the names of the tensors with the model.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

CONFIGURATION = "adapter_config.json"
RANKS = (8, 16, 32, 64, 128, 256, 512)
"""The values of `rank` in `spec.adapters`; the largest is that of vLLM's `--max-lora-rank` (vllm/config/lora.py)."""
_HEADS = frozenset({"classifier", "score"})
"""Heads of classifiers: vLLM 0.31 and later load them whole, and PEFT lists them by itself (`SEQ_CLS_HEAD_NAMES`)."""
_LONGEST_VALUE = 200
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class FieldRule:
    """What one field must be. `expected`: for people, with the reason. A field that is not required may be absent."""

    field: str
    expected: str
    holds: Callable[[Any], bool]
    is_required: bool = False

    def problem(self, configuration: Mapping[str, Any]) -> tuple[str, str] | None:
        """(expected, found); None where the field is right."""
        value = configuration.get(self.field, _ABSENT)
        if value is _ABSENT:
            return (f"`{self.field}`: {self.expected}", "no such field") if self.is_required else None
        if self.holds(value):
            return None
        return f"`{self.field}`: {self.expected}", json.dumps(value)[:_LONGEST_VALUE]


def _is_rank(value: Any, largest: int = RANKS[-1]) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= largest


def _is_number(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _has_ranks(value: Any, largest: int = RANKS[-1]) -> bool:
    """Ranks by name of a module, which take the place of `r`; PEFT writes an empty object without them."""
    return not value or (isinstance(value, dict) and all(_is_rank(rank, largest) for rank in value.values()))


def _names_modules(value: Any) -> bool:
    """A list of names, or a pattern. PEFT writes null where the adapter is of `target_parameters` alone."""
    if isinstance(value, list):
        return all(isinstance(name, str) for name in value)
    return value is None or isinstance(value, str)


def _saves_no_module(value: Any) -> bool:
    return not value or (isinstance(value, list) and all(isinstance(name, str) and name in _HEADS for name in value))


_RULES = (
    FieldRule("peft_type", '"LORA", as engines load no other kind', lambda kind: kind is None or kind == "LORA"),
    FieldRule("lora_alpha", "a number, which engines scale by", _is_number, is_required=True),
    FieldRule("target_modules", "names of modules, or a pattern", _names_modules, is_required=True),
    FieldRule("modules_to_save", "none, as engines load no module that was trained as a whole", _saves_no_module),
    FieldRule("use_dora", "false, as engines load no DoRA", lambda uses_dora: not uses_dora),
    FieldRule("bias", '"none", as engines load no bias of an adapter', lambda bias: bias == "none"),
    FieldRule("lora_bias", "false, as engines load no bias of an adapter", lambda has_bias: not has_bias),
)


def _rules_of_ranks(largest: int) -> tuple[FieldRule, ...]:
    source = "--max-lora-rank" if largest == RANKS[-1] else "`rank` of the adapters"
    to = f"from 1 to {largest}, the largest {source}"
    return (
        FieldRule("r", f"a whole number {to}", lambda rank: _is_rank(rank, largest), is_required=True),
        FieldRule("rank_pattern", f"whole numbers {to}", lambda ranks: _has_ranks(ranks, largest)),
    )


def problems_of_adapter(configuration: Mapping[str, Any], largest_rank: int = RANKS[-1]) -> Iterator[tuple[str, str]]:
    """(expected, found) of each field that engines refuse. `largest_rank`: of `--max-lora-rank`."""
    for rule in (*_rules_of_ranks(largest_rank), *_RULES):
        if (problem := rule.problem(configuration)) is not None:
            yield problem


def rank_for(configuration: Mapping[str, Any]) -> int | None:
    """The `rank` to write in `spec.adapters`: the least that holds every module; None where the ranks are wrong."""
    rank, pattern = configuration.get("r"), configuration.get("rank_pattern")
    if not _is_rank(rank) or not _has_ranks(pattern):
        return None
    largest = max(rank, *(pattern or {}).values()) if pattern else rank
    return next(value for value in RANKS if value >= largest)

"""Which kinds of input of a multimodal model are switched off, by the flags of vLLM.

`--language-model-only` sets every limit to 0; `--limit-mm-per-prompt` takes JSON, `KIND=NUMBER` words, or a key with a
dot (`get_limit_per_prompt` in vllm/config/multimodal.py). An encoder whose kinds of input all have the limit 0 is
not loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from hermetic.engines.extra_arguments import WrittenFlag

ALL = "*"
LIMITS, TEXT_ONLY = "--limit-mm-per-prompt", "--language-model-only"


def inputs_off(flags: Iterable[WrittenFlag]) -> Iterator[str]:
    """The kinds, or `*` for all. What cannot be read switches nothing off."""
    for written in flags:
        _, _, kind = written.written.partition("=")[0].partition(".")
        if written.flag.name == TEXT_ONLY:
            yield ALL
        elif written.flag.name == LIMITS and kind:
            yield from (kind for value in written.values if value == "0")
        elif written.flag.name == LIMITS:
            for value in written.values:
                yield from _kinds_of(value)


def _kinds_of(value: str) -> Iterator[str]:
    if not value.startswith("{"):
        kind, _, limit = value.partition("=")
        if limit == "0":
            yield kind
        return
    try:
        stated: Any = json.loads(value)
    except (ValueError, RecursionError):
        return
    yield from (kind for kind, limit in stated.items() if type(limit) is int and limit == 0)

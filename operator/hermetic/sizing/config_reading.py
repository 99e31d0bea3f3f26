"""Reads values of an untrusted `config.json`, which may have any type and size, without raising.

A reader returns a usable value, or None where the key is absent. Numbers and lists that are not usable are noted in
`problems`, so that the caller can answer Unknown with the name of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hermetic.api.model_facts import MOST_COUNT, MOST_LAYERS

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")


@dataclass(frozen=True, slots=True)
class Config:
    """One object of config.json, and the values in it that could not be used."""

    values: Mapping[str, Any]
    problems: list[str] = field(default_factory=list)

    def whole(self, *keys: str, least: int = 1, most: int) -> int | None:
        """The value of the first key that is present, as an integer in the range."""
        for key in keys:
            if self.values.get(key) is None:
                continue
            return self.bounded(key, self.values[key], least=least, most=most)
        return None

    def required(self, *keys: str, least: int = 1, most: int) -> int | None:
        """Like `whole`; that none of the keys is present is a problem."""
        if all(self.values.get(key) is None for key in keys):
            self.problems.append(f"config.json does not contain {keys[0]}")
        return self.whole(*keys, least=least, most=most)

    def all_required(self, *alternatives: tuple[str, ...], most: int) -> list[int] | None:
        """The value of each, by the first of its keys that is present; None where one of them is not usable."""
        values = [self.required(*keys, most=most) for keys in alternatives]
        usable = [value for value in values if value is not None]
        return usable if len(usable) == len(values) else None

    def numbers(self, key: str) -> list[int] | None:
        """A list of whole numbers; None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, list) and len(value) <= MOST_LAYERS and all(type(number) is int for number in value):
            return value
        self.problems.append(f"config.json: {key} is not a list of at most {MOST_LAYERS} whole numbers")
        return None

    def objects(self, key: str) -> list[Config] | None:
        """A list of objects, which share `problems`; None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, list) and len(value) <= MOST_LAYERS and all(isinstance(item, dict) for item in value):
            return [Config(item, self.problems) for item in value]
        self.problems.append(f"config.json: {key} is not a list of at most {MOST_LAYERS} objects")
        return None

    def layers_of(self, kind: str, layers: int) -> int | None:
        """How many of the layers are of this kind; None where config.json does not list them."""
        types = self.words("layer_types")
        return None if types is None else min(types.count(kind), layers)

    def bounded(self, subject: str, value: object, *, least: int = 1, most: int) -> int | None:
        """A value that was read from the object, or derived from it, as an integer in the range."""
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.problems.append(f"config.json: {subject} is not a whole number from {least} to {most}")
        return None

    def largest(self, *keys: str, least: int = 1) -> int | None:
        """Like `whole`, where the value may be a list with one number for each layer: then the largest of them.

        HunYuan's MoE writes `moe_topk` and `moe_intermediate_size` so. vLLM takes the largest of the first
        (`get_num_experts_per_token` in vllm/transformers_utils/model_arch_config_convertor.py), and of the second that
        of each layer (vllm/model_executor/models/hunyuan_v1.py).
        """
        for key in keys:
            value = self.values.get(key)
            if value is None:
                continue
            entries = value if isinstance(value, list) and 0 < len(value) <= MOST_LAYERS else [value]
            numbers = [self.bounded(key, entry, least=least, most=MOST_COUNT) for entry in entries]
            valid_numbers = [number for number in numbers if number is not None]
            return max(valid_numbers) if len(valid_numbers) == len(numbers) else None
        return None

    def word(self, *keys: str) -> str | None:
        """The first value that is a text of at most 64 characters; others are skipped."""
        for key in keys:
            value = self.values.get(key)
            if isinstance(value, str) and 0 < len(value) <= 64:
                return value
        return None

    def words(self, key: str) -> list[str] | None:
        """A list of texts; None where there is none."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, list) and len(value) <= MOST_LAYERS and all(isinstance(item, str) for item in value):
            return value
        self.problems.append(f"config.json: {key} is not a list of at most {MOST_LAYERS} words")
        return None

    def inner(self, key: str) -> Config | None:
        """A nested object, which shares `problems`; None where there is none. Another value is a problem."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            self.problems.append(f"config.json: {key} is not an object")
        return Config(value, self.problems) if isinstance(value, dict) else None


def text_part(top: Config) -> Config:
    """The object that describes the language model: a nested one in a multimodal config.json, else the whole."""
    for name in NESTED:
        inner = top.inner(name)
        if inner is not None:
            return inner.inner("text_config") or inner
    return top

"""Answers in another order: Azure and the API server promise none for their lists."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hermetic.audit.estate.questions import Answer, Body


def shuffled(answer: Answer, chance: random.Random, in_order: frozenset[str] = frozenset()) -> Answer:
    """The same answer with every list of it, and the list of bodies, in another order.

    `in_order` are fields whose order is their meaning.
    """
    bodies = [Body(_shuffled(body.value, chance, in_order), body.evidence) for body in answer.bodies]
    chance.shuffle(bodies)
    return Answer(tuple(bodies), answer.evidence, answer.problem)


def _shuffled(value: Any, chance: random.Random, in_order: frozenset[str]) -> Any:
    if isinstance(value, Mapping):
        keys = list(value)
        chance.shuffle(keys)
        return {key: value[key] if key in in_order else _shuffled(value[key], chance, in_order) for key in keys}
    if isinstance(value, list):
        items = [_shuffled(item, chance, in_order) for item in value]
        chance.shuffle(items)
        return items
    return value

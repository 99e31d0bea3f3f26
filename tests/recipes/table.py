"""Commands that public recipes give for vLLM, as facts: model, flags, values and variables.

Source: github.com/vllm-project/recipes at 8959cf64189c71d36e11c6a30335f923f261b1f7, files models/*/*.yaml: of each
recipe its base arguments, those of every feature (the first mode of each), those of its variants, and what it adds for
a generation of GPUs. Each row names its file. One command is made of every variant for every generation, with every
feature switched on: 1,035 of 173 recipes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GENERATIONS = ("hopper", "blackwell", "amd")
_ROWS = Path(__file__).with_name("commands.jsonl")


@dataclass(frozen=True)
class RecipeCommand:
    """One command: `arguments` are those of `vllm serve`, behind the model."""

    recipe: str
    variant: str
    generation: str
    model: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]

    @property
    def is_of_omni(self) -> bool:
        """Whether the recipe itself starts vLLM-Omni."""
        return "--omni" in self.arguments

    @property
    def start(self) -> tuple[object, ...]:
        """What decides the conversion: recipes are alike for most generations."""
        return self.model, self.arguments, self.environment


def recipe_commands() -> tuple[RecipeCommand, ...]:
    """Every command, in the order of the files."""
    lines = _ROWS.read_text(encoding="utf-8").splitlines()
    return tuple(command for line in lines for command in _commands(json.loads(line)))


def _commands(row: Mapping[str, Any]) -> Iterator[RecipeCommand]:
    for variant, settings in row["variants"].items():
        for generation in GENERATIONS:
            parts = [row, *row.get("features", ()), settings]
            parts += [
                part["hardware"][generation] for part in (row, settings) if generation in part.get("hardware", {})
            ]
            environment = {name: value for part in parts for name, value in part.get("env", {}).items()}
            yield RecipeCommand(
                recipe=row["recipe"],
                variant=variant,
                generation=generation,
                model=settings.get("model", row["model"]),
                arguments=tuple(word for part in parts for word in part.get("args", ())),
                environment=tuple(environment.items()),
            )

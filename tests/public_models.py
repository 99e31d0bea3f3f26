"""Facts of public models: what their config.json says of layers, heads and encoders, one model a line.

`aiconfigurator_models.jsonl` has the 86 models of `aic-core/src/aiconfigurator_core/model_configs` of
https://github.com/ai-dynamo/aiconfigurator (2026-08-21), each with the keys that decide memory.
`kaito_models.jsonl` has the 60 models of `presets/workspace/models/model_catalog.yaml` of
https://github.com/kaito-project/kaito (2026-08-21): the size of their files, and either the name of a model above that
has the same layers (`shape_of`), or the keys of its own; `source` names the files of public repositories that say so.
Mistral's own form is `params`. A long list is `{"*": [[value, how often], ...]}`, whose order is kept only
where it decides: the last of `compress_ratios` is of a layer for speculation.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.mistral_form import config_of_params

FOLDER = Path(__file__).resolve().parent / "corpus"
NOMINAL = 2**34
"""Bytes of weights where the source does not say them."""


@dataclass(frozen=True)
class PublicModel:
    """One model: its config.json with the keys that decide memory, and the bytes of its weights."""

    name: str
    config: dict[str, Any]
    quantization_file: dict[str, Any] | None = None
    size: int = NOMINAL

    def facts(self, size: int | None = None, **parts: int) -> ModelFacts:
        """The facts, with weights of so many bytes; `parts` are bytes of experts and encoders."""
        total = size or self.size
        return facts_of(self.config, TensorSums({"BF16": total}, 16, -(-total // 16), parts), self.quantization_file)


@functools.cache
def aiconfigurator_models() -> dict[str, PublicModel]:
    """By the name of the repository."""
    return {
        row["model"]: PublicModel(row["model"], _expanded(row["config"]), row.get("quantization_file"))
        for row in rows("aiconfigurator_models.jsonl")
    }


@functools.cache
def kaito_models() -> dict[str, PublicModel]:
    """By the name of the repository."""
    return {
        row["model"]: PublicModel(row["model"], _config(row), size=row["bytes"]) for row in rows("kaito_models.jsonl")
    }


def _config(row: dict[str, Any]) -> Any:
    if "params" in row:
        return config_of_params(row["params"])
    if "shape_of" not in row:
        return _expanded(row["config"])
    shape = dict(aiconfigurator_models()[row["shape_of"]].config)
    shape.pop("quantization_config", None)
    return shape | row["config"]


def rows(name: str) -> list[dict[str, Any]]:
    """The lines of one of the two files."""
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def _expanded(value: Any) -> Any:
    if isinstance(value, dict) and value.keys() == {"*"}:
        return [item for item, count in value["*"] for _ in range(count)]
    if isinstance(value, dict):
        return {key: _expanded(inner) for key, inner in value.items()}
    return value

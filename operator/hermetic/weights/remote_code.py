"""What an engine does with `auto_map`, which names Python code of the model: --trust-remote-code is never passed.

Without that flag an engine ignores `auto_map` where it has classes of its own for the model, and ends where it has none
(`resolve_trust_remote_code` of transformers, dynamic_module_utils.py; `HFConfigParser` of vLLM). Nothing is fetched in
either case, also of the form "org/repo--file.Class".
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from hermetic.weights.streamed_json import NotJsonError, read_configuration
from hermetic.weights.tree import EntryKind, Tree

_TOKENIZERS = "AutoTokenizer"
_LARGEST = 2**22


@dataclass(frozen=True, slots=True)
class ModelClasses:
    """What the configurations of one folder name: `model_type` of config.json, `tokenizer_class` of the tokenizer."""

    model_type: str = ""
    tokenizer_class: str = ""

    def are_native(self, auto_class: str) -> bool:
        """Whether an engine has a class of its own for what this entry of `auto_map` names."""
        native = _native()
        if auto_class == _TOKENIZERS:
            is_class = self.tokenizer_class.removesuffix("Fast") in native["tokenizer_classes"]
            return is_class or self.model_type in native["tokenizer_model_types"]
        return self.model_type in native["model_types"] or self.model_type in native["vllm_model_types"]


def classes_beside(tree: Tree, folder: str) -> ModelClasses:
    """The classes that the configurations in this folder name; "" where one names none, or cannot be read."""
    config = configuration_at(tree, folder, "config.json")
    tokenizer = configuration_at(tree, folder, "tokenizer_config.json")
    tokenizer_class = _text(tokenizer, "tokenizer_class") or _text(config, "tokenizer_class")
    return ModelClasses(_text(config, "model_type"), tokenizer_class)


def named_code(configuration: Any, classes: ModelClasses) -> set[str]:
    """The code, as "file.Class" or "org/repo--file.Class", without which an engine does not start.

    `classes` are those of the folder of this configuration; a part of one with a `model_type` of its own has others,
    which count only where the model as a whole is none that the engine knows.
    """
    is_native = classes.are_native("AutoConfig")
    named: set[str] = set()
    for part, of_part in [(configuration, classes)] if is_native else _parts(configuration, classes):
        auto_map = part.get("auto_map") if isinstance(part, dict) else None
        if isinstance(auto_map, dict):
            for auto_class, value in auto_map.items():
                if not of_part.are_native(auto_class):
                    named |= set(_texts(value))
        elif auto_map is not None:
            named |= set(_texts(auto_map))
    return named


def _parts(value: Any, classes: ModelClasses) -> Iterator[tuple[dict[str, Any], ModelClasses]]:
    waiting = [(value, classes)]
    while waiting:
        part, above = waiting.pop()
        if isinstance(part, list):
            waiting.extend((inner, above) for inner in part)
        elif isinstance(part, dict):
            model_type = _text(part, "model_type")
            own = ModelClasses(model_type, above.tokenizer_class) if model_type else above
            yield part, own
            waiting.extend((inner, own) for key, inner in part.items() if key != "auto_map")


def _texts(value: Any) -> Iterator[str]:
    """Texts in nested lists and objects; the JSON reader limits the depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _text(configuration: Any, key: str) -> str:
    value = configuration.get(key) if isinstance(configuration, dict) else None
    return value if isinstance(value, str) else ""


def content_at(tree: Tree, folder: str, name: str) -> bytes | None:
    """The bytes of a configuration, a link to one followed; None where there is none of a size that is read."""
    path = f"{folder}/{name}" if folder else name
    item = tree.lstat(path)
    if item is not None and item.kind is EntryKind.LINK:
        path = tree.target(item) or ""
        item = tree.lstat(path) if path else None
    if item is None or item.kind is not EntryKind.FILE or item.size > _LARGEST:
        return None
    return tree.small(path, _LARGEST)


def configuration_at(tree: Tree, folder: str, name: str) -> Any:
    """The same as data; None where it cannot be read."""
    return configuration_in(content_at(tree, folder, name))


def configuration_in(content: bytes | None) -> Any:
    """The data of a configuration; None where there is no content, or none that can be read."""
    try:
        return None if content is None else read_configuration(content)
    except NotJsonError:
        return None


@cache
def _native() -> dict[str, frozenset[str]]:
    # importlib.resources takes longer to import than verification takes to start.
    text = Path(__file__).with_name("native_classes.toml").read_text(encoding="utf-8")
    return {name: frozenset(values) for name, values in tomllib.loads(text).items()}

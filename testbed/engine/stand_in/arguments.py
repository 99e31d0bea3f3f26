"""The command line of `vllm serve`, parsed by argparse from the derived table: what vLLM refuses is refused here.

vLLM's parser does more than argparse: underscores count as dashes, `-O3` is a level, `--model` moves to the front, and
`--config.key value` becomes one JSON object. That comes first, then argparse sees what it would see inside of vLLM.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .tables import Table

Parsed = dict[str, Any]
UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
USAGE = "vllm serve [model_tag] [options]"


def parse(argv: Sequence[str], table: Table) -> Parsed:
    """`argv` after the program's name, starting with `serve`. Exits with 2 and argparse's words on a bad one.

    The result holds every flag that was given, by its long name without dashes, and `model`.
    """
    arguments = _nested_as_json(_normalised(_model_in_front(list(argv)), table))
    options = vars(_parser(table).parse_args(arguments))
    options.pop("command", None)
    return {name: value for name, value in options.items() if value is not None}


def _model_in_front(texts: list[str]) -> list[str]:
    for position, word in enumerate(texts):
        if word == "--model" and position + 1 < len(texts):
            return [texts[0], texts[position + 1], *texts[1:position], *texts[position + 2 :]]
        if word.startswith("--model="):
            return [texts[0], word.removeprefix("--model="), *texts[1:position], *texts[position + 1 :]]
    return texts


def _normalised(texts: list[str], table: Table) -> list[str]:
    normal: list[str] = []
    for position, word in enumerate(texts):
        shorthand = next((prefix for prefix in table.shorthands if word.startswith(prefix)), None)
        if word.startswith("--"):
            option, equals, value = word.partition("=")
            name, dot, keys = option.partition(".")
            normal.append(f"{name.replace('_', '-')}{dot}{keys}{equals}{value}")
        elif shorthand and word != shorthand:
            normal += [table.shorthands[shorthand], word.removeprefix(shorthand).removeprefix("=")]
        elif shorthand and texts[position + 1 : position + 2] and texts[position + 1] in {"0", "1", "2", "3"}:
            normal.append(table.shorthands[shorthand])
        else:
            normal.append(word)
    return normal


def _nested_as_json(texts: list[str]) -> list[str]:
    """`--a.b 1 --a.c=x` as `--a {"b": 1, "c": "x"}`, put after everything else."""
    plain: list[str] = []
    nested: dict[str, dict[str, Any]] = {}
    waiting = iter(texts)
    for word in waiting:
        option, equals, value = word.partition("=")
        if not (word.startswith("-") and "." in option) or re.fullmatch(r"-[\d.]+", word):
            plain.append(word)
            continue
        name, *keys = option.split(".")
        _put(nested.setdefault(name, {}), keys, value if equals else next(waiting, ""))
    return [*plain, *(word for name, nested_value in nested.items() for word in (name, json.dumps(nested_value)))]


def _put(target: dict[str, Any], keys: list[str], value: str) -> None:
    *path, last = keys
    for key in path:
        target = target.setdefault(key, {})
    if last.endswith("+"):
        target.setdefault(last[:-1], []).extend(value.split(","))
        return
    try:
        target[last] = json.loads(value)
    except json.JSONDecodeError:
        target[last] = value


def _parser(table: Table) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="vllm", description="hermetic engine stand-in for the vLLM CLI")
    parser.add_argument("-v", "--version", action="version", version=table.version)
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", usage=USAGE)
    serve.add_argument("model", nargs="?")
    add_flags(serve, {name: shape for name, shape in table.flags.items() if name not in {"--help", "--model"}})
    return parser


def add_flags(parser: argparse.ArgumentParser, flags: Mapping[str, dict[str, Any]]) -> None:
    """Every flag of a table; its value is stored by its long name without dashes in front."""
    for name, shape in flags.items():
        _add(parser, name, shape)


def _add(parser: argparse.ArgumentParser, name: str, shape: dict[str, Any]) -> None:
    spellings = [name, *shape.get("aliases", ())]
    destination = name.removeprefix("--")
    negations = shape.get("negations", ())
    if shape["value"] == "none":
        parser.add_argument(*spellings, *negations, dest=destination, action=Switch, off=negations)
        return
    convert = _converter(shape.get("type", "text"))
    parser.add_argument(
        *spellings,
        dest=destination,
        nargs={"one": None, "optional": "?", "many": "+", "any": "*"}[shape["value"]],
        const=True if shape["value"] == "optional" else None,
        action="append" if shape.get("repeats") else "store",
        type=convert,
        choices=[convert(choice) for choice in shape["choices"]] if "choices" in shape else None,
    )


class Switch(argparse.Action):
    """A flag without a value: on by its name, off by one of its negations."""

    def __init__(self, option_strings: Sequence[str], dest: str, off: Sequence[str] = (), **rest: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, **rest)
        self.off = frozenset(off)

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's signature
        namespace: argparse.Namespace,
        values: Any,  # noqa: ARG002 - argparse's signature
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, option_string not in self.off)


def _converter(kind: str) -> Callable[[str], Any]:
    converters: dict[str, Callable[[str], Any]] = {
        "int": int,
        "float": float,
        "size": _size,
        "si-size": _si_size,
        "json": json.loads,
        "object": _object,
        "text": str,
    }
    converter = converters[kind]

    def convert(value: str) -> Any:
        return None if value in {"", "None"} and kind != "text" else converter(value)

    convert.__name__ = kind  # argparse names it in "invalid int value"
    return convert


def _size(value: str) -> int:
    if value.lower() == "auto":
        return -1
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgGtT])", value)
    if match is None:
        return int(value)
    number, unit = match.groups()
    return int(float(number) * UNITS[unit]) if unit.islower() else int(number) * UNITS[unit]


def _si_size(value: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT])|(\d+)([KMGT])i", value)
    if match is None:
        return int(value)
    number, unit, number_alone, binary = match.groups()
    return int(float(number) * UNITS[unit.lower()]) if unit else int(number_alone) * UNITS[binary]


def _object(value: str) -> dict[str, Any]:
    parsed = json.loads(value)
    if not isinstance(parsed, dict):
        raise argparse.ArgumentTypeError(f"expected a JSON object, got {value}")
    return parsed

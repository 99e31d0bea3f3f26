"""Why an engine's parser would refuse a known flag: its value is missing, of another type, or invalid JSON.

For each of these the engine exits with code 2, minutes after the pod was scheduled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeGuard

from hermetic.api.reserved_flags import LONGEST_CONTEXT
from hermetic.api.text import cut
from hermetic.engines.extra_arguments import WrittenFlag
from hermetic.engines.flag_tables import FlagTable

LONGEST_SHOWN = 64
NUMBERS = frozenset({"int", "float", "size", "si-size"})
# vLLM's human_readable_int: k, m, ... are powers of ten, fractions allowed; K, M, ... are powers of two.
_SIZE = re.compile(r"\d+(?:\.\d+)?[kmgt]|\d+[KMGT]", re.ASCII)


# SGLang's human_readable_int: suffixes of powers of ten allow fractions, those of powers of two do not.
_SI_SIZE = re.compile(r"\d+(?:\.\d+)?[kMGT]|\d+[KMGT]i", re.ASCII)


def refused(written: Sequence[WrittenFlag], table: FlagTable) -> Iterator[str]:
    """One clause for each argument that this release would refuse."""
    maps = dict(table.dialect.maps)
    for written_flag in written:
        yield from (
            _refused(written_flag, table)
            if "." not in written_flag.written.partition("=")[0]
            else _refused_key(written_flag)
        )
        if written_flag.flag.name in maps:
            yield from _wrong_maps(written_flag, maps[written_flag.flag.name])
    names = {written_flag.flag.name for written_flag in written if not written_flag.is_negated}
    for flag, needed in table.dialect.together:
        if flag in names and needed not in names:
            yield f"'{flag}', which needs '{needed}' beside it"


def _refused(written_flag: WrittenFlag, table: FlagTable) -> Iterator[str]:
    name, equals, _ = written_flag.written.partition("=")
    if written_flag.flag.value == "none":
        if equals:
            yield f"'{shown(written_flag.written)}', and {written_flag.flag.name} takes no value"
        return
    if not written_flag.values and written_flag.flag.value in ("one", "many") and not _is_glued(name, written_flag):
        yield f"'{shown(written_flag.written)}' without the value that it needs"
    for value in written_flag.values:
        if (
            value not in table.dialect.nothing
            and written_flag.written != LONGEST_CONTEXT
            and (expected := _wanted(written_flag.flag.type, value))
        ):
            yield f"'{shown(value)}' for {written_flag.flag.name}, which takes {expected}{_without_quotes(value)}"


def _without_quotes(value: str) -> str:
    """One clause for a value in the quotes of a shell."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return ", without the quotes around it: no shell takes them off" if quoted else ""


def _refused_key(written_flag: WrittenFlag) -> Iterator[str]:
    if written_flag.flag.value == "none" or written_flag.flag.choices or written_flag.flag.type in NUMBERS:
        yield f"'{shown(written_flag.written)}', and {written_flag.flag.name} takes no keys"


def _wrong_maps(written_flag: WrittenFlag, keys: tuple[str, ...]) -> Iterator[str]:
    """Values that are no map of texts with these keys; `--flag.key value` gives one text of it."""
    name, dot, key = written_flag.written.partition("=")[0].partition(".")
    for value in written_flag.values:
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            if not dot:
                continue  # refused as no JSON, or a word that means no value
            read = value
        parsed = {key: read} if dot else read
        if parsed is not None and not (_is_map_of_texts(parsed) and parsed.keys() <= {*keys}):
            yield f"'{shown(value)}' for {name}{dot}{key}, which takes texts by the keys {', '.join(keys)}"


def _is_map_of_texts(parsed: Any) -> TypeGuard[dict[str, str]]:
    return isinstance(parsed, dict) and all(isinstance(text, str) for text in parsed.values())


def _is_glued(name: str, written_flag: WrittenFlag) -> bool:
    """Whether the value is appended to a short flag: '-qfp8'."""
    return not name.startswith("--") and any(
        name != short and name.startswith(short) for short in written_flag.flag.aliases
    )


def _wanted(kind: str, value: str) -> str:
    """The expected type as text, if the value is not of it; else ""."""
    expected, read = _KINDS.get(kind, ("", str))
    try:
        read(value)
    except (ValueError, TypeError, RecursionError):
        return expected
    return ""


def _size(value: str) -> object:
    return value if _SIZE.fullmatch(value.strip()) else int(value)


def _si_size(value: str) -> object:
    return value if _SI_SIZE.fullmatch(value.strip()) else int(value)


def _object(value: str) -> object:
    if not isinstance(read := json.loads(value), dict):
        raise TypeError
    return read


_KINDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "int": ("an integer", int),
    "float": ("a number", float),
    "size": ("an integer, with k, m, g or t behind it if need be", _size),
    "si-size": ("an integer, with k, M, G, T or Ki, Mi, Gi, Ti behind it if need be", _si_size),
    "json": ("JSON", json.loads),
    "object": ("a JSON object", _object),
}


def shown(text: str) -> str:
    """A text of the spec as messages show it: truncated if it is long."""
    return cut(text, LONGEST_SHOWN)

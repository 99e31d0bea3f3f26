"""Which flags and environment variables each supported vLLM version understands.

An unknown flag ends `vllm serve` with exit 2, so whatever is rendered is held against these tables first. They are
derived from vLLM's own source distributions (`python -m testbed.vllm_tables.derive`) and never edited by hand; the
files `<minor>.json` next to this one are all there is to know about what is supported.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

Arity = Literal["none", "one", "optional", "many"]


class UnsupportedVersion(ValueError):
    """There is no table for the version; the message names the supported minor versions."""

    def __init__(self, version: str) -> None:
        super().__init__(f"vLLM {version!r} is not supported, only {', '.join(supported_minors())}")
        self.version = version


@dataclass(frozen=True)
class Flag:
    """One flag of `vllm serve`.

    `value` says what follows it: nothing, exactly one value, at most one, or at least one. `negations` switch a boolean
    off (`--no-enforce-eager`). `type` is int, float, size (an integer that may end in k, M, ...), json, object (a JSON
    object) or text.
    `choices` is empty where vLLM takes anything of that type.
    """

    name: str
    value: Arity
    aliases: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    type: str = "text"
    repeats: bool = False

    @property
    def boolean(self) -> bool:
        return bool(self.negations)

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every option string that reaches this flag, abbreviations aside."""
        return (self.name, *self.aliases, *self.negations)


@dataclass(frozen=True)
class VllmTable:
    """What one vLLM release understands; `sha256` is that of the source distribution it was read from."""

    version: str
    sha256: str
    flags: Mapping[str, Flag]
    environment: frozenset[str]
    shorthands: Mapping[str, str]

    def flag(self, option: str) -> Flag | None:
        """The flag written out as `option` (a name, an alias or a negation); abbreviations do not count."""
        return _by_spelling(self.version).get(_dashed(option))

    def knows(self, argument: str) -> bool:
        """Whether vLLM would take the argument for one of its flags: written out, or abbreviated without ambiguity."""
        return len(self.understood_as(argument)) == 1

    def understood_as(self, argument: str) -> tuple[Flag, ...]:
        """Every flag that vLLM's parser could take this command line argument for.

        None: not a flag. One: vLLM takes it for that flag, written out or abbreviated. More: vLLM refuses it as
        ambiguous. Underscores, `--flag=value`, `--json-flag.key value` and `-O3` count as vLLM counts them.
        """
        for prefix, name in self.shorthands.items():
            if argument.startswith(prefix):
                return (self.flags[name],)
        if (written_out := self.flag(argument)) is not None:
            return (written_out,)
        option = _dashed(argument)
        spelled = _by_spelling(self.version)
        reached = {flag.name: flag for spelling, flag in spelled.items() if _abbreviates(option, spelling)}
        return tuple(reached.values())


def supported_minors() -> tuple[str, ...]:
    """The minor versions that have a table, oldest first: ("0.24", ..., "0.33")."""
    return _minors()


def is_supported(version: str) -> bool:
    """Whether the version's minor release has a table."""
    try:
        table_for(version)
    except UnsupportedVersion:
        return False
    return True


def table_for(version: str) -> VllmTable:
    """The table of the version's minor release: "0.32.0", "0.32" and "v0.32.1" all give that of 0.32.

    Raises UnsupportedVersion (a ValueError) for any other minor version and for what is no version at all.
    """
    stated = re.match(r"v?(\d+\.\d+)(?!\d)", version)
    if stated is None or stated[1] not in supported_minors():
        raise UnsupportedVersion(version)
    return _read(stated[1])


@functools.cache
def _minors() -> tuple[str, ...]:
    names = (entry.name for entry in files(__name__).iterdir())
    minors = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return tuple(sorted(minors, key=lambda minor: tuple(map(int, minor.split(".")))))


@functools.cache
def _read(minor: str) -> VllmTable:
    stated = json.loads(files(__name__).joinpath(f"{minor}.json").read_text(encoding="utf-8"))
    return VllmTable(
        version=stated["version"],
        sha256=stated["sha256"],
        flags=MappingProxyType({name: _flag(name, shape) for name, shape in stated["flags"].items()}),
        environment=frozenset(stated["environment"]),
        shorthands=MappingProxyType(stated["shorthands"]),
    )


def _flag(name: str, shape: Mapping[str, Any]) -> Flag:
    return Flag(
        name=name,
        value=shape["value"],
        aliases=tuple(shape.get("aliases", ())),
        negations=tuple(shape.get("negations", ())),
        choices=tuple(shape.get("choices", ())),
        type=shape.get("type", "text"),
        repeats=shape.get("repeats", False),
    )


@functools.cache
def _by_spelling(version: str) -> Mapping[str, Flag]:
    return {spelling: flag for flag in table_for(version).flags.values() for spelling in flag.spellings}


def _dashed(argument: str) -> str:
    """The option alone, as vLLM normalises it: no `=value`, no `.key`, dashes for underscores in long names."""
    option = argument.split("=", 1)[0]
    return option.split(".", 1)[0].replace("_", "-") if option.startswith("--") else option


def _abbreviates(option: str, spelling: str) -> bool:
    """argparse's reading: a long name by any prefix, a short one also with its value glued on (-qfp8)."""
    if option.startswith("--"):
        return spelling.startswith(option)
    return len(option) > 1 and option[0] == "-" and (spelling == option[:2] or spelling.startswith(option))

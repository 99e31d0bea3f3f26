"""Which flags and environment variables each supported release of an engine understands, and how its parser reads them.

An unknown flag ends an engine with exit code 2, so everything that is rendered is checked against these tables first.
They are derived from the engines' published sources and never edited by hand. A release is supported if its folder has
a file for it.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

Arity = Literal["none", "one", "optional", "many", "any"]


class UnsupportedVersion(ValueError):
    """There is no table for the version; the message names the supported releases."""

    def __init__(self, product: str, version: str, supported: tuple[str, ...]) -> None:
        super().__init__(f"{product} {version!r} is not supported, only {', '.join(supported)}")
        self.version = version


@dataclass(frozen=True)
class Flag:
    """One flag of an engine's server.

    `value` says what follows it: nothing, exactly one value, at most one, at least one, or any number. `negations`
    switch a boolean off (`--no-enforce-eager`). `type` is int, float, size or si-size (an integer that may end in k, M,
    ...), json, object (a JSON object) or text.
    `choices` is empty where the engine takes anything of that type. `folded`: a value is compared with them in lower
    case and with '_' for '-'.
    """

    name: str
    value: Arity
    aliases: tuple[str, ...] = ()
    negations: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    type: str = "text"
    repeats: bool = False
    folded: bool = False

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every option string that reaches this flag, abbreviations aside."""
        return (self.name, *self.aliases, *self.negations)


@dataclass(frozen=True)
class Dialect:
    """How the parser of one engine differs from argparse.

    `dashes`: '_' counts as '-', and `--flag.key value` or `-f.key value` sets a key of a JSON value. `nothing`: words
    that mean no value, whatever the type. `together`: a flag, and the one that is required with it.
    `maps`: flags that take a JSON object of texts, with its possible keys.
    """

    product: str
    dashes: bool
    nothing: tuple[str, ...] = ()
    together: tuple[tuple[str, str], ...] = ()
    maps: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class FlagTable:
    """The flags and variables of one release; `sha256` is that of the distribution that they were read from."""

    version: str
    sha256: str
    flags: Mapping[str, Flag]
    environment: frozenset[str]
    shorthands: Mapping[str, str]
    dialect: Dialect

    def flag(self, option: str) -> Flag | None:
        """The flag written out as `option` (a name, an alias or a negation); abbreviations do not count."""
        return self._by_spelling.get(self._option(option))

    def knows(self, argument: str) -> bool:
        """Whether the engine would take the argument for one of its flags: in full, or abbreviated unambiguously."""
        return len(self.understood_as(argument)) == 1

    def known_words(self, flags: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
        """Flags with their values as one command line, without those that this version does not have."""
        return tuple(word for flag in flags if self.knows(flag[0]) for word in flag)

    def understood_as(self, argument: str) -> tuple[Flag, ...]:
        """Every flag that the engine's parser could take this command line argument for.

        None: not a flag. One: that flag, written out or abbreviated. More: ambiguous, and refused.
        `--flag=value` and, depending on the dialect, underscores, `--json-flag.key value` and `-O3` count too.
        """
        for prefix, name in self.shorthands.items():
            if argument.startswith(prefix):
                return (self.flags[name],)
        if (written_out := self.flag(argument)) is not None:
            return (written_out,)
        option = self._option(argument)
        reached = {flag.name: flag for spelling, flag in self._by_spelling.items() if _abbreviates(option, spelling)}
        return tuple(reached.values())

    @functools.cached_property
    def _by_spelling(self) -> Mapping[str, Flag]:
        return {spelling: flag for flag in self.flags.values() for spelling in flag.spellings}

    def _option(self, argument: str) -> str:
        """The option alone, normalised as by the parser: no `=value`, and what the dialect changes."""
        option = argument.split("=", 1)[0]
        if not self.dialect.dashes:
            return option
        option = option.partition(".")[0]  # vLLM reads '-cc.mode=3' as '-cc' too
        return option.replace("_", "-") if option.startswith("--") else option


class TableFolder:
    """The tables of one engine: files `<release>.json` of a package; group 1 of `release` matches it in a version."""

    def __init__(self, package: str, dialect: Dialect, release: str) -> None:
        self._package, self._dialect, self._release = package, dialect, re.compile(release)
        self._read = functools.cache(self._table)

    @property
    def dialect(self) -> Dialect:
        """How the engine's parser reads flags."""
        return self._dialect

    @functools.cached_property
    def supported(self) -> tuple[str, ...]:
        """The releases that have a table, oldest first."""
        names = (entry.name for entry in files(self._package).iterdir())
        releases = (name.removesuffix(".json") for name in names if name.endswith(".json"))
        return tuple(sorted(releases, key=lambda release: tuple(map(int, release.split(".")))))

    def table_for(self, version: str) -> FlagTable:
        """The table of the version's release. Raises UnsupportedVersion for other releases and for invalid versions."""
        return self._read(self.release_of(version))

    def release_of(self, version: str) -> str:
        """The entry of `supported` for this version. Raises UnsupportedVersion."""
        stated = self._release.match(version)
        if stated is None or stated[1] not in self.supported:
            raise UnsupportedVersion(self._dialect.product, version, self.supported)
        return stated[1]

    def is_supported(self, version: str) -> bool:
        """Whether the version's release has a table."""
        stated = self._release.match(version)
        return stated is not None and stated[1] in self.supported

    def _table(self, release: str) -> FlagTable:
        stated = json.loads(files(self._package).joinpath(f"{release}.json").read_text(encoding="utf-8"))
        return FlagTable(
            version=stated["version"],
            sha256=stated["sha256"],
            flags=MappingProxyType({name: _flag(name, shape) for name, shape in stated["flags"].items()}),
            environment=frozenset(stated["environment"]),
            shorthands=MappingProxyType(stated["shorthands"]),
            dialect=self._dialect,
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
        folded=shape.get("folded", False),
    )


def _abbreviates(option: str, spelling: str) -> bool:
    """As argparse: a long name by any prefix, a short one also with its value appended (-qfp8)."""
    if option.startswith("--"):
        return spelling.startswith(option)
    return len(option) > 1 and option[0] == "-" and (spelling == option[:2] or spelling.startswith(option))

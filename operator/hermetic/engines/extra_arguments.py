"""A user's extra arguments, parsed as the engine's parser would."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from hermetic.engines.flag_tables import Flag, FlagTable

_DECIMAL = re.compile(r"[0-9]{1,11}(\.[0-9]{1,11})?")
_ROOM = {"none": 0, "one": 1, "optional": 1, "many": sys.maxsize, "any": sys.maxsize}
_UNITS = {"k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True, slots=True)
class WrittenFlag:
    """One flag as it is written, with its own values."""

    written: str
    flag: Flag
    values: tuple[str, ...]

    @property
    def is_negated(self) -> bool:
        """Whether it switches its flag off, in any spelling that the parser takes."""
        option = self.written.partition("=")[0].replace("_", "-")
        return option != self.flag.name and any(negation.startswith(option) for negation in self.flag.negations)

    def wrong_values(self) -> Iterator[str]:
        """Values that are not among the flag's choices; keys of JSON values are not checked."""
        if not _names_a_key(self.written):
            yield from (value for value in self.values if not is_choice(self.flag, value))


def is_flag(argument: str) -> bool:
    """Whether the engine would parse this argument as a flag, not as a value.

    '-1' is a value. '-0.5' is none: vLLM takes the word behind it for the key '5' of a flag '-0'.
    """
    return argument.startswith("-") and not argument[1:].isdecimal()


def is_choice(flag: Flag, value: str) -> bool:
    """Whether the flag takes this value, as far as its choices are known."""
    if flag.folded:
        return value.lower().replace("-", "_") in flag.choices
    return not flag.choices or value in flag.choices or value.lower() == "none"


def read(arguments: Sequence[str], table: FlagTable) -> tuple[tuple[WrittenFlag, ...], tuple[str, ...]]:
    """Every flag with its values, and the words that belong to none, which the engine would take for a model.

    Flags that the version does not know are skipped: callers refuse them first.
    """
    written: list[WrittenFlag] = []
    stray: list[str] = []
    room = 0
    for word in arguments:
        if is_flag(word):
            candidates = table.understood_as(word)
            attached = _attached(word, table)
            written += [WrittenFlag(word, flag, attached) for flag in candidates[:1]]
            room = (0 if attached else _room(word, candidates[0])) if candidates else sys.maxsize
        elif room:
            room -= 1
            written[-1:] = [
                WrittenFlag(flag_before.written, flag_before.flag, (*flag_before.values, word))
                for flag_before in written[-1:]
            ]
        else:
            stray.append(word)
    return tuple(written), tuple(stray)


def _attached(word: str, table: FlagTable) -> tuple[str, ...]:
    """The value in the same word: '3' of '--flag=3', and of '-O3' and '-O=3', which vLLM rewrites."""
    for prefix in table.shorthands:
        if word.startswith(prefix):
            value = word.removeprefix(prefix).removeprefix("=")
            return (value,) if value else ()
    _, equals, value = word.partition("=")
    return (value,) if equals else ()


def _room(word: str, flag: Flag) -> int:
    """How many of the following words the flag takes. A short flag with its value appended still counts one more."""
    return 1 if _names_a_key(word) else _ROOM[flag.value]


def _names_a_key(word: str) -> bool:
    return "." in word.split("=", 1)[0]


def decimal_number(flags: Mapping[str, WrittenFlag], name: str) -> Decimal | None:
    """The value of a flag as a decimal number without a sign, unit or exponent; None where it is none."""
    text = flags[name].values[-1] if name in flags and flags[name].values else ""
    return Decimal(text) if _DECIMAL.fullmatch(text) is not None else None


def whole_number(flags: Mapping[str, WrittenFlag], name: str) -> int:
    """The value of a flag as a whole number, with the units of vLLM: 8k is 8000, 8K is 8192; 0 where it is none."""
    text = flags[name].values[-1] if name in flags and flags[name].values else ""
    digits, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    return int(digits) * unit if digits.isdecimal() and len(digits) < 12 else 0

"""A user's extra arguments, parsed as the engine's parser would."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermetic.engines.flag_tables import Flag, FlagTable

_ROOM = {"none": 0, "one": 1, "optional": 1, "many": sys.maxsize, "any": sys.maxsize}


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
        return option != self.flag.name and any(one.startswith(option) for one in self.flag.negations)

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
            known = table.understood_as(word)
            written += [WrittenFlag(word, flag, _attached(word)) for flag in known[:1]]
            room = _room(word, known[0]) if known else sys.maxsize
        elif room:
            room -= 1
            written[-1:] = [WrittenFlag(one.written, one.flag, (*one.values, word)) for one in written[-1:]]
        else:
            stray.append(word)
    return tuple(written), tuple(stray)


def _attached(word: str) -> tuple[str, ...]:
    _, equals, value = word.partition("=")
    return (value,) if equals else ()


def _room(word: str, flag: Flag) -> int:
    """How many of the following words the flag takes. A short flag with its value appended still counts one more."""
    if "=" in word:
        return 0
    return 1 if _names_a_key(word) else _ROOM[flag.value]


def _names_a_key(word: str) -> bool:
    return "." in word.split("=", 1)[0]

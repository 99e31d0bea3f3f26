"""What a user's own arguments tell an engine, read as its parser would read them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hermetic.engines.flag_tables import Flag, FlagTable

_ROOM = {"none": 0, "one": 1, "optional": 1, "many": sys.maxsize, "any": sys.maxsize}


@dataclass(frozen=True, slots=True)
class Told:
    """One flag as it is written, with the values that are its own."""

    written: str
    flag: Flag
    values: tuple[str, ...]

    def wrong_values(self) -> Iterator[str]:
        """Values that are none of the flag's choices; what a key of a JSON value may hold is not known."""
        if not _names_a_key(self.written):
            yield from (value for value in self.values if not is_choice(self.flag, value))


def is_flag(argument: str) -> bool:
    """Whether the engine would look for a flag of this name, and not take it for a value."""
    return argument.startswith("-") and not argument.lstrip("-").replace(".", "", 1).isdigit()


def is_choice(flag: Flag, value: str) -> bool:
    """Whether the flag takes this value, as far as its choices are known."""
    return not flag.choices or value in flag.choices or value.lower() == "none"


def read(arguments: Sequence[str], table: FlagTable) -> tuple[tuple[Told, ...], tuple[str, ...]]:
    """Every flag with its values, and the words that belong to none: the engine would take those for another model.

    Flags that the version does not know are passed over: whoever asks has refused them before.
    """
    told: list[Told] = []
    stray: list[str] = []
    room = 0
    for word in arguments:
        if is_flag(word):
            known = table.understood_as(word)
            told += [Told(word, flag, _attached(word)) for flag in known[:1]]
            room = _room(word, known[0]) if known else sys.maxsize
        elif room:
            room -= 1
            told[-1:] = [Told(one.written, one.flag, (*one.values, word)) for one in told[-1:]]
        else:
            stray.append(word)
    return tuple(told), tuple(stray)


def _attached(word: str) -> tuple[str, ...]:
    _, equals, value = word.partition("=")
    return (value,) if equals else ()


def _room(word: str, flag: Flag) -> int:
    """How many of the words behind it the flag takes. A short flag may have its value glued on: one is let pass."""
    if "=" in word:
        return 0
    return 1 if _names_a_key(word) else _ROOM[flag.value]


def _names_a_key(word: str) -> bool:
    return "." in word.split("=", 1)[0]

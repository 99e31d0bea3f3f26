"""The arguments of a server as its release reads them: known flags, unknown ones, and words that belong to none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hermetic.engines.extra_arguments import WrittenFlag, is_flag, read
from hermetic.engines.flag_tables import FlagTable
from hermetic.errors import InputError

MOST_WORDS = 512
"""Words behind the program: `extraArgs` takes 64."""
_FLAG_AND_VALUE = re.compile(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class UnknownFlag:
    """A flag that the release does not know, or that stands for several, with the words behind it."""

    written: str
    values: tuple[str, ...]

    @property
    def name(self) -> str:
        """The flag as it is written, without value and key."""
        return self.written.partition("=")[0].partition(".")[0]


@dataclass(frozen=True, slots=True)
class ReadArguments:
    """`flags` without those that a later one replaces; these are `repeated`."""

    flags: tuple[WrittenFlag, ...]
    repeated: tuple[WrittenFlag, ...]
    stray: tuple[str, ...]
    unknown: tuple[UnknownFlag, ...]

    def flag(self, name: str) -> WrittenFlag | None:
        """The flag of this name, if the command has it."""
        return next((flag for flag in self.flags if flag.flag.name == name), None)


def read_arguments(arguments: Sequence[str], table: FlagTable) -> ReadArguments:
    """The arguments, each flag with its values. Raises InputError for more than a server is ever started with."""
    if len(arguments) > MOST_WORDS:
        raise InputError(
            f"the server has {len(arguments)} arguments, and at most {MOST_WORDS} are read",
            fix="leave out what the model does not need",
        )
    known_arguments: list[str] = []
    unknown: list[UnknownFlag] = []
    is_behind_unknown = False
    for word in separated(arguments):
        if is_flag(word):
            is_behind_unknown = not table.knows(word)
            if is_behind_unknown:
                unknown.append(UnknownFlag(word, ()))
                continue
        elif is_behind_unknown:
            unknown[-1] = UnknownFlag(unknown[-1].written, (*unknown[-1].values, word))
            continue
        known_arguments.append(word)
    flags, stray = read(known_arguments, table)
    counted, repeated = _last_of_each(flags)
    return ReadArguments(counted, repeated, stray, tuple(unknown))


def separated(arguments: Sequence[str]) -> list[str]:
    """The arguments, with a flag and its value as two where one word holds both."""
    separated: list[str] = []
    for argument in arguments:
        pair = _FLAG_AND_VALUE.fullmatch(argument)
        separated += [pair[1], pair[2]] if pair is not None else [argument]
    return separated


def _last_of_each(flags: Sequence[WrittenFlag]) -> tuple[tuple[WrittenFlag, ...], tuple[WrittenFlag, ...]]:
    """The flags that count, in their order, and those that a later one of the same name and key replaces."""
    last = {_identity(flag): position for position, flag in enumerate(flags)}
    counts = [flag.flag.repeats or last[_identity(flag)] == position for position, flag in enumerate(flags)]
    return (
        tuple(flag for flag, is_counted in zip(flags, counts, strict=True) if is_counted),
        tuple(flag for flag, is_counted in zip(flags, counts, strict=True) if not is_counted),
    )


def _identity(flag: WrittenFlag) -> tuple[str, str]:
    """The name, and the dotted key below it, which is another value."""
    return flag.flag.name, dotted_key(flag)


def dotted_key(flag: WrittenFlag) -> str:
    """The key of `--flag.key value` with everything below it; "" for a flag without one."""
    return flag.written.partition("=")[0].partition(".")[2]


def written_in_full(flag: WrittenFlag) -> str:
    """The option with its full name: no abbreviation, no alias, no underscore.

    A value that is glued to a short flag ('-qfp8') stays, unless it is read as the flag's value ('-O3').
    """
    option = flag.written.partition("=")[0]
    if key := dotted_key(flag):
        return f"{flag.flag.name}.{key}"
    spelling = option.replace("_", "-") if option.startswith("--") else option
    if flag.is_negated:
        return next(negation for negation in flag.flag.negations if negation.startswith(spelling))
    is_glued = not spelling.startswith("--") and spelling not in flag.flag.spellings and not flag.values
    return option if is_glued else flag.flag.name

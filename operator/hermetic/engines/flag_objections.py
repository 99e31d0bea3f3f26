"""What an engine with flag tables would refuse of `spec.engine.<member>`, found before a pod exists."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from hermetic.api.engine import Member
from hermetic.api.reserved_flags import LONGEST_CONTEXT, MEDIA_FROM_NOWHERE, REMOTE_CODE
from hermetic.api.spec_reasons import SpecReason
from hermetic.api.text import first_of
from hermetic.engines.argument_values import LONGEST_SHOWN, refused, shown
from hermetic.engines.extra_arguments import is_choice, is_flag, read
from hermetic.engines.flag_tables import FlagTable, TableFolder
from hermetic.engines.protocol import Objection
from hermetic.engines.release_history import why_missing

LIKE_A_FLAG = 0.75
"""Least similarity, of 1, of a flag that is suggested for another: half of every flag is the same words."""
EXCEPTIONS = (MEDIA_FROM_NOWHERE, REMOTE_CODE, LONGEST_CONTEXT)
"""Arguments with a reserved flag that the API server accepts when they are written exactly like this."""
SHOWN = 4
"""Unknown flags that one message names."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The input from `spec.engine.<member>`: release, arguments, and (field, flag, value) of fields with choices."""

    member: Member
    version: str
    extra_args: Sequence[str]
    chosen: tuple[tuple[str, str, str], ...] = ()

    def path(self, field: str) -> str:
        """The field's path as messages write it."""
        return f"`engine.{self.member}.{field}`"


def objection(typed: Typed, tables: TableFolder, reserved: Mapping[str, str]) -> Objection | None:
    """The first of: no table for the release, an unknown flag, a reserved one, a stray word, a refused value."""
    version, arguments = f"spec.engine.{typed.member}.version", f"spec.engine.{typed.member}.extraArgs"
    if not tables.is_supported(typed.version):
        message = f"{typed.path('version')} '{typed.version}' is not supported; use a release of "
        return Objection(SpecReason.ENGINE_VERSION_UNSUPPORTED, message + ", ".join(tables.supported), version)
    table = tables.table_for(typed.version)
    if unknown := unknown_flags(typed.extra_args, table):
        # A search for a similar name takes milliseconds: the rest is counted alone, and an option is looked for once.
        did_you_mean = cache(partial(_did_you_mean, sorted(table.flags.keys() - reserved.keys())))
        clauses = [_unknown(argument, typed, table, tables, did_you_mean) for argument in unknown[:SHOWN]]
        listed = first_of((*clauses, *unknown[SHOWN:]), SHOWN, separator="; ")
        message = f"{typed.path('extraArgs')} holds {listed}"
        return Objection(SpecReason.ENGINE_FLAG_UNKNOWN, message, arguments)
    if message := next(_reserved(typed, table, reserved), ""):
        return Objection(SpecReason.ENGINE_FLAG_RESERVED, message, arguments)
    if message := next(_would_refuse(typed, table), ""):
        return Objection(SpecReason.ENGINE_FLAG_UNKNOWN, message, arguments)
    return None


def unknown_flags(arguments: Sequence[str], table: FlagTable) -> tuple[str, ...]:
    """The arguments that this release would refuse as flags that it does not know."""
    return tuple(argument for argument in arguments if is_flag(argument) and not table.knows(argument))


def _unknown(
    argument: str, typed: Typed, table: FlagTable, tables: TableFolder, did_you_mean: Callable[[str], str]
) -> str:
    """One clause for a flag that the release does not know, with what to write instead where that is known."""
    clause = f"'{shown(argument)}', which {table.dialect.product} {table.version} does not know"
    first_word = argument.partition(" ")[0]
    if first_word != argument and table.knows(first_word):
        return f"{clause}; write each word as an item of its own, '{shown(first_word)}' first: no shell splits them"
    if history := why_missing(typed.member, argument, table, tables):
        return f"{clause}: {history}"
    return clause + did_you_mean(argument.partition("=")[0])


def _did_you_mean(flags: Sequence[str], option: str) -> str:
    near = difflib.get_close_matches(option, flags, n=1, cutoff=LIKE_A_FLAG)
    return f"; did you mean '{near[0]}'?" if near else ""


def _reserved(typed: Typed, table: FlagTable, reserved: Mapping[str, str]) -> Iterator[str]:
    for argument in typed.extra_args:
        reached = [flag.name for flag in table.understood_as(argument) if flag.name in reserved]
        if reached and argument.startswith("-") and argument not in EXCEPTIONS:
            yield (
                f"{typed.path('extraArgs')} holds '{argument}', which {table.dialect.product} takes for "
                f"'{reached[0]}': {reserved[reached[0]]}"
            )


def _would_refuse(typed: Typed, table: FlagTable) -> Iterator[str]:
    """Clauses for words that belong to no flag, and for values outside the flag's choices or of another type."""
    release, extra_args = f"{table.dialect.product} {table.version}", typed.path("extraArgs")
    written, stray = read(typed.extra_args, table)
    if stray:
        yield (
            f"{extra_args} holds {_quoted(stray)}, which belongs to no flag: {table.dialect.product} would take it for "
            "another model; remove it, or write it behind the flag that it is the value of"
        )
    for field, name, value in typed.chosen:
        flag = table.flags.get(name)
        if flag is not None and not is_choice(flag, value):
            yield _not_a_choice(typed.path(field), value, name, release, flag.choices)
    for written_flag in written:
        for value in written_flag.wrong_values():
            yield _not_a_choice(extra_args, value, written_flag.flag.name, release, written_flag.flag.choices)
    for clause in refused(written, table):
        yield f"{extra_args} holds {clause}: {release} would end with exit code 2"


def _not_a_choice(field: str, value: str, flag: str, release: str, choices: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(value[:LONGEST_SHOWN], choices, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return f"{field} has '{shown(value)}' for {flag}, for which {release} knows: {', '.join(choices)}{meant}"


def _quoted(texts: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in texts)

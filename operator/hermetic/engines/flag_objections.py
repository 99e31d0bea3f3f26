"""What an engine with flag tables would refuse of `spec.engine.<member>`, found before a pod exists."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hermetic.api.reasons import Reason
from hermetic.api.reserved_flags import MEDIA_FROM_NOWHERE
from hermetic.engines.argument_values import refused
from hermetic.engines.extra_arguments import is_choice, is_flag, read
from hermetic.engines.flag_tables import FlagTable, TableFolder
from hermetic.engines.protocol import Objection

LIKE_A_FLAG = 0.75
"""Least similarity, of 1, of a flag that is suggested for another: half of every flag is the same words."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The input from `spec.engine.<member>`: release, arguments, and (field, flag, value) of fields with choices."""

    member: str
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
        return Objection(Reason.ENGINE_VERSION_UNSUPPORTED, message + ", ".join(tables.supported), version)
    table = tables.table_for(typed.version)
    if unknown := unknown_flags(typed.extra_args, table):
        message = (
            f"{typed.path('extraArgs')} holds {_quoted(unknown)}, which {table.dialect.product} {table.version} does "
            f"not know{_did_you_mean(unknown[0], table)}"
        )
        return Objection(Reason.ENGINE_FLAG_UNKNOWN, message, arguments)
    if message := next(_reserved(typed, table, reserved), ""):
        return Objection(Reason.ENGINE_FLAG_RESERVED, message, arguments)
    if message := next(_would_refuse(typed, table), ""):
        return Objection(Reason.ENGINE_FLAG_UNKNOWN, message, arguments)
    return None


def unknown_flags(arguments: Sequence[str], table: FlagTable) -> tuple[str, ...]:
    """The arguments that this release would refuse as flags that it does not know."""
    return tuple(argument for argument in arguments if is_flag(argument) and not table.knows(argument))


def _did_you_mean(argument: str, table: FlagTable) -> str:
    near = difflib.get_close_matches(argument.partition("=")[0], sorted(table.flags), n=1, cutoff=LIKE_A_FLAG)
    return f"; did you mean '{near[0]}'?" if near else ""


def _reserved(typed: Typed, table: FlagTable, reserved: Mapping[str, str]) -> Iterator[str]:
    for argument in typed.extra_args:
        reached = [flag.name for flag in table.understood_as(argument) if flag.name in reserved]
        if reached and argument.startswith("-") and argument != MEDIA_FROM_NOWHERE:
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
    for one in written:
        for value in one.wrong_values():
            yield _not_a_choice(extra_args, value, one.flag.name, release, one.flag.choices)
    for clause in refused(written, table):
        yield f"{extra_args} holds {clause}: {release} would end with exit code 2"


def _not_a_choice(field: str, value: str, flag: str, release: str, choices: tuple[str, ...]) -> str:
    return f"{field} has '{value}' for {flag}, for which {release} knows: {', '.join(choices)}"


def _quoted(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)

"""The flags of a command as fields and arguments of a ModelDeployment, each by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hermetic.conversion.arguments import ReadArguments, UnknownFlag, dotted_key, written_in_full
from hermetic.conversion.field_flags import FIELD_FLAGS, Target, refuse_more_gpus, size_of
from hermetic.conversion.model_files import ModelFiles, compact_json, staged_value
from hermetic.conversion.outcomes import Argument, Note, Outcome, left_out
from hermetic.conversion.server_command import FlagMember
from hermetic.conversion.shell_text import has_substitution
from hermetic.conversion.successors import Successors
from hermetic.conversion.trial_spec import Trial
from hermetic.engines.allowed_values import object_of
from hermetic.engines.extra_arguments import WrittenFlag, is_choice
from hermetic.engines.flag_engine import FlagEngine
from hermetic.errors import InputError

SUBSTITUTED = "only a shell knows the value of what it holds, and nothing is executed: write the value into the command"
_LONGEST = 1024
"""Characters of an item of `extraArgs`."""
# Flags that are read elsewhere: the model, and the names that it is served by.
MODEL_FLAGS: Mapping[FlagMember, str] = {"vllm": "--model", "sglang": "--model-path"}
NAME_FLAG = "--served-model-name"
# What a plug-in brings, by its flag; both spellings are in public guides. Without the plug-in the engine does not know
# the parser, and ends at the start.
_PLUGGED_IN: Mapping[str, str] = {
    "--tool-parser-plugin": "--tool-call-parser",
    "--tool-call-parser-plugin": "--tool-call-parser",
    "--reasoning-parser-plugin": "--reasoning-parser",
}
# Flags by which another rank than the first of several nodes is started, with the values that mean the first.
_OF_OTHER_RANKS: Mapping[str, frozenset[str]] = {
    "--node-rank": frozenset({"0"}),
    "--headless": frozenset(),
    "--data-parallel-start-rank": frozenset({"0"}),
}
_OF_ONE_NODE, _OF_ALL_NODES = "--data-parallel-size-local", "--data-parallel-size"


@dataclass(frozen=True, slots=True)
class FlagConversion:
    """What all flags of one command are converted with."""

    member: FlagMember
    successors: Successors
    target: Target
    trial: Trial[FlagEngine]
    files: ModelFiles

    def outcomes(self, arguments: ReadArguments) -> Iterator[Outcome]:
        """What becomes of every flag but those of the model and its names.

        Raises InputError for a rank of several nodes other than the first, and for data parallel ranks of several.
        """
        _refuse_other_ranks(arguments)
        self._refuse_several_nodes(arguments)
        for repeated in arguments.repeated:
            yield left_out(repeated.flag.name, "it is given again, and the last value counts")
        plugged_in = _plugged_in(arguments)
        outcomes: list[tuple[WrittenFlag, Outcome]] = []
        for flag in arguments.flags:
            if flag.flag.name in (MODEL_FLAGS[self.member], NAME_FLAG):
                continue
            if flag.flag.name in plugged_in and not _is_built_in(flag):
                message = f"it is of the plug-in of {plugged_in[flag.flag.name]}, which is code from outside the image"
                outcomes.append((flag, left_out(flag.flag.name, message)))
            else:
                outcomes += [(flag, outcome) for outcome in self._of_flag(flag)]
        yield from self._with_companions(outcomes)
        yield from (self._of_unknown(unknown) for unknown in arguments.unknown)

    def _refuse_several_nodes(self, arguments: ReadArguments) -> None:
        """Several nodes for data parallel ranks, of which each would be a replica."""
        ranks, nodes = arguments.flag(_OF_ALL_NODES), arguments.flag("--nnodes")
        is_group = nodes is not None and size_of(nodes) != 1
        for flag in arguments.flags:
            is_of_ranks = flag.flag.name == _OF_ONE_NODE and ranks is not None and ranks.values != flag.values
            if is_of_ranks or (is_group and flag.flag.name in self.trial.engine.not_in_groups):
                raise InputError(
                    f"the command has {flag.flag.name} for several nodes: data parallel ranks get one node each",
                    fix="convert the command of one rank, and set `replicas`",
                )

    def _with_companions(self, outcomes: list[tuple[WrittenFlag, Outcome]]) -> Iterator[Outcome]:
        """The outcomes without arguments that the release refuses without another one, which is left out."""
        names = {flag.flag.name for flag, outcome in outcomes if isinstance(outcome, Argument)}
        needed = dict(self.successors.table.dialect.together)
        for flag, outcome in outcomes:
            companion = needed.get(flag.flag.name, "") if not flag.is_negated else ""
            if isinstance(outcome, Argument) and companion and companion not in names:
                yield left_out(flag.flag.name, f"it needs {companion} beside it, which the manifest does not have")
            else:
                yield outcome

    def _of_flag(self, flag: WrittenFlag) -> Iterator[Outcome]:
        name = flag.flag.name
        reserved = self.trial.engine.reserved
        if any(has_substitution(value) for value in flag.values):
            yield left_out(name, SUBSTITUTED)
        elif name in FIELD_FLAGS[self.member]:
            yield from FIELD_FLAGS[self.member][name](flag, self.target)
        elif name in reserved:
            yield left_out(name, reserved[name])
        else:
            yield from self._of_argument(flag)

    def _of_argument(self, flag: WrittenFlag) -> Iterator[Outcome]:
        flag, removed = self._without_unreviewed_keys(flag)
        items, staged = self._staged(flag)
        beside = self._companion(flag.flag.name)
        groups = self.trial.engine.groups({flag.flag.name: flag})
        refuse_more_gpus(groups)
        if objection := self.trial.objection_to_argument((*items, *beside), groups):
            yield left_out(flag.flag.name, objection)
            return
        yield Argument(items)
        yield from (*removed, *staged)

    def _companion(self, name: str) -> tuple[str, ...]:
        """The flag that the release takes this one only with, with some value; () where it needs none."""
        needed = self.successors.table.flags.get(dict(self.successors.table.dialect.together).get(name, ""))
        if needed is None:
            return ()
        return (needed.name,) if needed.value == "none" else (needed.name, *(needed.choices[:1] or ("value",)))

    def _without_unreviewed_keys(self, flag: WrittenFlag) -> tuple[WrittenFlag, tuple[Note, ...]]:
        """The flag with an object of reviewed keys only: one key that is not on the list takes no other with it."""
        keys = self.trial.engine.allowed.flags.keys.get(flag.flag.name)
        value = object_of(flag.values[0]) if keys is not None and len(flag.values) == 1 else None
        if keys is None or value is None or value.keys() <= keys or dotted_key(flag):
            return flag, ()
        reviewed = {key: inner for key, inner in value.items() if key in keys}
        if not reviewed:
            return flag, ()
        reason = "it is not on the reviewed list"
        notes = tuple(left_out(f"{flag.flag.name}.{key[:64]}", reason) for key in value if key not in keys)
        return replace(flag, values=(compact_json(reviewed),)), notes

    def _staged(self, flag: WrittenFlag) -> tuple[tuple[str, ...], tuple[Note, ...]]:
        """The items of the flag with its models and files as the pod reads them, and what must be staged."""
        name, key = flag.flag.name, dotted_key(flag)
        reviewed = self.trial.engine.allowed.flags
        staged = [staged_value(name, key, _in_one_line(value), reviewed, self.files) for value in flag.values]
        values = tuple(value for value, _ in staged)
        notes = tuple(note for _, notes in staged for note in notes)
        option = written_in_full(flag)
        if "=" in flag.written and values:
            return (f"{option}={values[0]}", *values[1:]), notes
        return (option, *values), notes

    def _of_unknown(self, unknown: UnknownFlag) -> Note:
        spelled = self.successors.table.understood_as(unknown.written)
        product = f"{self.successors.table.dialect.product} {self.successors.table.version}"
        if len(spelled) > 1:
            names = ", ".join(sorted(flag.name for flag in spelled)[:4])
            return left_out(unknown.name[:128], f"it stands for several flags of {product}, such as {names}")
        dropped = self.successors.dropped(unknown.name)
        if dropped is not None:
            message = f"{self.successors.table.dialect.product} {dropped.since} dropped it: {dropped.instead}"
            return left_out(unknown.name, message)
        # Without its value, which could be a secret behind a flag that is misspelled.
        option = unknown.written.partition("=")[0][:128]
        return left_out(option, self.trial.objection_to_argument((option,), 1))


def _is_built_in(flag: WrittenFlag) -> bool:
    """Whether the release itself has every value of the flag, as far as its table says."""
    return bool(flag.flag.choices) and all(is_choice(flag.flag, value) for value in flag.values)


def _plugged_in(arguments: ReadArguments) -> dict[str, str]:
    """The flags whose values come from a plug-in of the command, each with the flag of the plug-in."""
    names = [flag.flag.name for flag in arguments.flags] + [unknown.name for unknown in arguments.unknown]
    return {_PLUGGED_IN[name]: name for name in names if name in _PLUGGED_IN}


def _refuse_other_ranks(arguments: ReadArguments) -> None:
    for flag in arguments.flags:
        of_the_first = _OF_OTHER_RANKS.get(flag.flag.name)
        if of_the_first is not None and not of_the_first.intersection(flag.values):
            raise InputError(
                f"the command has {flag.flag.name}: it starts another rank than the first of several nodes",
                fix="convert the command of the first, which has --node-rank 0: the others follow from it",
            )


def _in_one_line(value: str) -> str:
    """A JSON value of several lines, or a long one, without the blanks that mean nothing."""
    if "\n" not in value and len(value) <= _LONGEST:
        return value
    try:
        return compact_json(json.loads(value))
    except (ValueError, RecursionError):
        return value

"""Which model a command serves, by which names, and what the object is called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.modeldeployment import NAME_PATTERN, SERVED_NAME
from hermetic.conversion.arguments import ReadArguments
from hermetic.conversion.engine_flags import MODEL_FLAGS, NAME_FLAG, SUBSTITUTED
from hermetic.conversion.model_files import folder_name, is_path
from hermetic.conversion.outcomes import Field, Note, Outcome, left_out
from hermetic.conversion.server_command import FlagMember
from hermetic.conversion.shell_text import has_substitution
from hermetic.errors import InputError

_LONGEST_NAME = 46
_MOST_ALIASES = 16
_DASHES = ("\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2212")
"""Characters that look like hyphens, which word processors and web pages put in place of them."""


@dataclass(frozen=True, slots=True)
class ServedModel:
    """`reference`: the repository or path. `names`: those that clients use, the first of them first."""

    reference: str
    names: tuple[str, ...]
    outcomes: tuple[Outcome, ...]


def served_model(arguments: ReadArguments, member: FlagMember) -> ServedModel:
    """The model of the command. Raises InputError where it names none, or one that is not known here."""
    flag = arguments.flag(MODEL_FLAGS[member])
    stray = arguments.stray
    reference = flag.values[-1] if flag is not None and flag.values else ""
    # vLLM takes a word that belongs to no flag for the model, and prefers it to --model.
    if member == "vllm" and stray and (not reference or "/" in stray[0]):
        reference, stray = stray[0], stray[1:]
    if member == "vllm" and not reference:
        reference = _behind_unknown_flag(arguments)
    if not reference or has_substitution(reference):
        problem = f"its model is '{reference[:128]}'; {SUBSTITUTED}" if reference else "the command names no model"
        raise InputError(problem, fix=_how_to_name(member))
    names, notes = _names(arguments, reference, member)
    return ServedModel(reference, names, (*_name_fields(names, member), *notes, *map(_stray, stray)))


def _behind_unknown_flag(arguments: ReadArguments) -> str:
    """The only word behind unknown flags that names a repository or a path: such a flag may take no value."""
    references = [word for unknown in arguments.unknown for word in unknown.values if "/" in word]
    return references[0] if len(references) == 1 else ""


def _how_to_name(member: FlagMember) -> str:
    if member == "sglang":
        return "name it behind its flag: sglang serve --model-path ORG/MODEL"
    return "name it first: vllm serve ORG/MODEL"


def _stray(word: str) -> Note:
    if word.startswith(_DASHES):
        return left_out(word[:64], "it begins with a dash other than the hyphen ('-'): type it again")
    return left_out(word[:64], "it belongs to no flag")


def _names(arguments: ReadArguments, reference: str, member: FlagMember) -> tuple[tuple[str, ...], tuple[Note, ...]]:
    """The names to serve by, and notes about those that cannot be."""
    flag = arguments.flag(NAME_FLAG)
    stated_names = flag.values if flag is not None else ()
    names = tuple(dict.fromkeys(name for name in stated_names if _is_servable(name, member)))
    notes = [
        left_out(f"{NAME_FLAG} {name[:64]}", "clients cannot send it") for name in stated_names if name not in names
    ]
    if names:
        return names, tuple(notes)
    name = folder_name(reference) if is_path(reference) else reference
    if not _is_servable(name, member):
        raise InputError(f"'{name[:128]}' cannot be the name of a model", fix=f"add {NAME_FLAG} NAME to the command")
    if name != reference:
        notes.append(Note("set", "model.name", f"'{name}', of the path: clients send it; correct it if need be"))
    return (name,), tuple(notes)


def _is_servable(name: str, member: FlagMember) -> bool:
    return re.fullmatch(SERVED_NAME, name) is not None and len(name) <= 253 and (member == "vllm" or ":" not in name)


def _name_fields(names: tuple[str, ...], member: FlagMember) -> Iterator[Outcome]:
    yield Field("model.name", names[0])
    aliases = names[1 : 1 + _MOST_ALIASES] if member == "vllm" else ()
    if aliases:
        yield Field("model.aliases", list(aliases))
    for name in names[1 + len(aliases) :]:
        yield left_out(f"{NAME_FLAG} {name[:64]}", "the engine or the manifest takes no further name")


def object_name(name: str, served_name: str) -> str:
    """The name of the object: the one that was asked for, or one that follows from the served name.

    Raises InputError for a name that no ModelDeployment can have.
    """
    if name:
        if re.fullmatch(NAME_PATTERN, name) is None:
            raise InputError(
                f"--name '{name[:64]}' must be 1 to {_LONGEST_NAME} lower-case letters, digits or '-', and begin with "
                "a letter",
                fix="--name llama-3-1-8b",
            )
        return name
    base_name = re.sub(r"[^a-z0-9]+", "-", served_name.rpartition("/")[2].lower()).strip("-")
    object_name_of_model = base_name if base_name[:1].isalpha() else f"model-{base_name}"
    return object_name_of_model[:_LONGEST_NAME].strip("-")

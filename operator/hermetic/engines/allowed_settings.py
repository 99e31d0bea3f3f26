"""Which of a spec's own variables and arguments an engine may be given, and why the others may not."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hermetic.api.engine import EnvironmentVariable, Nim, Vllm
from hermetic.api.reserved_flags import MEDIA_FROM_NOWHERE, VLLM_FLAGS
from hermetic.engines.allow_list import Names, flags_of, variables_of
from hermetic.engines.allowed_values import object_of, objection
from hermetic.engines.extra_arguments import Told, is_flag, read
from hermetic.engines.vllm_tables import supported_minors, table_for

_NONE: frozenset[str] = frozenset()
# Where vLLM takes the method 'custom_class' for leave to import what the draft model names.
_IMPORTS = frozenset({"--spec-method", "--speculative-config.method"})


@dataclass(frozen=True, slots=True)
class Refused:
    """One variable or argument that may not be given to the engine: by its name, or for what its value says."""

    field: Literal["variable", "argument"]
    kind: Literal["name", "value"]
    name: str
    why: str
    near: str = ""


@dataclass(frozen=True, slots=True)
class Extra:
    """Names that the operator's configuration allows beside the reviewed ones."""

    variables: frozenset[str] = _NONE
    arguments: frozenset[str] = _NONE


def refused_of_vllm(vllm: Vllm, weights: tuple[str, ...], extra: Extra) -> Iterator[Refused]:
    """Everything of `extraArgs` and `extraEnv` that may not be given to this release of vLLM."""
    table = table_for(vllm.version)
    flags = flags_of("vllm").with_names(extra.arguments)
    told, _ = read(vllm.extra_args, table)
    for one in told:
        yield from _judged_flag(one, flags, weights)
    # A variable that the release does not know does nothing, and is refused as a mistake.
    known = variables_of("vllm")
    present = Names(known.allowed & table.environment, known.refused, known.paths, {}, {})
    names = present.joined(variables_of("common")).with_names(extra.variables)
    yield from _judged_variables(vllm.extra_env, names, weights)


def refused_of_nim(nim: Nim, weights: tuple[str, ...], extra: Extra) -> Iterator[Refused]:
    """Everything of `extraArgs` and `extraEnv` that may not be given to a NIM of this line."""
    flags, variables = flags_of("vllm"), variables_of("nim").joined(variables_of("common"))
    if nim.line.startswith("2."):
        variables = variables.joined(variables_of("vllm"))
    if nim.line != "2.0":
        flags = flags.joined(flags_of("sglang"))
    flags = flags.with_names(extra.arguments)
    for one in _read_in_full(nim.extra_args, flags):
        yield from _judged_flag(one, flags, weights)
    yield from _judged_variables(nim.extra_env, variables.with_names(extra.variables), weights)


@dataclass(frozen=True, slots=True)
class _InFull:
    """A flag of a NIM, whose engine has no table: it must be written out."""

    written: str
    name: str
    values: tuple[str, ...]


def _read_in_full(arguments: Sequence[str], flags: Names) -> tuple[_InFull, ...]:
    """Every flag with every word behind it that is no flag."""
    found: list[_InFull] = []
    for word in arguments:
        if is_flag(word):
            head, equals, value = word.partition("=")
            name = head.partition(".")[0].replace("_", "-")
            found.append(_InFull(word, _written_out(name, flags), (value,) if equals else ()))
        elif found:
            found[-1] = _InFull(found[-1].written, found[-1].name, (*found[-1].values, word))
        else:
            found.append(_InFull(word, word, ()))
    return tuple(found)


def _written_out(name: str, flags: Names) -> str:
    """The flag that vLLM's newest table knows by this spelling (an alias or a negation), else the word itself."""
    if name in flags.allowed:
        return name
    flag = table_for(supported_minors()[-1]).flag(name)
    return flag.name if flag is not None else name


def _judged_flag(one: Told | _InFull, flags: Names, weights: tuple[str, ...]) -> Iterator[Refused]:
    name = one.flag.name if isinstance(one, Told) else one.name
    if one.written == MEDIA_FROM_NOWHERE or (isinstance(one, Told) and name in VLLM_FLAGS):
        return  # the exception that closes something; what is reserved is refused with its own reason
    if name not in flags.allowed:
        yield Refused("argument", "name", name, flags.why_not(name), _near(name, flags.allowed))
        return
    key = _key(one.written)
    for value in (*one.values, *_glued(one)) or (("",) if key else ()):
        if wrong := _wrong_value(name, key, value, flags, weights):
            yield Refused("argument", "value", name, wrong)
            return


def _key(written: str) -> str:
    """The first key of `--flag.key.deeper value`, as vLLM spells it; "" for a flag without one."""
    return written.partition("=")[0].partition(".")[2].partition(".")[0].replace("-", "_").rstrip("+")


def _glued(one: Told | _InFull) -> tuple[str, ...]:
    """The value that sticks to a short flag: 'fp8' of '-qfp8'."""
    short = isinstance(one, Told) and not one.written.startswith("--") and one.written[:2] in one.flag.spellings
    return (one.written[2:],) if short and len(one.written) > 2 and "=" not in one.written else ()


def _wrong_value(name: str, key: str, value: str, flags: Names, weights: tuple[str, ...]) -> str:
    if name in _IMPORTS and value == "custom_class":
        return "says 'custom_class', which imports code by its name; name one of vLLM's own methods"
    if name in flags.values and value not in flags.values[name]:
        return f"says '{value[:64]}', and may say only {', '.join(flags.values[name])}"
    if name in flags.keys:
        return _wrong_object(name, key, value, flags, weights)
    return objection(value, flags.paths.get(name, "none"), weights)


def _wrong_object(name: str, key: str, value: str, flags: Names, weights: tuple[str, ...]) -> str:
    said = {key: _as_json(value)} if key else object_of(value)
    if said is None:
        return "" if value.isdigit() else "must be a JSON object"
    for one, inner in said.items():
        if one not in flags.keys[name]:
            near = _near(one, flags.keys[name])
            meant = f"; did you mean '{near}'?" if near else ""
            return f"sets the key '{one[:64]}', which is not on the reviewed list" + meant
        if wrong := _wrong_value(f"{name}.{one}", "", _as_text(inner), flags, weights):
            return wrong
    return ""


def _as_json(value: str) -> Any:
    """A value of `--flag.key value` as vLLM takes it: JSON where it is JSON, else text."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _judged_variables(
    variables: Iterable[EnvironmentVariable], names: Names, weights: tuple[str, ...]
) -> Iterator[Refused]:
    for variable in variables:
        if variable.name not in names.allowed:
            yield Refused(
                "variable", "name", variable.name, names.why_not(variable.name), _near(variable.name, names.allowed)
            )
            continue
        # Values of variables are told nowhere: people put there what they should not.
        paths = names.paths.get(variable.name, "none")
        if wrong := objection(variable.value, paths, weights, quoted=False):
            yield Refused("variable", "value", variable.name, wrong)


def _near(name: str, allowed: Iterable[str]) -> str:
    """The allowed name that was most likely meant; "" when none is like it."""
    found = difflib.get_close_matches(name[:128], sorted(allowed), n=1, cutoff=0.75) if len(name) <= 128 else ()
    return found[0] if found else ""

"""Which variables and arguments of a spec an engine may be given, and why the others are refused."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hermetic.api.engine_variables import EnvironmentVariable
from hermetic.api.reserved_flags import MEDIA_FROM_NOWHERE
from hermetic.engines.allow_list import AllowedNames
from hermetic.engines.allowed_values import keys_in, object_of, objection
from hermetic.engines.extra_arguments import WrittenFlag, is_flag, read
from hermetic.engines.flag_tables import FlagTable
from hermetic.engines.protocol import Refused

# Flags whose value 'custom_class' makes vLLM import code that is named by the draft model.
_IMPORTS = frozenset({"--spec-method", "--speculative-config.method"})
# Keys by which a configuration of Transformers names code to import, in whatever flag its parts are given. The API
# server refuses others already (api/reserved_flags.py).
_CODE_KEYS = frozenset({"auto_map", "custom_generate", "custom_pipelines"})


def refused_flags(
    arguments: Sequence[str], table: FlagTable, flags: AllowedNames, reserved: Collection[str], weights: tuple[str, ...]
) -> Iterator[Refused]:
    """Every argument that is not on the list, as this release parses it. Another gate refuses reserved flags."""
    written, _ = read(arguments, table)
    for flag in written:
        if flag.flag.name not in reserved:
            yield from _refused_flag(flag, flags, weights)


def refused_flags_in_full(
    arguments: Sequence[str], table: FlagTable, flags: AllowedNames, weights: tuple[str, ...]
) -> Iterator[Refused]:
    """The same for an unknown release: a flag must be written out, or spelled as in `table`."""
    for flag in _read_in_full(arguments, table, flags):
        yield from _refused_flag(flag, flags, weights)


@dataclass(frozen=True, slots=True)
class _InFull:
    """A flag of an engine whose release has no table, written out in full."""

    written: str
    name: str
    values: tuple[str, ...]


def _read_in_full(arguments: Sequence[str], table: FlagTable, flags: AllowedNames) -> tuple[_InFull, ...]:
    """Every flag with the words up to the next flag."""
    read: list[_InFull] = []
    for word in arguments:
        if is_flag(word):
            head, equals, value = word.partition("=")
            name = head.partition(".")[0].replace("_", "-")
            read.append(_InFull(word, _written_out(name, table, flags), (value,) if equals else ()))
        elif read:
            read[-1] = _InFull(read[-1].written, read[-1].name, (*read[-1].values, word))
        else:
            read.append(_InFull(word, word, ()))
    return tuple(read)


def _written_out(name: str, table: FlagTable, flags: AllowedNames) -> str:
    """The flag that the table knows by this spelling (an alias or a negation), else the word itself."""
    if name in flags.allowed:
        return name
    flag = table.flag(name)
    return flag.name if flag is not None else name


def _refused_flag(
    written_flag: WrittenFlag | _InFull, flags: AllowedNames, weights: tuple[str, ...]
) -> Iterator[Refused]:
    name = written_flag.flag.name if isinstance(written_flag, WrittenFlag) else written_flag.name
    if written_flag.written == MEDIA_FROM_NOWHERE:
        return  # the one exception: it blocks media URLs
    if name not in flags.allowed:
        yield Refused("argument", "name", name, flags.why_not(name), _near_unless_refused(name, flags))
        return
    if named := _CODE_KEYS.intersection(_keys_of(written_flag)):
        why = f"sets the key '{min(named)}', which names code to import: code comes in the serving image only"
        yield Refused("argument", "value", name, why)
        return
    key = _key(written_flag.written)
    if key and not written_flag.values:
        why = f"sets the key '{key[:64]}' without a value: the engine would take the next argument for it, flag or not"
        yield Refused("argument", "value", name, why)
    for value in (*written_flag.values, *_glued(written_flag)):
        if wrong := _wrong_value(name, key, value, flags, weights):
            yield Refused("argument", "value", name, wrong)
            return


def _key(written: str) -> str:
    """The first key of `--flag.key.deeper value`, as vLLM spells it; "" for a flag without one."""
    return written.partition("=")[0].partition(".")[2].partition(".")[0].replace("-", "_").rstrip("+")


def _keys_of(flag: WrittenFlag | _InFull) -> Iterator[str]:
    """Every key that the flag sets: those of `--flag.key.deeper value`, and of the objects in its values."""
    yield from (key.rstrip("+") for key in flag.written.partition("=")[0].split(".")[1:])
    for value in flag.values:
        yield from keys_in(value)


def _glued(flag: WrittenFlag | _InFull) -> tuple[str, ...]:
    """The value appended to a short flag: 'fp8' of '-qfp8'."""
    short = (
        isinstance(flag, WrittenFlag) and not flag.written.startswith("--") and flag.written[:2] in flag.flag.spellings
    )
    return (flag.written[2:],) if short and len(flag.written) > 2 and "=" not in flag.written else ()


def _wrong_value(name: str, key: str, value: str, flags: AllowedNames, weights: tuple[str, ...]) -> str:
    if name in _IMPORTS and value == "custom_class":
        return "has the value 'custom_class', which imports code by its name; name one of vLLM's own methods"
    if name in flags.values and value not in flags.values[name]:
        return f"has the value '{value[:64]}', and may have only {', '.join(flags.values[name])}"
    if name in flags.keys:
        return _wrong_object(name, key, value, flags, weights)
    if value in flags.keywords.get(name, ()):
        return ""
    return objection(value, flags.paths.get(name, "none"), weights, keywords=flags.keywords.get(name, ()))


def _wrong_object(name: str, key: str, value: str, flags: AllowedNames, weights: tuple[str, ...]) -> str:
    entries = {key: _as_json(value)} if key else object_of(value)
    if entries is None:
        return "" if value.isdigit() else "must be a JSON object"
    for entry, inner in entries.items():
        if entry not in flags.keys[name]:
            near = _near(entry, flags.keys[name])
            meant = f"; did you mean '{near}'?" if near else ""
            return f"sets the key '{entry[:64]}', which is not on the reviewed list" + meant
        if wrong := _wrong_value(f"{name}.{entry}", "", _as_text(inner), flags, weights):
            return wrong
    return ""


def _as_json(value: str) -> Any:
    """A value of `--flag.key value` as vLLM parses it: JSON if it is valid JSON, else text."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def refused_variables(
    variables: Iterable[EnvironmentVariable],
    names: AllowedNames,
    weights: tuple[str, ...],
    why_unread: Callable[[str], str],
) -> Iterator[Refused]:
    """Every variable that is not on the list, or whose value is not allowed.

    `why_unread` gives one clause for a name that the release does not read, "" where nothing is known about the name.
    """
    for variable in variables:
        name = variable.name
        if name not in names.allowed:
            unread = why_unread(name) if name not in names.refused else ""
            yield (
                Refused("variable", "unread", name, unread)
                if unread
                else Refused("variable", "name", name, names.why_not(name), _near_unless_refused(name, names))
            )
            continue
        # Values of variables are never quoted in messages: they may contain secrets.
        paths = names.paths.get(variable.name, "none")
        if wrong := objection(variable.value, paths, weights, quoted=False):
            yield Refused("variable", "value", variable.name, wrong)


def _near_unless_refused(name: str, names: AllowedNames) -> str:
    """The allowed name that was probably meant; "" for a name that was reviewed and refused: it was meant."""
    return _near(name, names.allowed) if name not in names.refused else ""


def _near(name: str, allowed: Iterable[str]) -> str:
    """The most similar allowed name; "" when none is similar."""
    matches = difflib.get_close_matches(name[:128], sorted(allowed), n=1, cutoff=0.75) if len(name) <= 128 else ()
    return matches[0] if matches else ""

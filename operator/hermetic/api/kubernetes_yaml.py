"""YAML as Kubernetes' own tools read and write it, with stricter rules.

kubectl reads YAML 1.1 the way its Go library does, which is not Python's: `1e3` is a number, `16:30` and `2026-01-31`
are text, `y` is true, `017` is fifteen. The values read here are those that the API server would receive; what kubectl
accepts silently (a duplicate key, a value that JSON cannot express) is a fault here, with line and column.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from hermetic.api.validation_errors import child_path

# Enough for any object that the API server accepts, and far too little for an alias or nesting bomb.
DEEPEST = 100
MOST_FROM_ALIASES = 100_000
LONGEST_PATH = 1024
"""Characters of a path whose place is kept; of a longer one, that of the nearest object around it is given. Each place
has its whole path: a long key above a long list would take gigabytes."""

_TEXT_TAGS = frozenset({"!", "tag:yaml.org,2002:str"})
_TAGS = frozenset({None, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"})
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_NO_NUMBERS = re.compile(r"\.(nan|NaN|NAN)|[-+]?\.(inf|Inf|INF)")
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_UINT64 = 2**64
_BREAKS = frozenset("\x85\u2028\u2029\ufeff")

# libyaml if PyYAML was built with it: ten times as fast, and kubectl's parser is a translation of it.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class YamlPosition:
    """A position in a text; both count from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that can be read and yet must not be used."""

    place: YamlPosition
    message: str


class NotReadable(ValueError):
    """The text is no YAML (or JSON) from `place` on; None where it has no place, as with the whole text."""

    def __init__(self, message: str, position: YamlPosition | None) -> None:
        super().__init__(message)
        self.message = message
        self.place = position


@dataclass(frozen=True, slots=True)
class Document:
    """One document: its number in the text from 1, its value, where each field is, and what is wrong with it."""

    number: int
    value: Any
    places: Mapping[str, YamlPosition] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def place(self, path: str) -> YamlPosition | None:
        """The place of a field (`spec.engine.vllm.extraArgs[0]`), or of the nearest object around it that exists."""
        while path and path not in self.places:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.places.get(path)


def read_documents(text: str) -> Iterator[Document]:
    """Every document that is not empty. Raises NotReadable where the text stops being valid YAML."""
    if text.lstrip()[:1] == "{" and (document := _json_document(text)) is not None:
        yield document
        return
    number, events = 0, _events(text)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            number += 1
            document = _Composer(events).document(number)
            if document.value is not None or document.faults:
                yield document


def dump(manifest: Mapping[str, Any]) -> str:
    """The manifest as YAML: keys in their order, without aliases, quoted wherever readers could differ."""
    return yaml.dump(
        manifest, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1_000_000
    )


def _json_document(text: str) -> Document | None:
    """The only JSON document of the text, which YAML would misread (tabs, surrogate pairs); None if it is not JSON."""
    faults: list[Fault] = []

    def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values_by_key: dict[str, Any] = {}
        for key, value in pairs:
            if key in values_by_key:
                faults.append(Fault(YamlPosition(1, 1), f"duplicate key '{key}' in one object"))
            values_by_key[key] = value
        return values_by_key

    try:
        value = json.loads(text, object_pairs_hook=without_duplicates, parse_constant=_refuse_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # UnicodeEncodeError, of a lone surrogate, is a ValueError
        return None
    return Document(1, value, {"": YamlPosition(1, 1)}, tuple(faults))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml.parse(text, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        problem = ": ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        if mark is not None and _is_tab(text, mark):
            problem = "is indented with a tab, and YAML allows spaces only"
        raise NotReadable(problem, _place(mark) if mark is not None else None) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position] if isinstance(error.position, int) else ""
        position = YamlPosition(before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise NotReadable(f"holds a character that YAML does not allow: {error.reason}", position) from error


def _is_tab(text: str, mark: Any) -> bool:
    line = "".join(text.split("\n")[mark.line : mark.line + 1])
    return line[mark.column : mark.column + 1] == "\t"


def _place(mark: Any) -> YamlPosition:
    return YamlPosition(mark.line + 1, mark.column + 1)


@dataclass(frozen=True, slots=True)
class _Anchored:
    value: Any
    size: int


class _Composer:
    """Makes one document of the events that follow its start."""

    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events
        self._places: dict[str, YamlPosition] = {}
        self._faults: list[Fault] = []
        self._anchors: dict[str, _Anchored] = {}
        self._size = 0
        self._from_aliases = 0

    def document(self, number: int) -> Document:
        """Consumes the events up to the end of the document."""
        first = next(self._events)
        self._places[""] = _place(first.start_mark)
        value = self._value(first, "", 0)
        next(self._events)
        return Document(number, value, self._places, tuple(self._faults))

    def _below(self, path: str | None, step: int | str, event: Any) -> str | None:
        """The path of a child, whose place is recorded; None where it is longer than `LONGEST_PATH`."""
        if path is None or (isinstance(step, str) and len(step) > LONGEST_PATH):
            return None
        here = child_path(path, step)
        if len(here) > LONGEST_PATH:
            return None
        self._places[here] = _place(event.start_mark)
        return here

    def _value(self, event: Any, path: str | None, depth: int) -> Any:
        if depth > DEEPEST:
            raise NotReadable(f"is nested more than {DEEPEST} deep", _place(event.start_mark))
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        before = self._size
        self._size += 1
        value = self._fresh(event, path, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, self._size - before)
        return value

    def _fresh(self, event: Any, path: str | None, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if event.tag not in _TAGS:
            self._fault(event, f"tag '{event.tag}' means nothing to Kubernetes: leave it out")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(path, depth)
        return self._object(path, depth)

    def _list(self, path: str | None, depth: int) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, self._below(path, len(items), event), depth + 1))
        return items

    def _object(self, path: str | None, depth: int) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        lines: dict[str, int] = {}
        merged: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                merged = {**self._merged(next(self._events), path, depth), **merged}
                continue
            key = self._key(event, depth)
            if key in fields:
                self._fault(event, f"duplicate key '{key}' (first on line {lines[key]})")
            lines[key] = _place(event.start_mark).line
            here = self._below(path, key, event)
            fields[key] = self._value(next(self._events), here, depth + 1)
        return {**merged, **fields} if merged else fields

    def _key(self, event: Any, depth: int) -> str:
        key = self._value(event, "", depth + 1)
        if isinstance(key, str):
            return key
        if isinstance(event, yaml.ScalarEvent):
            self._fault(event, f"key '{event.value}' is read as {json.dumps(key)}: put it in quotes")
            return str(event.value)
        self._fault(event, "a key must be text")
        return ""

    def _merged(self, event: Any, path: str | None, depth: int) -> dict[str, Any]:
        merged = self._value(event, path, depth + 1)
        parts = merged if isinstance(merged, list) else [merged]
        if not all(isinstance(part, dict) for part in parts):
            self._fault(event, "'<<' takes an object, or a list of objects")
            return {}
        return {key: value for part in reversed(parts) for key, value in part.items()}

    def _alias(self, event: Any) -> Any:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise NotReadable(f"alias '*{event.anchor}' names no anchor that ended before it", _place(event.start_mark))
        self._size += anchored.size
        self._from_aliases += anchored.size
        if self._from_aliases > MOST_FROM_ALIASES:
            raise NotReadable(f"aliases stand for more than {MOST_FROM_ALIASES} values", _place(event.start_mark))
        return anchored.value

    def _scalar(self, event: Any) -> Any:
        if event.tag is not None:
            if event.tag not in _TEXT_TAGS:
                self._fault(event, f"tag '{event.tag}' means nothing to Kubernetes: leave it out")
            return event.value
        if not event.implicit[0]:
            return event.value
        if _NO_NUMBERS.fullmatch(event.value):
            self._fault(
                event, f"'{event.value}' is a number that JSON cannot represent; put it in quotes if it is text"
            )
            return event.value
        return _plain(event.value)

    def _fault(self, event: Any, message: str) -> None:
        self._faults.append(Fault(_place(event.start_mark), message))


def _plain(text: str) -> str | int | float | bool | None:
    """The value of a scalar without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    bare = text if text[0] == "." else text.replace("_", "")
    if _INTEGER.fullmatch(bare) and abs(number := _integer(bare)) < _UINT64:
        return number
    if _FLOAT.fullmatch(bare) and math.isfinite(real := float(bare)):
        return real
    return text


def _integer(text: str) -> int:
    digits = text.lstrip("+-").lower()
    if digits[:2] in {"0x", "0b", "0o"}:
        number = int(digits, 0)
    elif len(digits) > 20:
        number = _UINT64
    else:
        number = int(digits, 8 if digits.startswith("0") else 10)
    return -number if text.startswith("-") else number


class _Dumper(yaml.SafeDumper):
    """Writes every value out, and quotes what either family of readers would not take for text."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Never writes aliases: they save bytes and are hard to read."""
        return True

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        """The tag that readers would give to an unquoted value: decides whether it needs quotes."""
        tag = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        if kind is yaml.ScalarNode and implicit[0] and tag == "tag:yaml.org,2002:str" and _plain(value) != value:
            return "tag:yaml.org,2002:null"
        return tag


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    # Readers disagree on which of these end a line: between double quotes they are written as escapes.
    style = '"' if _BREAKS & set(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _represent_text)

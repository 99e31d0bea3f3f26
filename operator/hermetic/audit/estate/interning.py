"""Shares equal values among the resources of one list: texts, parts, and the sets of fields that were set.

The pods of a controller differ in a few fields, and tens of thousands of parts point to a few subnets: with shared
parts ten thousand pods take half of the memory. Parts are frozen, so what is shared here never changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

from hermetic.audit.estate.resource import Part, Resource

P = TypeVar("P", bound=Part)

_FIELDS_SET = "__pydantic_fields_set__"


class Sharing:
    """The shared values of one list. It is dropped when the list has been read."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._parts: dict[Hashable, Part] = {}
        self._fields_set: dict[frozenset[str], set[str]] = {}

    def shared(self, part: P) -> P:
        """The same part, with equal values in it replaced by those of earlier parts."""
        self._content(part)
        return part

    def _content(self, part: Part) -> tuple[Hashable, ...]:
        """Share the values in a part; returns what equal parts have in common."""
        fields_set = part.model_fields_set
        shared_set = self._fields_set.setdefault(frozenset(fields_set), fields_set)
        object.__setattr__(part, _FIELDS_SET, shared_set)
        fields, content = part.__dict__, list[Hashable]()
        for name, value in fields.items():
            fields[name], key = self._value(value)
            content.append(key)
        return type(part), id(shared_set), tuple(content)

    def _value(self, value: Any) -> tuple[Any, Hashable]:
        """The shared value, and a key that only equal values have: the id of what stays in memory with this object."""
        if type(value) is str:
            text = self._texts.setdefault(value, value)
            return text, id(text)
        if isinstance(value, Part):
            part = self._part(value)
            return part, id(part)
        if type(value) is list:
            pairs = [self._value(item) for item in value]
            value[:] = [item for item, _ in pairs]
            return value, tuple(key for _, key in pairs)
        if value is None or type(value) in {bool, int}:
            return value, (type(value), value)
        return value, id(value)  # a map of users' keys: equal to itself only

    def _part(self, part: Part) -> Part:
        """The first part with this content. A damaged part stays its own, and a resource, which has evidence."""
        content = self._content(part)
        if part.is_damaged or isinstance(part, Resource):
            return part
        return self._parts.setdefault(content, part)

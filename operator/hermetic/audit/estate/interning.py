"""Shares equal values among the resources of one list: texts, references, and the sets of fields that were set.

Pydantic gives each part its own set of the names of fields that were set; for tens of thousands of parts these sets
take more memory than the values. Parts are frozen, so what is shared here never changes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hermetic.audit.estate.resource import Part, Reference

P = TypeVar("P", bound=Part)

_FIELDS_SET = "__pydantic_fields_set__"


class Sharing:
    """The shared values of one list. It is dropped when the list has been read."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._references: dict[str, Reference] = {}
        self._fields_set: dict[frozenset[str], set[str]] = {}

    def shared(self, part: P) -> P:
        """The same part, with equal values in it replaced by those of earlier parts."""
        fields_set = part.model_fields_set
        object.__setattr__(part, _FIELDS_SET, self._fields_set.setdefault(frozenset(fields_set), fields_set))
        held = part.__dict__
        for name, value in held.items():
            held[name] = self._value(value)
        return part

    def _value(self, value: Any) -> Any:
        if type(value) is str:
            return self._texts.setdefault(value, value)
        if isinstance(value, Reference):
            return self._reference(value)
        if isinstance(value, Part):
            return self.shared(value)
        if type(value) is list:
            value[:] = [self._value(item) for item in value]
        return value

    def _reference(self, reference: Reference) -> Reference:
        """The first one with this id; one that is damaged, or has other fields, is not shared."""
        shared = self.shared(reference)
        if reference.is_damaged or reference.model_fields_set != {"id"}:
            return shared
        return self._references.setdefault(reference.id, shared)

"""What the resources of one list have in common is kept once: texts, references, and which fields were set.

Pydantic gives each part a set of its own that names the fields that were set; of ten thousands of parts these sets take
more memory than the values. Parts are frozen, so nothing ever changes what is shared here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hermetic.audit.estate.resource import Part, Reference

P = TypeVar("P", bound=Part)

_FIELDS_SET = "__pydantic_fields_set__"


class Sharing:
    """For the resources of one list. It is dropped with the last of them: nothing is kept beyond."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._references: dict[str, Reference] = {}
        self._fields_set: dict[frozenset[str], set[str]] = {}

    def shared(self, part: P) -> P:
        """The same part; equal values inside it are those of the parts before."""
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
        """The first with this id; one that is damaged, or has no id, stays as it is."""
        shared = self.shared(reference)
        if reference.is_damaged or reference.model_fields_set != {"id"}:
            return shared
        return self._references.setdefault(reference.id, shared)

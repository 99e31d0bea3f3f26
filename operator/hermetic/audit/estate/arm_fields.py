"""Normalises ARM JSON for models: `properties` levels merged, field names in one spelling, except in `FreeMap`.

ARM compares field names without regard to case. The key of a label, an annotation or an environment variable is data: a
field declared as `FreeMap` keeps its keys as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import BaseModel

T = TypeVar("T")


class _AsWritten:
    """Marks a map whose keys are data and are not normalised."""


_AS_WRITTEN: Final = _AsWritten()
_PLAIN = (str, int, float, type(None))  # most values, and the fastest to test for

FreeMap = Annotated[dict[str, T], _AS_WRITTEN]
"""A map from keys as written to values: `labels: FreeMap[str] = {}`."""


MISSHAPEN: Final = "misshapen"
"""The field of every part that is set only where its `properties` could not be read."""


@dataclass(frozen=True, slots=True)
class Field:
    """How a field is read: its model, if any, and whether its keys are kept as written.

    `null_is_absent`: the field has a default other than None, which a null stands for as an absent field does. ARM
    omits a list without items or writes null for it (RFC 7396: null removes a member).
    """

    model: type[BaseModel] | None
    free: bool
    null_is_absent: bool = False


@lru_cache(maxsize=8192)
def spelling(name: str) -> str:
    """The form in which names are compared."""
    return name.replace("_", "").lower()


def folded(word: str | None) -> str:
    """An open word or a region as it is compared, "" for None: "Virtual Appliance" is VirtualAppliance."""
    return (word or "").replace(" ", "").lower()


def flat(value: Any, model: type[BaseModel] | None) -> Any:
    """Merge all levels of `properties` with the other fields; where both have a name, the outer one is used.

    With a model, only declared fields are kept. Where `properties` is not an object, `MISSHAPEN` is set instead.
    """
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list):
        return [flat(item, model) for item in value]
    if not isinstance(value, Mapping):
        return value
    spelt = [(spelling(str(key)), field) for key, field in value.items()]
    if any(name == "properties" for name, _ in spelt):
        spelt = _unwrapped(value)
    if model is None:
        return {name: flat(field, None) for name, field in spelt}
    fields = fields_of(model)
    values = {
        name: _held(field, fields[name])
        for name, field in spelt
        if name in fields and not (field is None and fields[name].null_is_absent)
    }
    return {**values, MISSHAPEN: True} if _is_misshapen(value) else values


def _unwrapped(value: Mapping[str, Any]) -> list[tuple[str, Any]]:
    properties = child(value, "properties")
    inner = properties if isinstance(properties, Mapping) else {}
    outer = {key: value[key] for key in value if key.lower() != "properties"}
    return [(spelling(str(key)), field) for key, field in {**inner, **outer}.items()]


def _is_misshapen(value: Mapping[str, Any]) -> bool:
    return any(key.lower() == "properties" and not isinstance(field, Mapping) for key, field in value.items())


def child(value: Mapping[str, Any], name: str) -> Any:
    """The value of the field with this name in any case; None without one."""
    return next((field for key, field in value.items() if key.lower() == name), None)


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, Field]:
    """The fields of a model by their spelling."""
    fields_by_spelling = {}
    for name, declared in model.model_fields.items():
        parts = tuple(_parts(declared.annotation))
        free = any(isinstance(part, _AsWritten) for part in (*declared.metadata, *parts))
        inner = next((part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)), None)
        null_is_absent = not declared.is_required() and declared.default is not None
        fields_by_spelling[declared.alias or spelling(name)] = Field(inner, free, null_is_absent)
    return fields_by_spelling


def _held(value: Any, field: Field) -> Any:
    if field.free and isinstance(value, Mapping):
        return {key: flat(item, field.model) for key, item in value.items()} if field.model else dict(value)
    return flat(value, field.model)


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    yield from getattr(annotation, "__metadata__", ())
    for inner in get_args(annotation):
        yield from _parts(inner)

"""What is kept of the rows of an Azure list: the fields that the models of their type declare.

A large subscription lists tens of thousands of resources that are not the cluster's, and a model reads a few fields of
each. What no model of a type reads is dropped as soon as a page arrives; digests are of the page as received.

A dropped field must never look like one that is not set. `fields_kept` identifies the fields kept, every answer has
that identifier, and an estate whose models read other fields treats such an answer as missing (`Estate`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from hermetic.audit.estate.arm_fields import Field, fields_of, spelling
from hermetic.audit.estate.resource import MODELS, Resource

Models = tuple[type[BaseModel], ...]

PROPERTIES = "properties"


def projected_row(kind: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row of a list of this type, reduced; unchanged where a model of the type has its own `read`.

    A value of another shape than declared is kept as it is, so that the model still reports the damage.
    """
    models = _models_of(kind)
    reduced: Mapping[str, Any] = _reduced(models, row) if models else row
    return reduced


def fields_kept(kind: str) -> str:
    """An identifier of the fields that `projected_row` keeps of this type; "" where rows are not reduced."""
    models = _models_of(kind)
    return _name_of(models) if models else ""


def _models_of(kind: str) -> Models:
    """Every model of this type; empty where one of them reads more than its declared fields."""
    return _if_each_reads_its_fields_only(tuple(MODELS.get(kind.lower(), ())))


@lru_cache(maxsize=512)
def _if_each_reads_its_fields_only(models: tuple[type[Resource], ...]) -> Models:
    return models if all(_reads_its_fields_only(model) for model in models) else ()


def _reads_its_fields_only(model: type[Resource]) -> bool:
    return model.read.__func__ is Resource.read.__func__ or model.READS_ITS_FIELDS_ONLY  # type: ignore[attr-defined]


def _reduced(models: Models, value: Any) -> Any:
    if isinstance(value, list):
        return [_reduced(models, item) for item in value]
    if not isinstance(value, Mapping):
        return value
    reduced = {}
    for key, field in value.items():
        name = spelling(str(key))
        if name == PROPERTIES:  # the same object, one level deeper
            reduced[key] = _reduced(models, field)
        elif (fields := _fields(models, name)) is not None:
            reduced[key] = _held(fields, field)
    return reduced


def _held(fields: tuple[Field, ...], value: Any) -> Any:
    inner = tuple(field.model for field in fields if field.model is not None)
    if len(inner) < len(fields):
        return value
    if any(field.free for field in fields):
        is_map = isinstance(value, Mapping) and all(field.free for field in fields)
        return {key: _reduced(inner, item) for key, item in value.items()} if is_map else value
    return _reduced(inner, value)


@lru_cache(maxsize=8192)
def _fields(models: Models, name: str) -> tuple[Field, ...] | None:
    """How the models read a field of this name; None where no model declares it."""
    return tuple(field for model in models if (field := fields_of(model).get(name)) is not None) or None


@lru_cache(maxsize=512)
def _name_of(models: Models) -> str:
    text = "\n".join(sorted({path for model in models for path in _paths(model)}))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _paths(model: type[BaseModel], above: str = "", holders: Models = ()) -> Iterator[str]:
    for name, field in fields_of(model).items():
        path = f"{above}.{name}{'{}' if field.free else ''}"
        yield path
        if field.model is not None and field.model not in holders:
            yield from _paths(field.model, path, (*holders, model))

"""Errors of a manifest in the form of the API server: field, value, and what would be accepted."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from hermetic.api.text import cut

_LONGEST_VALUE = 80
_NOTHING = object()
_SUBJECT = re.compile(r"^(Input|String|List|Dictionary|Value) should ")
NO_SUCH_FIELD = "is not a field of this object"
REQUIRED = "is required"
_INSTEAD = {
    "missing": REQUIRED,
    "extra_forbidden": NO_SUCH_FIELD,
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "string_type": "must be a string; put it in quotes",
    "int_type": "must be an integer, without quotes",
    "bool_type": "must be true or false, without quotes",
}


@dataclass(frozen=True)
class FieldError:
    """One reason to refuse: `path` as in `spec.engine.vllm.extraArgs[0]`, `value` as JSON ("" where there is none).

    `near` is the field that was probably meant by one that does not exist, "" where none is like it.
    """

    path: str
    value: str
    message: str
    near: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.path, self.value, self.message) if part)


def problems_of(refusal: ValidationError, model: type[BaseModel]) -> tuple[FieldError, ...]:
    """Every problem that pydantic found in an object of this model, in the order of the fields."""
    return tuple(_problem(error, model) for error in refusal.errors(include_url=False))


def _problem(error: ErrorDetails, model: type[BaseModel]) -> FieldError:
    field: str = error.get("ctx", {}).get("field", "")
    near = meant(model, error["loc"]) if error["type"] == "extra_forbidden" else ""
    return FieldError(
        path=reduce(child_path, error["loc"], "") + field if error["loc"] else field.lstrip("."),
        value=_shown(_value(error, field)),
        message=_message(error) + (f"; did you mean `{near}`?" if near else ""),
        near=near,
    )


def meant(model: type[BaseModel], loc: tuple[int | str, ...]) -> str:
    """The field of the object around `loc` with the most similar name; "" where none is similar."""
    *around, name = loc
    models: list[Any] = [model]
    for step in around:
        models = [inner for outer in models for inner in _below(outer, step)]
    names = [field.alias or own for model_class in models for own, field in _fields(model_class).items()]
    return next(iter(difflib.get_close_matches(str(name), names, n=1)), "")


def _below(model: Any, step: int | str) -> Iterator[Any]:
    """The models of a field; the model itself for the place in a list of it, or its key in an object."""
    for name, field in _fields(model).items():
        if step in {name, field.alias}:
            yield from _models_in(field.annotation)
            return
    yield model


def _models_in(annotation: Any) -> Iterator[Any]:
    if _fields(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)


def _fields(annotation: Any) -> dict[str, Any]:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation.model_fields if is_model else {}


def child_path(path: str, step: int | str) -> str:
    """The path of a field or list item below `path`, which is "" for the object itself."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if re.fullmatch(r"\w+", step) is None:
        return f"{path}['{step}']"
    return f"{path}.{step}" if path else step


def _value(error: ErrorDetails, field: str) -> Any:
    """The value of the field: nothing where it is missing, or where the whole object is at fault."""
    value = _NOTHING if error["type"] == "missing" else error["input"]
    for name in field.split(".")[1:]:
        value = value.get(name, _NOTHING) if isinstance(value, dict) else _NOTHING
    return value


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return ""
    return cut(json.dumps(value, ensure_ascii=False, default=str), _LONGEST_VALUE)


def _message(error: ErrorDetails) -> str:
    if error["type"] == "literal_error":
        hint = "; YAML reads a bare On, Off, Yes or No as true or false: put it in quotes"
        accepted = f"must be {error['ctx']['expected']}"
        return accepted + hint if isinstance(error["input"], bool) else accepted
    if error["type"] in {"int_type", "int_from_float"} and isinstance(error["input"], float):
        return "must be an integer"
    return _INSTEAD.get(error["type"]) or _SUBJECT.sub("must ", error["msg"])


def first_problem(refusal: ValidationError) -> str:
    """The first problem of a spec that the API server accepted and this version cannot read: `spec.a.b`: why."""
    first = refusal.errors(include_url=False)[0]
    return f"`{'.'.join(str(part) for part in ('spec', *first['loc']))}`: {first['msg']}"

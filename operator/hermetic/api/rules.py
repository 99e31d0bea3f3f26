"""Rules with two implementations: the CEL that the API server runs and the Python that `hermetic validate` runs.

A rule is written once, next to the field or model that it guards. The CRD generator copies `cel` and `message` into
`x-kubernetes-validations`; pydantic calls `holds`. A test over a corpus compares the two verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, core_schema

VALIDATIONS = "x-kubernetes-validations"


@dataclass(frozen=True)
class Rule:
    """What must hold of a value; `message` says what would be accepted.

    `cel` is evaluated for `self` on the API server. `holds` is the same in Python, or None for a transition rule
    (`oldSelf`), which only the API server can evaluate. `field` is the CEL fieldPath (".image") that the error
    should name. `show` is a CEL expression for the value to put before the message: the API server prints the value of
    a string or a number by itself, but not what an object or a transition is about. `explain` gives the message for
    one value where Python can be more precise than the API server.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None = None
    field: str = ""
    show: str = ""
    explain: Callable[[Any], str] | None = None

    def as_validation(self) -> dict[str, str]:
        """The entry for `x-kubernetes-validations`."""
        entry = {"rule": self.cel, "message": self.message}
        if self.show:
            entry["messageExpression"] = f"{self.show} + {_cel_string(': ' + self.message)}"
        if self.field:
            entry["fieldPath"] = self.field
        if self.holds is None:
            entry["reason"] = "FieldValueForbidden"
        return entry

    def check(self, value: Any) -> Any:
        """Return the value, or raise the error that pydantic reports with the field's path."""
        if self.is_broken_by(value):
            raise self.as_problem(value)
        return value

    def is_broken_by(self, value: Any) -> bool:
        """Whether the value, which is of the right type, does not satisfy the rule."""
        return self.holds is not None and not self.holds(value)

    def as_problem(self, value: Any) -> PydanticCustomError:
        """The error for pydantic: the message about this value, and the field at fault."""
        message = self.explain(value) if self.explain is not None else self.message
        return PydanticCustomError("rule", "{message}", {"message": message, "field": self.field})

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return with_rules(handler(schema), (self,))


def with_rules(schema: dict[str, Any], rules: tuple[Rule, ...]) -> dict[str, Any]:
    """The JSON schema with the rules added to those it has."""
    return {**schema, VALIDATIONS: [*schema.get(VALIDATIONS, []), *(rule.as_validation() for rule in rules)]}


def exactly_one(*fields: str) -> Rule:
    """Exactly one of these optional siblings is set: a union of this API."""
    return Rule(
        cel=f"{_number_set(fields)} == 1",
        message=f"must set exactly one of {_in_backquotes(fields)}",
        holds=lambda model: sum(getattr(model, field) is not None for field in fields) == 1,
        show=f"'found' + ({_number_set(fields)} == 0 ? ' none' : '') + {_names_set('self', fields)}",
    )


def member_is_immutable(*fields: str) -> Rule:
    """The member of a union that is set may not change; its content may."""
    return Rule(
        cel=" && ".join(f"has(self.{to_camel(field)}) == has(oldSelf.{to_camel(field)})" for field in fields),
        message=f"the choice among {_in_backquotes(fields)} is immutable; "
        "delete the object and create it anew to change it",
        show=f"'from' + {_names_set('oldSelf', fields)} + ' to' + {_names_set('self', fields)}",
    )


def immutable(name: str) -> Rule:
    """The string may not change once set."""
    return Rule(
        cel="self == oldSelf",
        message=f"`{name}` is immutable; delete the object and create it anew to change it",
        show="'\\'' + oldSelf + '\\' to \\'' + self + '\\''",
    )


@cache
def _names_of(model: type[BaseModel]) -> frozenset[str | None]:
    """Every name by which a field of the model may be given."""
    return frozenset({*model.model_fields, *(field.alias for field in model.model_fields.values())})


class ApiModel(BaseModel):
    """Frozen, camelCase outside and snake_case inside, refusing unknown fields; `RULES` are about the model as a whole.

    Values are read as the API server reads JSON: null means absent, 2.0 is an integer, "2" and true are not.
    """

    # A validator of a model holds those of the models in it: built when it is first used, each is there once.
    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )

    RULES: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """The model of a manifest, which has camelCase names only; raises pydantic.ValidationError."""
        return super().model_validate(obj, **{"by_name": False, **options})

    @model_validator(mode="before")
    @classmethod
    def _as_the_api_server_reads_it(cls, typed: Any) -> Any:
        if not isinstance(typed, dict):
            return typed
        field_names = _names_of(cls)
        return {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in typed.items()
            if value is not None or name not in field_names
        }

    @model_validator(mode="after")
    def _every_rule_holds(self) -> ApiModel:
        broken = [rule for rule in type(self).RULES if rule.is_broken_by(self)]
        if len(broken) == 1:
            raise broken[0].as_problem(self)
        if broken:  # all of them at once, as in the API server's response
            typed = self.model_dump(mode="json", by_alias=True, exclude_unset=True)
            raise ValidationError.from_exception_data(
                type(self).__name__, [InitErrorDetails(type=rule.as_problem(self), input=typed) for rule in broken]
            )
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        produced = handler(schema)
        if not cls.RULES:
            return produced
        resolved = handler.resolve_ref_schema(produced)
        resolved.update(with_rules(resolved, cls.RULES))
        return produced


def _number_set(fields: tuple[str, ...]) -> str:
    """CEL: how many of the fields are set."""
    return "(" + " + ".join(f"(has(self.{to_camel(field)}) ? 1 : 0)" for field in fields) + ")"


def _names_set(variable: str, fields: tuple[str, ...]) -> str:
    """CEL: the names of the set fields, each after a space. Joining a list would exceed the API server's cost limit."""
    return " + ".join(f"(has({variable}.{to_camel(field)}) ? ' `{to_camel(field)}`' : '')" for field in fields)


def _in_backquotes(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{to_camel(field)}`" for field in fields)


def _cel_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

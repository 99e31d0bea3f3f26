"""docs/api.md, made from the CRDs. `python -m tools api` writes it.

Nothing else in this room imports jinja2: builders return dicts, only prose is rendered from a template.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from hermetic.api.crd import DEFINITIONS, Definition, crd
from hermetic.api.engine import RESERVED_FLAGS
from hermetic.api.reserved_flags import ENVIRONMENT, RESERVED_ENDINGS
from hermetic.api.rules import VALIDATIONS
from hermetic.api.schema import Schema
from hermetic.kinds import GROUP, VERSION

_MARKUP = str.maketrans({"|": "\\|", "<": "&lt;", ">": "&gt;", "*": "\\*"})


@dataclass(frozen=True)
class Row:
    """One field."""

    field: str
    type: str
    default: str
    description: str
    accepted: str


@dataclass(frozen=True)
class Table:
    """One object: its fields, and the rules that hold for it as a whole."""

    heading: str
    description: str
    rules: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class PrintedColumn:
    """One column of `kubectl get`."""

    name: str
    description: str
    wide: bool


@dataclass(frozen=True)
class Chapter:
    """One kind."""

    kind: str
    name: str
    short_name: str
    scope: str
    description: str
    rules: tuple[str, ...]
    tables: tuple[Table, ...]
    columns: tuple[PrintedColumn, ...]


def as_markdown() -> str:
    """The page as it is checked in: equal CRDs give equal bytes."""
    environment = Environment(
        loader=PackageLoader("tools"), undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
    chapters = [_chapter(definition) for definition in DEFINITIONS]
    return environment.get_template("api.md.j2").render(
        group=GROUP,
        version=VERSION,
        chapters=chapters,
        reserved_flags=RESERVED_FLAGS,
        variables=_by_reason(ENVIRONMENT),
        endings=RESERVED_ENDINGS,
    )


def _by_reason(reserved: dict[str, str]) -> dict[str, list[str]]:
    """The names behind each reason, in the order in which they are declared."""
    return {why: [name for name, reason in reserved.items() if reason == why] for why in reserved.values()}


def _chapter(definition: Definition) -> Chapter:
    schema: Schema = crd(definition)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    kind, parts = definition.kind.kind, schema["properties"]
    tables = [table for part in ("spec", "status") if part in parts for table in _tables(f"{kind} {part}", parts[part])]
    return Chapter(
        kind=kind,
        name=definition.name,
        short_name=definition.short_name,
        scope="namespaced" if definition.kind.namespaced else "cluster-scoped",
        description=_described(schema),
        rules=tuple(_rules(schema)),
        tables=tuple(tables),
        columns=tuple(
            PrintedColumn(column.name, column.description, bool(column.priority)) for column in definition.columns
        ),
    )


def _tables(heading: str, schema: Schema) -> Iterator[Table]:
    """The table of an object, then those of the objects inside it."""
    if "items" in schema:
        yield from _tables(f"{heading}[]", schema["items"])
    if "properties" not in schema:
        return
    required = schema.get("required", ())
    yield Table(
        heading=heading,
        description=_described(schema),
        rules=tuple(_rules(schema)),
        rows=tuple(_row(heading, name, field, name in required) for name, field in schema["properties"].items()),
    )
    for name, field in schema["properties"].items():
        yield from _tables(f"{heading}.{name}", field)


def _row(heading: str, name: str, field: Schema, required: bool) -> Row:
    return Row(
        field=name,
        type=_type(field, f"{heading}.{name}"),
        default="*required*" if required else _default(field),
        description=_described(field),
        accepted="<br>".join([*_bounds(field), *([] if "properties" in field else _rules(field))]),
    )


def _type(field: Schema, heading: str) -> str:
    if "properties" in field:
        return f"[object](#{_anchor(heading)})"
    if "items" in field:
        return f"list of {_type(field['items'], f'{heading}[]')}"
    if "additionalProperties" in field:
        return f"map to {_type(field['additionalProperties'], heading)}"
    if field.get("x-kubernetes-int-or-string"):
        return "quantity"
    return str(field["type"])


def _anchor(heading: str) -> str:
    """As GitHub makes it from the heading."""
    return "".join(letter for letter in heading.lower().replace(" ", "-") if letter.isalnum() or letter == "-")


def _default(field: Schema) -> str:
    default = field.get("default")
    return "" if default in (None, {}, "") else f"`{default if isinstance(default, str) else json.dumps(default)}`"


def _bounds(field: Schema) -> Iterator[str]:
    """What type, range and size alone let through."""
    if "enum" in field:
        yield " or ".join(f"`{value}`" for value in field["enum"])
    if "minimum" in field:
        yield f"{field['minimum']} to {field['maximum']}" if "maximum" in field else f"from {field['minimum']}"
    if "format" in field:
        yield str(field["format"])
    if "pattern" in field:
        yield f"`{field['pattern'].replace('|', chr(92) + '|')}`"
    for limit, unit in (("maxLength", "characters"), ("maxItems", "items"), ("maxProperties", "entries")):
        if limit in field:
            yield f"at most {field[limit]} {unit}"
    if "items" in field and "properties" not in field["items"]:
        limits = [*_bounds(field["items"]), *_rules(field["items"])]
        yield f"each: {'<br>'.join(limits)}"
    if "additionalProperties" in field:
        value = field["additionalProperties"]
        yield f"each value: {'<br>'.join([*_bounds(value), *_rules(value)])}"


def _rules(schema: Schema) -> Iterator[str]:
    """What the rules ask, each with the field that it blames when that is not the object itself."""
    for rule in schema.get(VALIDATIONS, ()):
        blamed = rule.get("fieldPath", "").lstrip(".")
        said_already = rule["message"].startswith("`")
        yield _prose(f"`{blamed}` {rule['message']}" if blamed and not said_already else rule["message"])


def _described(schema: Schema) -> str:
    """What the schema says of itself: a paragraph of prose, then examples in YAML."""
    prose, *examples = schema.get("description", "").split("\n\n")
    return "<br>".join([_prose(prose), *(f"`{example}`" for example in examples)])


def _prose(text: str) -> str:
    """Markdown that shows the text as it is; what is in backquotes needs no escape."""
    pieces = text.split("`")
    return "`".join(piece if position % 2 else piece.translate(_MARKUP) for position, piece in enumerate(pieces))


def files() -> dict[str, str]:
    """The text of the file by its path in the repository."""
    return {"docs/api.md": as_markdown()}

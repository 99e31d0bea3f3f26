"""What vLLM's `get_kwargs` makes of a configuration class: field annotations as argparse keywords.

The rules are vLLM's own (`_compute_kwargs` in vllm/engine/arg_utils.py), written down here once more because a class
can only be read, never imported. `KNOWN_RULES` holds the wordings of them that this module was checked against.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from testbed.python_sources import Definition, NotUnderstood, Outside, Sources, strings_in

ARG_UTILS = "vllm.engine.arg_utils"
RULES = (
    "is_type",
    "contains_type",
    "get_type",
    "literal_to_kwargs",
    "collection_to_kwargs",
    "is_not_builtin",
    "get_type_hints",
    "_compute_kwargs",
)
KNOWN_RULES = frozenset(
    {
        "deaf81bbb3139aa4bd854a621dc7f49a75ede4f445e0a982c80ab15acd244ab3",  # 0.24, 0.25
        "14901e62eaf2da3ab3cf6e19d90cb61403303b1b4d681f18bac3e957121660fa",  # 0.26 - 0.28
        "86a0f65edc721722f6429133541e9e4de4f5f3661e475e7bb95b1a72960c3f3f",  # 0.29, 0.30
        "ae8afcafe2b16728d9595120a3aa56eb66be12d93ebcc944c16958bef8c59e3f",  # 0.31 - 0.33
    }
)

Keywords = dict[str, object]


class Unread(Enum):
    """A value that has no say in the shape of a flag, or that the source alone does not give."""

    UNREAD = "not read"


UNREAD = Unread.UNREAD
FOLDING = "lambda s: s.lower().replace('-', '_')"
"""A `type` that changes a value before it is compared with the choices."""
FOLDED = "folded"


@dataclass(frozen=True)
class Hint:
    """One member of a field's union: a builtin's name, "Literal", "dataclass" or "other"; `members` as subscripted."""

    kind: str
    members: tuple[object, ...] = ()


def rules_wording(sources: Sources) -> str:
    """The SHA-256 of the functions that turn annotations into keywords, as this version writes them."""
    functions = (sources.function(ARG_UTILS, name) for name in RULES)
    wording = "\n".join(sources.segment(ARG_UTILS, function) for function in functions)
    return hashlib.sha256(wording.encode()).hexdigest()


def keywords_of(sources: Sources, module: str, cls: ast.ClassDef) -> dict[str, Keywords]:
    """`get_kwargs(cls)`: per field, inherited ones first, the argparse keywords that matter for its shape."""
    sized = _fields_with_units(sources)
    return {
        name: _keywords(frozenset(_hints(sources, where, annotation)), sized=name in sized)
        for name, (where, annotation) in _fields(sources, module, cls).items()
    }


def _fields(sources: Sources, module: str, cls: ast.ClassDef) -> dict[str, tuple[str, ast.expr]]:
    found: dict[str, tuple[str, ast.expr]] = {}
    for base in reversed(cls.bases):
        meaning = sources.meaning(module, base.id) if isinstance(base, ast.Name) else None
        if isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef):
            found |= _fields(sources, meaning.module, meaning.node)
    for statement in cls.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                if not _is_no_field(annotation):
                    found[name] = (module, annotation)
    return found


def _is_no_field(annotation: ast.expr) -> bool:
    head = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return _last_name(head) in {"ClassVar", "InitVar"}


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _fields_with_units(sources: Sources) -> frozenset[str]:
    """Fields whose integers may carry a unit (`1k`, `2M`): the names that the rules themselves compare with."""
    rules = sources.function(ARG_UTILS, "_compute_kwargs")
    names: set[str] = set()
    for node in ast.walk(rules):
        match node:
            case ast.Compare(left=ast.Name(id="name"), comparators=[other]):
                names |= strings_in(other)
            case ast.Assign(value=ast.Set() as value):
                names |= strings_in(value)
    return frozenset(names)


def _hints(sources: Sources, module: str, annotation: ast.expr) -> Iterator[Hint]:
    match annotation:
        case ast.Constant(value=None):
            yield Hint("None")
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _hints(sources, module, left)
            yield from _hints(sources, module, right)
        case ast.Subscript(value=head, slice=inside):
            yield from _subscripted(sources, module, _last_name(head), inside)
        case ast.Name(id=name):
            yield from _named(sources, module, name)
        case ast.Attribute():
            yield Hint("other")
        case _:
            raise NotUnderstood(module, annotation, "an annotation of a kind never seen")


def _subscripted(sources: Sources, module: str, head: str, inside: ast.expr) -> Iterator[Hint]:
    members = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    match head:
        case "Annotated" | "SkipValidation":
            yield from _hints(sources, module, members[0])
        case "Union":
            for member in members:
                yield from _hints(sources, module, member)
        case "Optional":
            yield Hint("None")
            yield from _hints(sources, module, inside)
        case "Literal":
            yield Hint("Literal", tuple(literal_values(sources, module, members)))
        case "list" | "tuple" | "set":
            elements = [member for member in members if not isinstance(member, ast.Constant)]
            fixed = head == "tuple" and len(elements) == len(members)
            yield Hint(head, (frozenset(_hints(sources, module, elements[0])), len(members) if fixed else None))
        case "dict":
            yield Hint("dict")
        case _:
            yield Hint("other")


def _named(sources: Sources, module: str, name: str) -> Iterator[Hint]:
    if name in {"bool", "int", "float", "str", "dict"}:
        yield Hint(name)
        return
    match sources.meaning(module, name):
        case Definition(module=where, node=ast.ClassDef() as cls):
            yield Hint(_kind_of_class(sources, where, cls))
        case Definition(module=where, node=ast.expr() as alias):
            yield from _hints(sources, where, alias)
        case Outside() | Definition():
            yield Hint("other")
        case None if name == "object":
            yield Hint("object")
        case None:
            raise NotUnderstood(module, ast.Name(name), "a type that nothing in the file defines")


def _kind_of_class(sources: Sources, module: str, cls: ast.ClassDef) -> str:
    decorators = (d.func if isinstance(d, ast.Call) else d for d in cls.decorator_list)
    if any(_last_name(decorator) in {"dataclass", "config"} for decorator in decorators):
        return "dataclass"
    for base in cls.bases:
        if _last_name(base) == "dict" or (isinstance(base, ast.Subscript) and _last_name(base.value) == "dict"):
            return "dict"
        meaning = sources.meaning(module, base.id) if isinstance(base, ast.Name) else None
        if isinstance(meaning, Definition) and isinstance(meaning.node, ast.ClassDef):
            return _kind_of_class(sources, meaning.module, meaning.node)
    return "other"


def literal_values(sources: Sources, module: str, members: list[ast.expr]) -> Iterator[object]:
    """The values of `Literal[...]`, nested literal aliases flattened as Python does."""
    for member in members:
        match member:
            case ast.Constant(value=value):
                yield value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                yield -value
            case ast.Name(id=name):
                meaning = sources.meaning(module, name)
                if not (isinstance(meaning, Definition) and isinstance(meaning.node, ast.Subscript)):
                    raise NotUnderstood(module, member, "a member of Literal that is no literal")
                inside = meaning.node.slice
                nested = inside.elts if isinstance(inside, ast.Tuple) else [inside]
                yield from literal_values(sources, meaning.module, nested)
            case _:
                raise NotUnderstood(module, member, "a member of Literal that is no literal")


def _keywords(hints: frozenset[Hint], *, sized: bool) -> Keywords:
    """The chain of `_compute_kwargs`, in its order: the first kind that is among the hints decides."""
    kinds = {hint.kind for hint in hints}
    collection = next((hint for kind in ("tuple", "list", "set") for hint in hints if hint.kind == kind), None)
    keywords: Keywords = {"type": "text"}
    if "dataclass" in kinds:
        keywords = {"type": "object"}
    elif kinds == {"bool", "str", "None"}:
        keywords = {"nargs": "?"}
    elif "bool" in kinds:
        keywords = {"action": "BooleanOptionalAction"}
    elif "Literal" in kinds:
        keywords = _literal_keywords(hints, open_ended="str" in kinds)
    elif collection is not None:
        keywords = _collection_keywords(collection)
    elif "int" in kinds:
        keywords = {"type": "size" if sized else "int"}
    elif "float" in kinds:
        keywords = {"type": "float"}
    elif "dict" in kinds and not kinds & {"str", "other"}:
        keywords = {"type": "json"}
    return keywords


def _literal_keywords(hints: frozenset[Hint], *, open_ended: bool) -> Keywords:
    literals = [hint.members for hint in hints if hint.kind == "Literal"]
    if len(literals) > 1:
        return {"type": "text"}  # vLLM takes whichever the set yields first, so no choice can be promised
    values = literals[0]
    kind = {"int": "int", "float": "float"}.get(type(values[0]).__name__, "text")
    return {"type": kind} if open_ended else {"type": kind, "choices": sorted(map(str, values))}


def _collection_keywords(hint: Hint) -> Keywords:
    elements, fixed_length = hint.members
    assert isinstance(elements, frozenset)
    kinds = {element.kind for element in elements}
    if kinds == {"Literal"}:
        return _literal_keywords(elements, open_ended=False) | {"nargs": fixed_length or "+"}
    kind = next(iter(kinds)) if len(kinds) == 1 else "text"
    return {"type": kind if kind in {"int", "float"} else "text", "nargs": fixed_length or "+"}

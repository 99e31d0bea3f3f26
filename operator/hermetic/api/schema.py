"""Converts pydantic's JSON schema to the structural schema of a CustomResourceDefinition.

The difference is small and strict: no `$ref`, no unions, no `title`; null means absent; a default is what the API
server writes into the object. What has no structural counterpart is refused with the path of the field, never dropped.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from hermetic.api.rules import VALIDATIONS

Schema = dict[str, Any]

# In the order of the output; every other keyword of JSON schema is refused.
_KEYWORDS = (
    "description",
    "type",
    "format",
    "x-kubernetes-int-or-string",
    "default",
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "maxProperties",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "items",
    "additionalProperties",
    "required",
    "properties",
    VALIDATIONS,
)
_IMPLIED_BY_PRUNING = "additionalProperties"


class NotStructural(TypeError):
    """A model says something that no CRD can say; names the field and the reason."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or 'the model'}: {why}")


def structural_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of one kind, from apiVersion to status; raises NotStructural."""
    document = model.model_json_schema(by_alias=True)
    return _Inliner(document.get("$defs", {})).convert(document, "")


def without_defaults(schema: Schema) -> Schema:
    """The schema for objects that a controller writes: the API server fills in no defaults."""
    reduced = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in reduced:
        reduced["properties"] = {name: without_defaults(field) for name, field in reduced["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in reduced:
            reduced[key] = without_defaults(reduced[key])
    return reduced


def with_defaults(schema: Schema, value: Any) -> Any:
    """The value with the API server's defaults: absent properties that have a default are filled in, at every depth."""
    if isinstance(value, list):
        return [with_defaults(schema.get("items", {}), item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = schema.get("properties", {})
    filled = {name: field["default"] for name, field in fields.items() if "default" in field} | value
    return {name: with_defaults(fields.get(name, {}), item) for name, item in filled.items()}


class _Inliner:
    def __init__(self, definitions: dict[str, Schema]) -> None:
        self._definitions = definitions

    def convert(self, node: Schema, path: str) -> Schema:
        node = self._without_null(self._inlined(node), path)
        if "const" in node:
            node["enum"] = [node.pop("const")]
        if "enum" in node and "type" not in node:
            raise NotStructural(path, "an enum must be of one type")
        for key in ("title", "$defs"):
            node.pop(key, None)
        if node.get(_IMPLIED_BY_PRUNING) is False:
            del node[_IMPLIED_BY_PRUNING]
        if unknown := node.keys() - set(_KEYWORDS):
            raise NotStructural(path, f"{', '.join(sorted(unknown))} cannot be expressed in a CRD")
        return _ordered(self._converted(node, path))

    def _converted(self, node: Schema, path: str) -> Schema:
        if "description" in node:
            node["description"] = _on_one_line(node["description"])
        if "properties" in node:
            node["properties"] = {
                name: self.convert(field, f"{path}.{name}".lstrip(".")) for name, field in node["properties"].items()
            }
        if "items" in node:
            node["items"] = self.convert(node["items"], f"{path}[]")
        if isinstance(node.get("additionalProperties"), dict):
            node["additionalProperties"] = self.convert(node["additionalProperties"], f"{path}[*]")
        return _with_structural_default(node)

    def _inlined(self, node: Schema) -> Schema:
        """The node with its `$ref` replaced; keys beside the reference take precedence, rules are combined."""
        if "$ref" not in node:
            return dict(node)
        target = self._inlined(self._definitions[node["$ref"].removeprefix("#/$defs/")])
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _merged(target, beside)

    def _without_null(self, node: Schema, path: str) -> Schema:
        if "anyOf" not in node:
            return node
        members = [member for member in node["anyOf"] if member != {"type": "null"}]
        if len(members) != 1:
            raise NotStructural(path, "a union; write it as optional siblings of which exactly one is set")
        beside = {key: value for key, value in node.items() if key != "anyOf"}
        return self._without_null(_merged(self._inlined(members[0]), beside), path)


def _merged(target: Schema, beside: Schema) -> Schema:
    merged = {**target, **beside}
    if rules := [*target.get(VALIDATIONS, []), *beside.get(VALIDATIONS, [])]:
        merged[VALIDATIONS] = rules
    return merged


def _with_structural_default(node: Schema) -> Schema:
    """No default for null and for empty collections, equal to absence; `{}` where the fields' defaults suffice."""
    if "default" not in node:
        return node
    default = _without_nulls(node.pop("default"))
    if default is None or default == []:
        return node
    if isinstance(default, dict):
        if "properties" not in node:
            return node if default == {} else {**node, "default": default}
        if _without_empty(default) == _without_empty(with_defaults(node, {})):
            default = {}
    return {**node, "default": default}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        reduced = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in reduced.items() if item not in ({}, [])}
    return value


def _on_one_line(text: str) -> str:
    """The docstring without the line breaks of the source; paragraphs are kept."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _ordered(node: Schema) -> Schema:
    return {key: node[key] for key in _KEYWORDS if key in node}

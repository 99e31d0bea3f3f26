"""The file with a model's facts that is stored with its weights: `{"schema": ..., "facts": {...}}`."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from hermetic.api.model_facts import SCHEMA, ModelFacts
from hermetic.api.validation_errors import problems_of


def as_json(facts: ModelFacts) -> dict[str, Any]:
    """The facts as `spec.weights.facts` takes them, without fields at their defaults."""
    return facts.model_dump(by_alias=True, exclude_none=True, exclude_defaults=True)


def file_content(facts: ModelFacts) -> bytes:
    """The bytes of the file: equal facts give equal bytes."""
    return (json.dumps({"schema": SCHEMA, "facts": as_json(facts)}, indent=2, sort_keys=True) + "\n").encode()


def parsed_facts(value: object) -> ModelFacts:
    """The facts of a parsed file, or of the value of `facts:` in a manifest. Raises ValueError, naming a field."""
    if not isinstance(value, dict):
        raise ValueError("the facts of a model are an object")  # noqa: TRY004 - the file is at fault, not the caller
    if "schema" in value and value["schema"] != SCHEMA:
        raise ValueError(f"schema is {str(value['schema'])[:80]!r}, and this release reads '{SCHEMA}'")
    facts = value.get("facts", value)
    try:
        return ModelFacts.model_validate(facts)
    except ValidationError as error:
        first = problems_of(error, ModelFacts)[0]
        raise ValueError(f"{first.path or 'facts'}: {first.message}") from None

"""What a conversion is asked for, and the manifest that its outcomes become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from hermetic.api.modeldeployment import ModelDeployment
from hermetic.api.validation_errors import problems_of
from hermetic.conversion.field_flags import Target
from hermetic.conversion.outcomes import Argument, Field, Note, Outcome, Variable
from hermetic.errors import InputError
from hermetic.kinds import MODEL_DEPLOYMENT

MOST_ITEMS = 64
"""Items of `extraArgs`, and of `extraEnv`."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller of a conversion chooses; "" and empty where it is left to the conversion."""

    image: str = ""
    version: str = ""
    registry: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    namespace: str = ""
    claim: str = ""
    share: str = ""


@dataclass(frozen=True, slots=True)
class Conversion:
    """The manifest, fields in the order of the API, and what there is to know about it."""

    manifest: Mapping[str, Any]
    notes: tuple[Note, ...]


def spec_of(outcomes: Iterable[Outcome], target: Target) -> dict[str, Any]:
    """The spec with every field, argument and variable; of a field that is given twice the last value counts."""
    spec: dict[str, Any] = {}
    arguments: list[Argument] = []
    variables: dict[str, str] = {}
    for outcome in outcomes:
        if isinstance(outcome, Field):
            _set(spec, outcome.path, outcome.value)
        elif isinstance(outcome, Argument):
            arguments.append(outcome)
        elif isinstance(outcome, Variable):
            variables[outcome.name] = outcome.value
    if arguments:
        _set(spec, f"{target.engine}.extraArgs", _extra_arguments(arguments))
    if variables:
        _refuse_too_many("variables", len(variables))
        entries = [{"name": name, "value": value} for name, value in variables.items()]
        _set(spec, f"{target.engine}.extraEnv", entries)
    return spec


def _extra_arguments(arguments: Sequence[Argument]) -> list[str]:
    """The items of `extraArgs`; flag and value share one item where there would be too many."""
    items = [item for argument in arguments for item in argument.items]
    if len(items) > MOST_ITEMS:
        joined = [("=".join(argument.items),) if len(argument.items) == 2 else argument.items for argument in arguments]
        items = [item for argument_items in joined for item in argument_items]
    _refuse_too_many("arguments", len(items))
    return items


def _refuse_too_many(kind: str, number: int) -> None:
    if number > MOST_ITEMS:
        raise InputError(
            f"the manifest would have {number} further {kind}, and takes at most {MOST_ITEMS}",
            fix="leave out what the model does not need",
        )


def _set(spec: dict[str, Any], path: str, value: Any) -> None:
    *around, name = path.split(".")
    for step in around:
        spec = spec.setdefault(step, {})
    spec[name] = value


def manifest_of(name: str, namespace: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object, with the fields in the order in which the API declares them. Raises InputError for an invalid one."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    document = {
        "apiVersion": MODEL_DEPLOYMENT.api_version,
        "kind": MODEL_DEPLOYMENT.kind,
        "metadata": metadata,
        "spec": spec,
    }
    try:
        deployment = ModelDeployment.model_validate(document)
    except ValidationError as error:
        problem = problems_of(error, ModelDeployment)[0]
        raise InputError(
            f"the manifest would be invalid: {problem}", fix="correct the command or the option"
        ) from error
    return deployment.model_dump(mode="json", by_alias=True, exclude_unset=True)

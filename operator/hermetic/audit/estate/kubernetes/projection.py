"""What is kept of an object: the fields that its model declares, that is, those that a check reads.

Snapshots, digests and the operator's cache use this form. It may contain a Secret's name, never a secret: values of
environment variables and annotations are reduced by their models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from hermetic.audit.estate.arm_fields import Field, fields_of, spelling
from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Trimmed, WithUnreadFields


def projected(kind: type[KubernetesObject], manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest reduced to what its model reads. A value of a wrong type is kept: its check must report it."""
    reduced: dict[str, Any] = _projected(kind, manifest)
    return reduced


def _projected(model: type[BaseModel], value: Any) -> Any:
    if isinstance(value, list):
        return [_projected(model, item) for item in value]
    if not isinstance(value, Mapping):
        return value
    fields = fields_of(model)
    spelt = ((key, fields.get(spelling(str(key)))) for key in value)
    reduced = {key: _held(field, value[key]) for key, field in spelt if field is not None}
    if issubclass(model, WithUnreadFields):
        return model.marked(reduced, value)
    return model.trimmed(reduced) if issubclass(model, Trimmed) else reduced


def _held(field: Field, value: Any) -> Any:
    if field.model is None:
        return value
    if field.free and isinstance(value, Mapping):
        return {key: _projected(field.model, item) for key, item in value.items()}
    return _projected(field.model, value)

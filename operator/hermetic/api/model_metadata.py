"""`modelMetadata` of the configuration: labels and annotations of the platform team on the objects of every model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import BeforeValidator, Field, StringConstraints

from hermetic.api.field_types import LABEL_KEYS, LabelKey, Labels, list_of, without_nulls
from hermetic.api.metadata_keys import reserved_because
from hermetic.api.rules import ApiModel, Rule

LONGEST_ANNOTATION = 512
"""Characters of one annotation. Every object of every model holds it, and the operator keeps it in memory."""
MOST_KEYS = 16


def _objection(keys: Iterable[str]) -> str:
    """What is wrong with the first reserved key; "" where none is reserved."""
    for key in keys:
        if clause := reserved_because(key):
            return (
                f"'{key}' must not be given to models: {clause}; use a key of your own that only describes, such as "
                "'cost-centre' or 'example.com/owner'"
            )
    return ""


_KEYS_DESCRIBE = Rule(
    cel="",
    message="must have keys that only describe, such as 'cost-centre' or 'example.com/owner'",
    holds=lambda keys: not _objection(keys),
    explain=_objection,
)
PropagatedKeys = Annotated[list[LabelKey], Field(max_length=MOST_KEYS), list_of("set"), _KEYS_DESCRIBE]
Annotations = Annotated[
    dict[str, Annotated[str, StringConstraints(max_length=LONGEST_ANNOTATION)]],
    Field(max_length=MOST_KEYS),
    LABEL_KEYS,
    _KEYS_DESCRIBE,
    BeforeValidator(without_nulls),
]


class ModelMetadata(ApiModel):
    """Labels and annotations on every object of every model, and on its pods."""

    RULES = (
        Rule(
            cel="",
            message="must not name a key twice: a key is either given to every model, or copied from each",
            holds=lambda metadata: (
                not (
                    metadata.labels.keys() & {*metadata.propagated_labels}
                    or metadata.annotations.keys() & {*metadata.propagated_annotations}
                )
            ),
        ),
    )

    labels: Annotated[Labels, _KEYS_DESCRIBE] = {}
    """Labels that every model gets, at most 16, for example `environment: production`. Default: none."""
    annotations: Annotations = {}
    """Annotations that every model gets, at most 16, each of at most 512 characters. Default: none."""
    propagated_labels: PropagatedKeys = []
    """Keys of labels that are copied from the metadata of a ModelDeployment that has them, at most 16. Default: none.

    propagatedLabels: [cost-centre, example.com/owner]"""
    propagated_annotations: PropagatedKeys = []
    """Keys of annotations that are copied from the metadata of a ModelDeployment, at most 16. A deployment with a value
    of more than 512 characters is refused. Default: none."""

    @property
    def label_keys(self) -> frozenset[str]:
        """Every key of a label that objects of models may have because of this."""
        return frozenset({*self.labels, *self.propagated_labels})

    @property
    def annotation_keys(self) -> frozenset[str]:
        """Every key of an annotation that objects of models may have because of this."""
        return frozenset({*self.annotations, *self.propagated_annotations})

"""Which families of models the formula covers, and why the others are not. The list is `architectures.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from hermetic.api.model_facts import ModelFacts


@dataclass(frozen=True, slots=True)
class Architectures:
    """The kind of layers of each family that is computed, the part that a kind needs, and reasons for other families.

    `kinds` maps a family to its kind, `needs` a kind to a field of `Attention`.
    """

    kinds: Mapping[str, str]
    needs: Mapping[str, str]
    not_computed: Mapping[str, str]

    @property
    def computed(self) -> frozenset[str]:
        """Every family that is computed."""
        return frozenset(self.kinds)


def why_not_computed(model_type: str) -> str | None:
    """One clause for a family of models that sizing does not compute; None for one that it does."""
    listed = architectures()
    if model_type in listed.computed:
        return None
    reason = listed.not_computed.get(model_type, "it is not on the list of families that sizing computes")
    return f"model type '{model_type}': {reason}"


def missing_part(facts: ModelFacts) -> str | None:
    """A clause where the facts lack what layers of this family keep; None where they have it."""
    listed = architectures()
    field = listed.needs.get(listed.kinds.get(facts.model_type, ""))
    if field is None or facts.attention is None or getattr(facts.attention, field) not in (None, []):
        return None
    return f"model type '{facts.model_type}': the facts do not contain what its layers keep; read them again"


@functools.cache
def architectures() -> Architectures:
    """The list, read once."""
    content = tomllib.loads(files("hermetic.sizing").joinpath("architectures.toml").read_text("utf-8"))
    kinds = {family: kind for kind, families in content["families"].items() for family in families}
    return Architectures(kinds, content["needs"], content["not_computed"])

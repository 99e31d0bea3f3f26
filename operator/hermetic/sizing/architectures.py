"""Which families of models the formula covers, and why the others are not. The list is `architectures.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Architectures:
    """The families that are computed, those of them with latent attention, and the reasons for the others."""

    computed: frozenset[str]
    latent: frozenset[str]
    not_computed: Mapping[str, str]


def why_not_computed(model_type: str) -> str | None:
    """One clause for a family of models that sizing does not compute; None for one that it does."""
    known = architectures()
    if model_type in known.computed:
        return None
    reason = known.not_computed.get(model_type, "it is not on the list of families that sizing computes")
    return f"model type '{model_type}': {reason}"


@functools.cache
def architectures() -> Architectures:
    """The list, read once."""
    read = tomllib.loads(files("hermetic.sizing").joinpath("architectures.toml").read_text("utf-8"))
    return Architectures(frozenset(read["computed"]), frozenset(read["latent"]), read["not_computed"])

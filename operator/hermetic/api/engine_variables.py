"""The environment variables that users give to an engine."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from hermetic.api.field_types import list_of, matches
from hermetic.api.reserved_flags import NO_CONTROL_CHARACTER, NO_RESERVED_VARIABLE, NO_URL
from hermetic.api.rules import ApiModel


class EnvironmentVariable(ApiModel):
    """One literal variable for the engine's container."""

    name: Annotated[
        str,
        StringConstraints(min_length=1, max_length=128),
        matches(
            r"^[A-Za-z_][A-Za-z0-9_]*$", "must be a C identifier: letters, digits and '_', not starting with a digit"
        ),
        NO_RESERVED_VARIABLE,
    ]
    """Name of the variable. It must be on the reviewed list of the engine, or allowed by the operator's configuration;
    names that carry credentials, proxies or offline switches are refused in any case."""
    value: Annotated[str, StringConstraints(max_length=4096), NO_URL, NO_CONTROL_CHARACTER] = ""
    """Literal value, at most 4096 characters: no address, and a path only where the variable is for one. Each reader
    of the object can read it: no secrets. Default: empty."""


Environment = Annotated[list[EnvironmentVariable], Field(max_length=64), list_of("map", "name")]

"""Reviewed flags and variables for SGLang."""

from __future__ import annotations

from hermetic.engines.allow_list import AllowedNames, names_in
from hermetic.engines.flag_tables import FlagTable

_PACKAGE, _FILE = "hermetic.engines.sglang", "allow_list.toml"

FLAGS = names_in(_PACKAGE, _FILE, "flags")


def variables(table: FlagTable) -> AllowedNames:
    """The variables that this release reads: any other has no effect, and is refused as a mistake."""
    listed = names_in(_PACKAGE, _FILE, "variables")
    return AllowedNames(listed.allowed & table.environment, listed.refused, listed.paths, {}, {})

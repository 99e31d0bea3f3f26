"""Why a release of an engine does not have a flag or a variable that other releases have."""

from __future__ import annotations

from hermetic.api.engine import Member
from hermetic.engines.dropped_names import dropped_name
from hermetic.engines.flag_tables import FlagTable, TableFolder


def why_missing(engine: Member, name: str, release: FlagTable, tables: TableFolder) -> str:
    """One clause for a name that `release` does not have; "" where no release is known to have it.

    `name`: a variable, or an argument with a flag as it is written.
    """
    if (dropped := dropped_name(engine, name)) is not None and dropped.is_dropped_in(release.version):
        return f"releases from {dropped.since} on do not have it; {dropped.instead}"
    newer = tables.supported[tables.supported.index(tables.release_of(release.version)) + 1 :]
    first = next((other for other in newer if _has(tables.table_for(other), name)), "")
    return f"{release.dialect.product} {first} is the first release that has it" if first else ""


def _has(table: FlagTable, name: str) -> bool:
    return table.flag(name) is not None if name.startswith("-") else name in table.environment

"""Which flags and environment variables each supported vLLM version understands.

The tables are derived from vLLM's own source distributions (`python -m testbed.vllm_tables.derive`).
"""

from __future__ import annotations

from hermetic.engines.flag_tables import Dialect, Flag, FlagTable, TableFolder, UnsupportedVersion

__all__ = ["TABLES", "Flag", "FlagTable", "UnsupportedVersion", "supported_minors", "table_for"]

TABLES = TableFolder(
    __name__,
    Dialect(
        product="vLLM",
        dashes=True,
        nothing=("None", "none"),
        # vLLM's validate_parsed_serve_args
        together=(
            ("--enable-auto-tool-choice", "--tool-call-parser"),
            ("--enable-log-outputs", "--enable-log-requests"),
        ),
        maps=(("--reasoning-effort-map", ("none", "minimal", "low", "medium", "high", "xhigh", "max")),),
    ),
    release=r"v?(\d+\.\d+)(?!\d)",
)


def supported_minors() -> tuple[str, ...]:
    """The minor versions that have a table, oldest first: ("0.24", ..., "0.33")."""
    return TABLES.supported


def table_for(version: str) -> FlagTable:
    """The table of the version's minor release: "0.32.0", "0.32" and "v0.32.1" all give that of 0.32.

    Raises UnsupportedVersion (a ValueError) for any other minor version and for an invalid version.
    """
    return TABLES.table_for(version)

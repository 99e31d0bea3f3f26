"""Which flags and environment variables each supported vLLM version understands.

There is one table for each minor release: "0.32.0", "0.32" and "v0.32.1" all read that of 0.32. They are derived from
vLLM's own source distributions (`python -m testbed.vllm_tables.derive`).
"""

from __future__ import annotations

from hermetic.engines.flag_tables import Dialect, TableFolder

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

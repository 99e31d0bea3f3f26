"""Derives the tables of flags and environment variables: `python -m testbed.vllm_tables.derive [VERSION...]`.

VERSION is a release (0.33.0) or a minor version (0.33: its newest patch release). Without one, every committed table is
derived again from the release it states. Exit 1 when a table could not be derived, or differs under --check.
"""

from __future__ import annotations

import sys

from testbed.flag_tables import ENGINES, FlagTables, written
from testbed.package_index import VLLM, Index, SourceDistribution, fetch
from testbed.python_sources import NotUnderstood, Sources
from testbed.vllm_tables.annotations import KNOWN_RULES, rules_wording
from testbed.vllm_tables.flags import environment_of, flags_of, shorthands_of


def derive(index: Index, release: SourceDistribution) -> bytes:
    """The table of one release, byte for byte as it is committed."""
    sources = Sources.of_archive(fetch(index, release))
    if rules_wording(sources) not in KNOWN_RULES:
        raise NotUnderstood(
            "vllm.engine.arg_utils",
            sources.function("vllm.engine.arg_utils", "_compute_kwargs"),
            f"{release.name} words its rules anew: compare them with annotations.py, then add {rules_wording(sources)}",
        )
    return written(release, flags_of(sources), environment_of(sources), shorthands_of(sources))


TABLES = FlagTables("vLLM", VLLM, ENGINES / "vllm" / "tables", derive, stem=lambda release: release.minor)

if __name__ == "__main__":
    sys.exit(TABLES.main("testbed.vllm_tables.derive", __doc__))

"""Derives the tables of flags and environment variables: `python -m testbed.sglang_tables.derive [VERSION...]`.

VERSION is a release (0.5.23). Without one, every committed table is derived again from the release it states. Exit 1
when a table could not be derived, or differs under --check.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

from testbed.flag_tables import ENGINES, FlagTables, written
from testbed.package_index import Index, Project, SourceDistribution, fetch
from testbed.python_sources import NotUnderstood, Sources
from testbed.sglang_tables.reading import ARG_UTILS, KNOWN_RULES, RULES, Reading

# Wheels only: from 0.5.20 on there is no source distribution. Their Python files are the same on every platform.
SGLANG = Project("sglang", re.compile(r"sglang-(\d+)\.(\d+)\.(\d+)-cp311-cp311-manylinux_\d+_\d+_x86_64\.whl"))


def sources_of(wheel: Path) -> Sources:
    """Every Python file of the package, read from the wheel."""
    texts: dict[str, bytes] = {}
    packages: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("sglang/") and name.endswith(".py"):
                module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                texts[module] = archive.read(name)
                if name.endswith("/__init__.py"):
                    packages.add(module)
    return Sources(texts, frozenset(packages))


def derive(index: Index, release: SourceDistribution) -> bytes:
    """The table of one release, byte for byte as it is committed."""
    reading = Reading(sources_of(fetch(index, release)))
    if (wording := reading.rules_wording()) not in KNOWN_RULES:
        raise NotUnderstood(
            ARG_UTILS,
            reading.sources.function(ARG_UTILS, RULES[0]),
            f"{release.name} words its rules anew: compare them with reading.py, then add {wording}",
        )
    return written(release, reading.flags(), reading.environment())


TABLES = FlagTables("SGLang", SGLANG, ENGINES / "sglang" / "tables", derive, stem=lambda release: release.name)

if __name__ == "__main__":
    sys.exit(TABLES.main("testbed.sglang_tables.derive", __doc__))

"""Derives the tables of flags and environment variables: `python -m testbed.sglang_tables.derive [VERSION...]`.

VERSION is a release (0.5.23). Without one, every committed table is derived again from the release it states. Exit 1
when a table could not be derived, or differs under --check.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from pathlib import Path

from testbed.sglang_tables.reading import ARG_UTILS, KNOWN_RULES, RULES, Reading
from testbed.vllm_tables.package_index import (
    Index,
    IndexTrouble,
    Project,
    SourceDistribution,
    choose,
    configured_index,
    fetch,
    source_distributions,
)
from testbed.vllm_tables.sources import NotUnderstood, Sources

# Wheels only: from 0.5.20 on there is no source distribution. Their Python files are the same on every platform.
SGLANG = Project("sglang", re.compile(r"sglang-(\d+)\.(\d+)\.(\d+)-cp311-cp311-manylinux_\d+_\d+_x86_64\.whl"))
TABLES = Path(__file__).parents[2] / "operator" / "hermetic" / "engines" / "sglang" / "tables"


def committed_versions() -> list[str]:
    """The releases that the committed tables state, oldest first."""
    stated = [json.loads(path.read_text())["version"] for path in TABLES.glob("*.json")]
    return sorted(stated, key=lambda version: [int(part) for part in version.split(".")])


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
    return _written(release, reading)


def _written(release: SourceDistribution, reading: Reading) -> bytes:
    """One flag and one name a line, so that the difference between two releases reads as a list."""
    flags = ",\n".join(f"  {json.dumps(name)}: {json.dumps(flag)}" for name, flag in sorted(reading.flags().items()))
    environment = ",\n".join(f"  {json.dumps(name)}" for name in reading.environment())
    parts = (
        f'"version": "{release.name}"',
        f'"sha256": "{release.sha256}"',
        '"shorthands": {}',
        f'"flags": {{\n{flags}\n}}',
        f'"environment": [\n{environment}\n]',
    )
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def main() -> int:
    """Derives, then writes or compares; one line per table on stdout."""
    parser = argparse.ArgumentParser(prog="python -m testbed.sglang_tables.derive", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="for example 0.5.23")
    parser.add_argument("--output", type=Path, default=TABLES, help="folder the tables are written to")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a table differs")
    given = parser.parse_args()
    differing = 0
    try:
        index = configured_index()
        offered = source_distributions(index, SGLANG)
        for wanted in given.versions or committed_versions():
            release = choose(offered, wanted)
            table, path = derive(index, release), given.output / f"{release.name}.json"
            facts = json.loads(table)
            print(f"SGLang {release.name}: {len(facts['flags'])} flags, {len(facts['environment'])} variables")
            if not given.check:
                path.write_bytes(table)
            elif not path.exists() or path.read_bytes() != table:
                differing += 1
                print(f"{path} differs from what SGLang {release.name} says", file=sys.stderr)
    except (IndexTrouble, NotUnderstood) as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        return 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

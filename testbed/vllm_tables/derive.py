"""Derives the tables of flags and environment variables: `python -m testbed.vllm_tables.derive [VERSION...]`.

VERSION is a release (0.33.0) or a minor version (0.33: its newest patch release). Without one, every committed table is
derived again from the release it states. Exit 1 when a table could not be derived, or differs under --check.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from testbed.vllm_tables.annotations import KNOWN_RULES, rules_wording
from testbed.vllm_tables.flags import environment_of, flags_of, shorthands_of
from testbed.vllm_tables.package_index import (
    Index,
    IndexTrouble,
    SourceDistribution,
    choose,
    configured_index,
    fetch,
    source_distributions,
)
from testbed.vllm_tables.sources import NotUnderstood, Sources

TABLES = Path(__file__).parents[2] / "operator" / "hermetic" / "engines" / "vllm_tables"


def committed_versions() -> list[str]:
    """The releases that the committed tables state, oldest first."""
    stated = [json.loads(path.read_text())["version"] for path in TABLES.glob("*.json")]
    return sorted(stated, key=lambda version: [int(part) for part in version.split(".")])


def derive(index: Index, release: SourceDistribution) -> bytes:
    """The table of one release, byte for byte as it is committed."""
    sources = Sources.of_archive(fetch(index, release))
    if rules_wording(sources) not in KNOWN_RULES:
        raise NotUnderstood(
            "vllm.engine.arg_utils",
            sources.function("vllm.engine.arg_utils", "_compute_kwargs"),
            f"{release.name} words its rules anew: compare them with annotations.py, then add {rules_wording(sources)}",
        )
    return _written(release, sources)


def _written(release: SourceDistribution, sources: Sources) -> bytes:
    """One flag and one name a line, so that the difference between two versions reads as a list."""
    flags = ",\n".join(f"  {json.dumps(name)}: {json.dumps(flag)}" for name, flag in sorted(flags_of(sources).items()))
    environment = ",\n".join(f"  {json.dumps(name)}" for name in environment_of(sources))
    parts = (
        f'"version": "{release.name}"',
        f'"sha256": "{release.sha256}"',
        f'"shorthands": {json.dumps(shorthands_of(sources))}',
        f'"flags": {{\n{flags}\n}}',
        f'"environment": [\n{environment}\n]',
    )
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m testbed.vllm_tables.derive", description=__doc__)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="0.33.0, or 0.33 for its newest patch release")
    parser.add_argument("--output", type=Path, default=TABLES, help="folder the tables are written to")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a table differs")
    return parser.parse_args()


def main() -> int:
    """Derives, then writes or compares; one line per table on stdout."""
    given = _arguments()
    differing = 0
    try:
        index = configured_index()
        offered = source_distributions(index)
        for wanted in given.versions or committed_versions():
            release = choose(offered, wanted)
            table, path = derive(index, release), given.output / f"{release.minor}.json"
            facts = json.loads(table)
            print(
                f"vLLM {release.name}: {len(facts['flags'])} flags, {len(facts['environment'])} environment variables"
            )
            if not given.check:
                path.write_bytes(table)
            elif not path.exists() or path.read_bytes() != table:
                differing += 1
                print(f"{path} differs from what vLLM {release.name} says", file=sys.stderr)
    except (IndexTrouble, NotUnderstood) as trouble:
        print(f"error: {trouble}", file=sys.stderr)
        return 1
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

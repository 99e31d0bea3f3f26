"""The tables of an engine's flags and environment variables, derived from published packages: one file a release."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.package_index import (
    Index,
    IndexUnavailable,
    Project,
    SourceDistribution,
    choose,
    configured_index,
    source_distributions,
)
from testbed.python_sources import NotUnderstood

ENGINES = Path(__file__).parents[1] / "operator" / "hermetic" / "engines"


@dataclass(frozen=True)
class FlagTables:
    """The committed tables of one engine. `derive` makes one of them; `stem` is the name of its file."""

    engine: str
    project: Project
    folder: Path
    derive: Callable[[Index, SourceDistribution], bytes]
    stem: Callable[[SourceDistribution], str]

    def committed(self) -> list[str]:
        """The releases that the tables state, oldest first."""
        stated = [json.loads(path.read_text())["version"] for path in self.folder.glob("*.json")]
        return sorted(stated, key=lambda version: [int(part) for part in version.split(".")])

    def offered(self, index: Index) -> list[SourceDistribution]:
        """The releases of the package index, oldest first."""
        return source_distributions(index, self.project)

    def main(self, program: str, description: str | None) -> int:
        """Derives, then writes or compares; one line per table on stdout."""
        given = self._arguments(program, description)
        differing = 0
        try:
            index = configured_index()
            offered = self.offered(index)
            for version in given.versions or self.committed():
                release = choose(offered, version)
                differing += self._settle(release, self.derive(index, release), given.output, check=given.check)
        except (IndexUnavailable, NotUnderstood) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        return 1 if differing else 0

    def _arguments(self, program: str, description: str | None) -> argparse.Namespace:
        newest = (self.committed() or ["0.1.0"])[-1]
        parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
        parser.add_argument("versions", nargs="*", metavar="VERSION", help=f"for example {newest}")
        parser.add_argument("--output", type=Path, default=self.folder, help="folder the tables are written to")
        parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a table differs")
        return parser.parse_args()

    def _settle(self, release: SourceDistribution, table: bytes, output: Path, *, check: bool) -> bool:
        """Writes the table, or says whether the committed one differs."""
        facts, path = json.loads(table), output / f"{self.stem(release)}.json"
        count = f"{len(facts['flags'])} flags, {len(facts['environment'])} environment variables"
        print(f"{self.engine} {release.name}: {count}")
        if not check:
            path.write_bytes(table)
            return False
        differs = not path.exists() or path.read_bytes() != table
        if differs:
            print(f"{path} differs from what {self.engine} {release.name} says", file=sys.stderr)
        return differs


def written(
    release: SourceDistribution,
    flags: Mapping[str, Any],
    environment: Iterable[str],
    shorthands: Mapping[str, Any] | None = None,
) -> bytes:
    """One flag and one name a line, so that the difference between two releases reads as a list."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(flag)}" for name, flag in sorted(flags.items()))
    names = ",\n".join(f"  {json.dumps(name)}" for name in environment)
    parts = (
        f'"version": "{release.name}"',
        f'"sha256": "{release.sha256}"',
        f'"shorthands": {json.dumps(shorthands or {})}',
        f'"flags": {{\n{lines}\n}}',
        f'"environment": [\n{names}\n]',
    )
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()

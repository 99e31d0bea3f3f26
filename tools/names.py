"""`python -m tools.names [--check | --lower] [--files N]`: how many names of variables do not say what they hold.

A name such as `one`, `found` or `words` gives the reader no type and no noun to search for. The count covers the names
that are bound: variables, parameters, loop variables, exceptions and captures of patterns. `ceilings.toml` has the
highest count that each folder may have. With --check, a count above its ceiling is an error, and so is a ceiling more
than `SLACK` above its count: an improvement cannot be lost. --lower writes the counts of folders that improved.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
CEILINGS = Path(__file__).with_name("ceilings.toml")
FOLDERS = ("operator", "tests", "testbed", "bench", "shipping", "tools")
UNTYPED = frozenset((
    "one", "each", "found", "words", "seen", "what", "place", "places", "known", "kept", "held", "odd",
    "whole", "asked", "given", "told", "said", "way", "ways", "wanted", "taken", "made", "others", "rest",
))  # fmt: skip
SLACK = 10
HEADER = """\
# The most names of variables that may be one of the untyped words of tools/names.py, by folder.
# Numbers go down only: `python -m tools.names --lower` writes them after names were improved.

"""


@dataclass(frozen=True)
class NameCount:
    """Bound names of some files: all of them, and how often each untyped word is among them."""

    bindings: int
    untyped: Counter[str]

    @property
    def total(self) -> int:
        return self.untyped.total()

    @property
    def share(self) -> float:
        """Untyped names in percent of all bound names."""
        return 100 * self.total / self.bindings if self.bindings else 0.0


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Every name that a module binds to a value, once for each binding; attributes and imports are left out."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name


def count_names(sources: Iterable[str]) -> NameCount:
    """The count over the texts of modules; SyntaxError for a text that is not Python."""
    names = Counter(name.lstrip("_") for source in sources for name in bound_names(ast.parse(source)))
    return NameCount(names.total(), Counter({name: names[name] for name in UNTYPED & names.keys()}))


def count_folder(folder: Path) -> NameCount:
    return count_names(path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py")))


def ceiling_errors(totals: Mapping[str, int], ceilings: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with the counts or with the ceilings, with the fix as the second line of each message."""
    for folder, total in totals.items():
        ceiling = ceilings.get(folder)
        if ceiling is None:
            yield f"{folder}: tools/ceilings.toml has no ceiling\nfix: add `{folder} = {total}`"
        elif total > ceiling:
            yield (
                f"{folder}: {total} untyped names of variables, at most {ceiling} are allowed\n"
                f"fix: name them after what they hold; `python -m tools.names --files 10` lists the files"
            )
        elif total < ceiling - SLACK:
            yield (
                f"{folder}: {total} untyped names of variables, and the ceiling of {ceiling} is too high\n"
                f"fix: python -m tools.names --lower"
            )


def lowered(totals: Mapping[str, int], ceilings: Mapping[str, int]) -> str:
    """The text of ceilings.toml in which no ceiling is above its count, and none is higher than before."""
    rows = (f"{folder} = {min(total, ceilings.get(folder, total))}\n" for folder, total in totals.items())
    return HEADER + "".join(rows)


def main(arguments: list[str]) -> int:
    """Print, check or lower; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.names", description=__doc__)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true", help="end with 1 where a count and its ceiling do not agree")
    mode.add_argument("--lower", action="store_true", help="write the ceilings of folders that improved")
    parser.add_argument(
        "--files", type=int, default=0, metavar="N", help="list the N files of each folder with the most"
    )
    options = parser.parse_args(arguments)
    counts = {folder: count_folder(REPOSITORY / folder) for folder in FOLDERS}
    totals = {folder: count.total for folder, count in counts.items()}
    ceilings = tomllib.loads(CEILINGS.read_text()) if CEILINGS.is_file() else {}
    if options.check:
        errors = list(ceiling_errors(totals, ceilings))
        sys.stderr.writelines(f"error: {error}\n" for error in errors)
        return 1 if errors else 0
    if options.lower:
        CEILINGS.write_text(lowered(totals, ceilings))
    for folder, count in counts.items():
        print(f"{folder}: {count.total} of {count.bindings} names, {count.share:.2f} %; {count.untyped.most_common(8)}")
        for path, total in _worst_files(REPOSITORY / folder, options.files):
            print(f"  {total:4d}  {path.relative_to(REPOSITORY)}")
    return 0


def _worst_files(folder: Path, limit: int) -> list[tuple[Path, int]]:
    if not limit:
        return []
    totals = Counter({path: count_names([path.read_text(encoding="utf-8")]).total for path in folder.rglob("*.py")})
    return totals.most_common(limit)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

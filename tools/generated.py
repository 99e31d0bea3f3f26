"""`python -m tools [crds|api|policies|reference] [--check]`: the files of this repository that are made from the code.

Without a name it writes all of them. Written files are named on stdout. With --check nothing is written, and a file
that differs or is missing is an error (exit 1).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools import api_reference, cli_reference, crds, model_warnings

GENERATORS = {
    "crds": crds.files,
    "api": api_reference.files,
    "policies": model_warnings.files,
    "reference": cli_reference.files,
}


def main(arguments: list[str]) -> int:
    """Write or check; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools", description="Write the files that are made from the code.")
    parser.add_argument("which", nargs="*", help=f"of {', '.join(GENERATORS)}; all of them by default")
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 where a file is not current")
    parser.add_argument("--repository", type=Path, default=Path(), help="the folder with crds/ and docs/")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.which if name not in GENERATORS]:
        parser.error(f"there is no generator {unknown[0]!r}; there are {', '.join(GENERATORS)}")
    files: dict[Path, str] = {}
    for name in options.which or GENERATORS:
        files |= {options.repository / path: text for path, text in GENERATORS[name]().items()}
    return _check(files) if options.check else _write(files)


def _write(files: dict[Path, str]) -> int:
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    return 0


def _check(files: dict[Path, str]) -> int:
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        sys.stderr.write(f"error: {path} is not what the models say\nfix: make generate\n")
    return 1 if stale else 0

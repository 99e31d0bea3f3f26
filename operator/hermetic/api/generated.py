"""Files that are made from the models and checked in: written, or only held against what is there."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def write_or_check(files: dict[str, str], default_directory: str) -> int:
    """Do what the command line asks, `[--check] [DIRECTORY]`, with the texts by file name; returns the exit code.

    Written files are named on stdout. With --check nothing is written, and a file that differs or is missing is an
    error (exit 1).
    """
    parser = argparse.ArgumentParser(description="Write files that are made from the models in operator/hermetic/api.")
    parser.add_argument("directory", nargs="?", type=Path, default=Path(default_directory))
    parser.add_argument("--check", action="store_true", help="write nothing, end with 1 where a file is not current")
    asked = parser.parse_args()
    if asked.check:
        return _check(files, asked.directory)
    for name, text in files.items():
        (asked.directory / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{asked.directory / name}\n")
    return 0


def _check(files: dict[str, str], directory: Path) -> int:
    paths = {directory / name: text for name, text in files.items()}
    stale = [path for path, text in paths.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        sys.stderr.write(f"error: {path} is not what the models say\nfix: make generate\n")
    return 1 if stale else 0

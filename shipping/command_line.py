"""`python -m shipping cli FILE`: the command line as one file, to carry to a machine without internet.

FILE is a zip that Python runs: every wheel of requirements.lock and Hermetic's own. It needs Python of the version that
it was built for, on Linux x86-64, and nothing else. One JSON object on stdout: its SHA-256 and its size in bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

from shipping.platforms import AMD64
from shipping.revision import Revision
from shipping.wheels import dependencies, hermetic_files
from testbed.console import say
from testbed.images.layers import Entry

PACKAGES = "packages"
PYTHON = "3.11"
"""By default: the oldest that is supported."""
FIRST_RUN = Path(__file__).resolve().parent / "first_run.py"
SHEBANG = b"#!/usr/bin/env python3\n"
OLDEST_MOMENT = (1980, 1, 1, 0, 0, 0)


def command_line(file: Path, python: str = PYTHON, revision: Revision | None = None) -> None:
    """Writes the file for this Python, of this commit."""
    write(file, [*dependencies(PACKAGES, AMD64, python), *hermetic_files(PACKAGES, revision=revision)], python)


def write(file: Path, entries: Sequence[Entry], python: str) -> None:
    """Writes these files as a program; the same bytes for the same files, whatever their order."""
    ordered = sorted(entries, key=lambda entry: entry.path)
    start = FIRST_RUN.read_text(encoding="utf-8").replace("@DIGEST@", _digest(ordered)).replace("@PYTHON@", python)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as opened:
        opened.write(SHEBANG)
        with zipfile.ZipFile(opened, "w") as archive:
            for entry in (Entry("__main__.py", content=start.encode()), *ordered):
                header = zipfile.ZipInfo(entry.path, OLDEST_MOMENT)
                header.external_attr = entry.mode << 16
                header.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(header, entry.content or b"")
    file.chmod(0o755)


def _digest(entries: Sequence[Entry]) -> str:
    listed = "".join(f"{hashlib.sha256(entry.content or b'').hexdigest()}  {entry.path}\n" for entry in entries)
    return hashlib.sha256(listed.encode()).hexdigest()[:32]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m shipping cli", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument(
        "--python", default=PYTHON, metavar="3.N", help="the Python that runs it (default: %(default)s)"
    )
    chosen = parser.parse_args(arguments)
    command_line(chosen.file, chosen.python)
    content = chosen.file.read_bytes()
    say(f"wrote {chosen.file}, {len(content) / 1e6:.0f} MB")
    print(json.dumps({"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}, indent=1))
    return 0

"""`python -m tools.lock [--upgrade]`: writes the lists of locked Python packages anew, with the hash of each file.

requirements.lock has the packages of the operator's image, requirements-dev.lock those and the tools. Both come from
pyproject.toml and are for every platform. A locked version stays while it satisfies pyproject.toml; --upgrade takes the
newest. The resolver is uv, locked by tools/uv.lock and installed into the cache folder, outside of .venv.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from testbed.console import say
from testbed.errors import BuildError
from testbed.locked_environment import LockedEnvironment

REPOSITORY = Path(__file__).resolve().parent.parent
RESOLVER = LockedEnvironment("uv", Path(__file__).with_name("uv.lock"), "20 MB to fetch, 60 MB on disk")
OLDEST_PYTHON = "3.11"
LOCKS = {"requirements.lock": (), "requirements-dev.lock": ("--group", "dev")}


def resolve_command(uv: Path, lock: str, options: tuple[str, ...], *, upgrade: bool) -> list[str]:
    """The command that writes one lock. Nothing of this machine's configuration of pip or uv goes into it."""
    return [
        str(uv), "pip", "compile", "--quiet", "--universal", "--python-version", OLDEST_PYTHON, "--generate-hashes",
        "--no-header", "--no-config", "--no-emit-index-url", "--no-emit-find-links",
        *(["--upgrade"] if upgrade else []), *options, "--output-file", lock, "pyproject.toml",
    ]  # fmt: skip


def main(arguments: list[str]) -> int:
    """Write both locks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.lock", description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml accepts")
    upgrade = parser.parse_args(arguments).upgrade
    uv = RESOLVER.installed() / "bin" / "uv"
    for lock, options in LOCKS.items():
        say(f"resolving {lock}")
        command = resolve_command(uv, lock, options, upgrade=upgrade)
        done = subprocess.run(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            raise BuildError(f"{lock}: {done.stderr.strip()}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BuildError as error:
        sys.exit(f"error: {error}")

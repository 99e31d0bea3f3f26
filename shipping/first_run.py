"""Starts the command line out of hermetic.pyz. It is `__main__.py` there, and imports the standard library alone.

Compiled modules cannot be loaded from a zip, so the first run unpacks all files to a folder of the user's, named by
their digest, and later runs use that. HERMETIC_UNPACKED names another place for such folders.
"""

import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

DIGEST = "@DIGEST@"
PYTHON = "@PYTHON@"
PACKAGES = "packages"
OLDEST = (3, 11)
BAD_INPUT, UNREACHABLE = 2, 4


def start() -> None:
    """Unpack where needed, and run the command."""
    version, machine = f"{sys.version_info[0]}.{sys.version_info[1]}", f"{platform.system()} {platform.machine()}"
    if (version, machine) != (PYTHON, "Linux x86_64"):
        build = f", or take the one for this Python: cli/hermetic-cp{version.replace('.', '')}.pyz in the bundle, "
        build += f"or of 'make cli CLI_PYTHON={version}'"
        fits = sys.version_info >= OLDEST and machine == "Linux x86_64"
        end(
            BAD_INPUT,
            f"error: HRM-INP-001: this file is for Python {PYTHON} on Linux x86_64, not Python {version} on {machine}",
            f"fix: run it with python{PYTHON} on Linux x86_64{build if fits else ''}",
        )
    try:
        folder = unpacked(Path(__file__).parent)
    except OSError as error:
        end(
            UNREACHABLE,
            f"error: HRM-NET-001: the files of the command line cannot be unpacked: {error}",
            "fix: name a folder with 200 MB free in HERMETIC_UNPACKED",
        )
    sys.path.insert(0, str(folder / PACKAGES))
    from hermetic.cli import main

    main()


def end(code: int, *lines: str) -> NoReturn:
    """Exit, and say why."""
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    sys.exit(code)


def unpacked(archive: Path) -> Path:
    """The folder with the files of the archive; made beside its final place and renamed: whole, or not there."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parent = Path(os.environ.get("HERMETIC_UNPACKED") or cache / "hermetic")
    folder = parent / f"cli-{DIGEST}"
    if folder.is_dir():
        return folder
    parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".cli-", dir=parent))
    try:
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(partial, [name for name in packed.namelist() if name.startswith(f"{PACKAGES}/")])
        try:
            partial.rename(folder)
        except OSError:  # another run was first
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


if __name__ == "__main__":
    start()

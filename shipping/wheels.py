"""The wheels in the operator's image: those of requirements.lock by hash, and Hermetic's own from this checkout."""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from testbed.console import say
from testbed.errors import BuildError
from testbed.images.layers import FILE, Entry, Layer, files_under, layer, program
from testbed.programs import cache_folder, only_builder, run_logged

REPOSITORY = Path(__file__).resolve().parent.parent
LOCK = REPOSITORY / "requirements.lock"
CACHED = "locked-wheels"
# Where Debian's Python looks for what is not a package of Debian.
PLACE = "usr/local/lib/python3.11/dist-packages"
PYTHON = "3.11"
"""That of the image."""
# The C library of Debian bookworm is 2.36; pip takes a list where others take a bound.
PLATFORMS = [f"manylinux_2_{minor}_x86_64" for minor in range(36, 4, -1)] + ["manylinux2014_x86_64", "any"]
# What an installation by pip leaves beside the packages, paths of this machine in it.
LEFT_BY_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
SCRIPT = "#!/usr/bin/python3\nimport sys\n\nfrom hermetic.cli import main\n\nsys.exit(main())\n"


def dependencies_layer(source: Path = REPOSITORY) -> Layer:
    """Every wheel of the lock of a checkout, as installed."""
    return layer(dependencies(PLACE, lock=source / LOCK.name))


def hermetic_layer(source: Path = REPOSITORY) -> Layer:
    """Hermetic's own wheel of a checkout, and the command `hermetic`."""
    return layer([*hermetic_files(PLACE, source), program("usr/local/bin/hermetic", SCRIPT)])


def dependencies(place: str, python: str = PYTHON, lock: Path = LOCK) -> list[Entry]:
    """The files of every wheel of the lock, for this Python, below `place`."""
    return files_under(
        _kept(python, lock) / "packages", place, lambda path: path.parts[0] != "bin" and path.name not in LEFT_BY_PIP
    )


def hermetic_wheel(folder: Path, source: Path = REPOSITORY) -> Path:
    """Builds Hermetic's own wheel of a checkout into the folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"hatchling built no wheel:\n{done.stderr}")
    (wheel,) = folder.glob("hermetic-*.whl")
    return wheel


def locked_wheels() -> list[Path]:
    """The files of the wheels that the lock names and the image holds."""
    return sorted(_kept().glob("wheels/*.whl"))


def copy_wheels(folder: Path) -> None:
    """Every wheel of the lock with the lock itself, and Hermetic's own."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (*locked_wheels(), LOCK):
        shutil.copy(file, folder)
    hermetic_wheel(folder)


def main(arguments: list[str]) -> int:
    """`python -m shipping wheels FOLDER`: every wheel of the operator's image, for a build on a base of your own."""
    parser = argparse.ArgumentParser(prog="python -m shipping wheels", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    copy_wheels(parser.parse_args(arguments).folder)
    return 0


def hermetic_files(place: str, source: Path = REPOSITORY) -> list[Entry]:
    """The files of Hermetic's own wheel, below `place`."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(hermetic_wheel(Path(folder), source)) as archive:
        names = [name for name in archive.namelist() if Path(name).name not in LEFT_BY_PIP and name[-1] != "/"]
        return [Entry(f"{place}/{name}", FILE, archive.read(name)) for name in names]


def _kept(python: str = PYTHON, lock: Path = LOCK) -> Path:
    """A folder with the wheels of the lock (`wheels`), and with what they hold (`packages`); made once per lock."""
    tags = _python_tags(python)
    key = hashlib.sha256("\0".join([*tags, *PLATFORMS]).encode() + lock.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"{CACHED}-{key}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with only_builder(CACHED):
            if not folder.is_dir():
                _fetch_into(folder, tags, lock)
    return folder


def _python_tags(python: str) -> list[str]:
    abi = f"cp{python.replace('.', '')}"
    return ["--python-version", python, "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none"]


def _fetch_into(folder: Path, tags: list[str], lock: Path) -> None:
    """Works beside the final place and renames: an interrupted installation is never taken for a whole one."""
    partial = Path(tempfile.mkdtemp(prefix=f".{CACHED}-partial-", dir=folder.parent))
    wheels, packages = str(partial / "wheels"), str(partial / "packages")
    say(f"{CACHED}: fetching (30 MB; they are kept for next time)")
    offline = ["--no-index", "--find-links", wheels]
    try:
        run_logged(CACHED, "fetching", [*_pip("download", tags, lock), "--dest", wheels], partial / "fetch.log")
        install = [*_pip("install", tags, lock), *offline, "--no-compile", "--target", packages]
        run_logged(CACHED, "installing", install, partial / "install.log")
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _pip(doing: str, tags: list[str], lock: Path) -> list[str]:
    """pip for the lock: wheels alone, of the image's Python and not of this one."""
    return [
        sys.executable, "-m", "pip", doing, "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary",
        ":all:", "--require-hashes", "--requirement", str(lock), *tags,
        *(part for platform in PLATFORMS for part in ("--platform", platform)),
    ]  # fmt: skip

"""The wheels in the operator's image: those of requirements.lock by hash, and Hermetic's own from this checkout."""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Set
from pathlib import Path

from hermetic.cli.build import BUILD_FILE
from shipping.platforms import AMD64, PLATFORMS, Platform
from shipping.revision import REPOSITORY, Revision, build_facts, revision_of
from testbed.console import say
from testbed.errors import BuildError
from testbed.images.layers import FILE, Entry, Layer, files_under, layer, program
from testbed.images.oci import as_json
from testbed.programs import cache_folder, only_builder, run_logged

LOCK = REPOSITORY / "requirements.lock"
CACHED = "locked-wheels"
# Where Debian's Python looks for what is not a package of Debian.
PLACE = "usr/local/lib/python3.13/dist-packages"
PYTHON = "3.13"
"""That of the image."""
# The client of Kubernetes reads kubeconfigs, and these packages are what it alone needs. In a pod nothing uses them.
READS_KUBECONFIGS = frozenset(
    {
        *("aiohttp-retry", "durationpy", "kubernetes", "oauthlib", "python-dateutil", "requests-oauthlib"),
        *("tzdata", "websocket-client"),
    }
)
# What an installation by pip leaves beside the packages, paths of this machine in it.
LEFT_BY_PIP = {"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"}
SCRIPT = "#!/usr/bin/python3\nimport sys\n\nfrom hermetic.cli import main\n\nsys.exit(main())\n"


def dependencies_layer(platform: Platform, source: Path = REPOSITORY) -> Layer:
    """Every wheel of the lock of a checkout that a pod uses, as installed on a platform."""
    lock = source / LOCK.name
    unused = _installed_files(READS_KUBECONFIGS, platform, lock)
    return layer(entry for entry in dependencies(PLACE, platform, lock=lock) if entry.path not in unused)


def hermetic_layer(source: Path, revision: Revision) -> Layer:
    """Hermetic's own wheel of a checkout, its commit, and the command `hermetic`."""
    return layer([*hermetic_files(PLACE, source, revision), program("usr/local/bin/hermetic", SCRIPT)])


def dependencies(prefix: str, platform: Platform, python: str = PYTHON, lock: Path = LOCK) -> list[Entry]:
    """The files of every wheel of the lock, for this platform and Python, below `place`."""
    return files_under(
        _kept(platform, python, lock) / "packages",
        prefix,
        lambda path: path.parts[0] != "bin" and path.name not in LEFT_BY_PIP,
    )


def hermetic_wheel(folder: Path, source: Path = REPOSITORY) -> Path:
    """Builds Hermetic's own wheel of a checkout into the folder."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"hatchling built no wheel:\n{done.stderr}")
    (wheel,) = folder.glob("hermetic-*.whl")
    return wheel


def image_wheels(platform: Platform) -> list[Path]:
    """The files of the wheels that are in the image of a platform."""
    return [wheel for wheel in locked_wheels(platform) if package_name(wheel) not in READS_KUBECONFIGS]


def locked_wheels(platform: Platform, python: str = PYTHON) -> list[Path]:
    """The files of the wheels that the lock names, for this platform and Python."""
    return sorted(_kept(platform, python).glob("wheels/*.whl"))


def copy_wheels(folder: Path, python: str = PYTHON) -> None:
    """Every wheel of the lock for this Python and each platform with the lock itself, and Hermetic's own."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in (*(wheel for platform in PLATFORMS for wheel in locked_wheels(platform, python)), LOCK):
        shutil.copy(file, folder)
    hermetic_wheel(folder)


def main(arguments: list[str]) -> int:
    """`python -m shipping wheels FOLDER`: every wheel of the operator's image, for a build on a base of your own."""
    parser = argparse.ArgumentParser(prog="python -m shipping wheels", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    copy_wheels(parser.parse_args(arguments).folder)
    return 0


def hermetic_files(prefix: str, source: Path = REPOSITORY, revision: Revision | None = None) -> list[Entry]:
    """The files of Hermetic's own wheel and the commit that they are of, below `place`."""
    build = as_json(build_facts(revision or revision_of(source)))
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(hermetic_wheel(Path(folder), source)) as archive:
        names = [name for name in archive.namelist() if Path(name).name not in LEFT_BY_PIP and name[-1] != "/"]
        files = [Entry(f"{prefix}/{name}", FILE, archive.read(name)) for name in names]
    return [*files, Entry(f"{prefix}/hermetic/{BUILD_FILE}", FILE, build)]


def _installed_files(names: Set[str], platform: Platform, lock: Path) -> set[str]:
    """The paths in the image of the files of packages, which pip lists in RECORD."""
    packages = _kept(platform, lock=lock) / "packages"
    records = [record for record in packages.glob("*.dist-info/RECORD") if _distribution(record.parent) in names]
    rows = (row for record in records for row in csv.reader(record.read_text(encoding="utf-8").splitlines()))
    return {f"{PLACE}/{row[0]}" for row in rows}


def _distribution(folder: Path) -> str:
    """The normalized name of the package whose metadata a folder holds."""
    return folder.name.split("-")[0].replace("_", "-").lower()


def _kept(platform: Platform, python: str = PYTHON, lock: Path = LOCK) -> Path:
    """A folder with the wheels of the lock (`wheels`), and with what they hold (`packages`); made once per lock."""
    tags = _wheel_tags(platform, python)
    key = hashlib.sha256("\0".join(tags).encode() + lock.read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"{CACHED}-{key}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        is_first = (platform, python) == (AMD64, PYTHON)
        pure = [] if is_first else sorted(_kept(AMD64, PYTHON, lock).glob("wheels/*-none-any.whl"))
        with only_builder(CACHED):
            if not folder.is_dir():
                _fetch_into(folder, tags, lock, pure)
    return folder


def _wheel_tags(platform: Platform, python: str) -> list[str]:
    """Options of pip that select wheels of this platform and Python, whatever those of this machine are."""
    abi = f"cp{python.replace('.', '')}"
    tags = ["--python-version", python, "--implementation", "cp", "--abi", abi, "--abi", "abi3", "--abi", "none"]
    return [*tags, *(part for tag in platform.wheel_tags for part in ("--platform", tag))]


def _fetch_into(folder: Path, tags: list[str], lock: Path, pure: list[Path]) -> None:
    """Works beside the final place and renames: an interrupted installation is never taken for a whole one.

    `pure`: wheels that are there already and run everywhere, so that only compiled ones are fetched again.
    """
    partial = Path(tempfile.mkdtemp(prefix=f".{CACHED}-partial-", dir=folder.parent))
    wheels, packages = str(partial / "wheels"), str(partial / "packages")
    say(f"{CACHED}: fetching (30 MB; they are kept for next time)")
    offline = ["--no-index", "--find-links", wheels]
    try:
        (partial / "wheels").mkdir()
        for wheel in pure:
            shutil.copy(wheel, wheels)
        compiled = partial / "fetch.lock"
        compiled.write_text(_without(lock.read_text(), {package_name(wheel) for wheel in pure}))
        run_logged(CACHED, "fetching", [*_pip("download", tags, compiled), "--dest", wheels], partial / "fetch.log")
        install = [*_pip("install", tags, lock), *offline, "--no-compile", "--target", packages]
        run_logged(CACHED, "installing", install, partial / "install.log")
        partial.chmod(0o755)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def package_name(wheel: Path) -> str:
    """The normalized name of the package in a wheel."""
    return wheel.name.split("-")[0].replace("_", "-").lower()


def _without(lock: str, names: Set[str]) -> str:
    """A lock without these packages. An entry begins in the first column, and its hashes are indented."""
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)
    return "".join(entry for entry in entries if entry.partition("==")[0].replace("_", "-").lower() not in names)


def _pip(doing: str, tags: list[str], lock: Path) -> list[str]:
    """pip for the lock: wheels alone, of the image's Python and not of this one."""
    return [
        sys.executable, "-m", "pip", doing, "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary",
        ":all:", "--require-hashes", "--requirement", str(lock), *tags,
    ]  # fmt: skip

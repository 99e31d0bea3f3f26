"""The Debian packages under the operator's image, by name, version and hash.

`debian.lock` names each package; apt-get fetches it, and a file of another hash is refused. Debian removes a version
from its archive some time after a security update. Then `python -m shipping lock` writes the newer versions down, and
the digest of the image changes with them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from testbed.console import say
from testbed.errors import BuildError, CannotRunError
from testbed.programs import cache_folder, only_builder

LOCK = Path(__file__).resolve().parent / "debian.lock"
RELEASE = "bookworm"
# Python and the libraries that it and the compiled wheels are linked to.
PACKAGES = (
    "gcc-12-base", "libbz2-1.0", "libc6", "libexpat1", "libffi8", "libgcc-s1", "liblzma5",
    "libpython3.11-minimal",
    "libpython3.11-stdlib", "libssl3", "libstdc++6", "libuuid1", "python3.11-minimal", "zlib1g",
)  # fmt: skip
# As root apt-get downloads as a user of its own, who cannot write to the cache folder.
UNCONFINED = ("-o", "APT::Sandbox::User=")
HEADER = f"# Debian {RELEASE}, amd64: name, version, SHA-256 of the package. Written by `python -m shipping lock`.\n"


@dataclass(frozen=True)
class Package:
    """One package of the lock."""

    name: str
    version: str
    sha256: str


def locked() -> tuple[Package, ...]:
    """The packages of the lock, in its order."""
    lines = LOCK.read_text().splitlines()
    return tuple(Package(*line.split()) for line in lines if line and not line.startswith("#"))


def fetched(*, exactly: bool = True) -> list[Path]:
    """The files of the locked packages, fetched once.

    Without `exactly` the archive's present version takes the place of one that the archive has no more.
    """
    folder = cache_folder() / "debian"
    folder.mkdir(parents=True, exist_ok=True)
    with only_builder("debian"):
        missing = [package for package in locked() if not _kept(folder, package.sha256).is_file()]
        gone: dict[str, Path] = _fetch(missing, folder) if missing else {}
    if gone and exactly:
        raise BuildError(
            f"apt-get finds no {', '.join(gone)} of the version in {LOCK.name}: its sources must be those of Debian "
            f"{RELEASE} with its security updates; where Debian has a newer version, run `python -m shipping lock`"
        )
    return [gone.get(package.name) or _kept(folder, package.sha256) for package in locked()]


def _kept(folder: Path, sha256: str) -> Path:
    return folder / f"{sha256}.deb"


def _fetch(packages: list[Package], folder: Path) -> dict[str, Path]:
    """Brings packages into the folder. Those whose version is gone come in the archive's present one, by name."""
    wanted = {package.name: f"{package.name}:amd64={package.version}" for package in packages}
    files = _downloaded(wanted, folder)
    gone: dict[str, Path] = {}
    for package in packages:
        if package.name not in files:
            say(f"{package.name} {package.version} is no longer in the archive")
            gone |= _downloaded({package.name: f"{package.name}:amd64"}, folder)
        elif files[package.name] != _kept(folder, package.sha256):
            files[package.name].unlink()
            raise BuildError(f"{package.name} {package.version}: the file has not the SHA-256 {package.sha256}")
    return gone


def _downloaded(wanted: dict[str, str], folder: Path) -> dict[str, Path]:
    """Files named after their hash, by package; asks with the lists of this machine, then with fresh ones.

    What the archive does not have is left out.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise CannotRunError(f"apt-get and dpkg-deb are needed to fetch packages of Debian {RELEASE}")
    found = _asked([], list(wanted.values()), folder) if wanted else {}
    if missing := [what for name, what in wanted.items() if name not in found]:
        (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        fresh = ["-o", f"Dir::State::Lists={folder / 'lists'}", "-o", f"Dir::Cache={folder}"]
        _run(["apt-get", *fresh, *UNCONFINED, "update", "--quiet"], folder)
        # One by one: apt-get fetches nothing at all when one of its arguments is unknown.
        for what in missing:
            found |= _asked(fresh, [what], folder)
    return found


def _asked(options: list[str], wanted: list[str], folder: Path) -> dict[str, Path]:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        _run(["apt-get", *options, *UNCONFINED, "download", "--quiet", *wanted], Path(place))
        files = {field_of(file, "Package"): file for file in Path(place).glob("*.deb")}
        return {name: file.rename(_kept(folder, _sha256(file))) for name, file in files.items()}


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def field_of(file: Path, name: str) -> str:
    """A field of a package's control file, such as `Version`."""
    done = subprocess.run(["dpkg-deb", "--field", file, name], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def main(arguments: list[str]) -> int:
    """`python -m shipping lock`: writes debian.lock anew, with the versions that apt-get finds now."""
    argparse.ArgumentParser(prog="python -m shipping lock", description=__doc__).parse_args(arguments)
    folder = cache_folder() / "debian"
    folder.mkdir(parents=True, exist_ok=True)
    files = _downloaded({name: f"{name}:amd64" for name in PACKAGES}, folder)
    if missing := [name for name in PACKAGES if name not in files]:
        raise BuildError(f"apt-get finds no {', '.join(missing)}")
    lines = [f"{name} {field_of(files[name], 'Version')} {_sha256(files[name])}\n" for name in PACKAGES]
    LOCK.write_text(HEADER + "".join(lines))
    return 0

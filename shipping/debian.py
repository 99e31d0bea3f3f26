"""The Debian packages under the operator's image, by name, version and hash.

`debian.lock` names each package; apt-get fetches it, and a file of another hash is refused. Debian removes a version
from its archive some time after a security update. Then `python -m shipping lock` writes the newer versions down, and
the digest of the image changes with them.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from shipping.platforms import PLATFORMS, Platform
from testbed.console import say
from testbed.debian_archive import downloaded, field_of, kept_file, sha256_of
from testbed.errors import BuildError
from testbed.programs import cache_folder, only_builder

LOCK = Path(__file__).resolve().parent / "debian.lock"
RELEASE, RELEASE_NUMBER = "trixie", "13"
# Python and the libraries that it and the compiled wheels are linked to; base-files names the release of Debian.
PACKAGES = (
    "base-files", "gcc-14-base", "libbz2-1.0", "libc6", "libexpat1", "libffi8", "libgcc-s1", "liblzma5",
    "libpython3.13-minimal",
    "libpython3.13-stdlib", "libssl3t64", "libstdc++6", "libuuid1", "libzstd1", "python3.13-minimal", "zlib1g",
)  # fmt: skip
HEADER = f"# Debian {RELEASE}: architecture, name, version, SHA-256. Written by `python -m shipping lock`.\n"


@dataclass(frozen=True)
class Package:
    """One package of the lock."""

    architecture: str
    name: str
    version: str
    sha256: str


def locked(platform: Platform) -> tuple[Package, ...]:
    """The packages of the lock for a platform, in its order."""
    lines = LOCK.read_text().splitlines()
    packages = (Package(*line.split()) for line in lines if line and not line.startswith("#"))
    return tuple(package for package in packages if package.architecture == platform.architecture)


def fetched(platform: Platform, *, exactly: bool = True) -> list[Path]:
    """The files of the locked packages for a platform, fetched once.

    Without `exactly` the archive's present version takes the place of one that the archive has no more.
    """
    folder = cache_folder() / "debian"
    folder.mkdir(parents=True, exist_ok=True)
    with only_builder("debian"):
        packages = locked(platform)
        missing = [package for package in packages if not kept_file(folder, package.sha256).is_file()]
        gone: dict[str, Path] = _fetch(missing, folder) if missing else {}
    if gone and exactly:
        raise BuildError(
            f"apt-get finds no {', '.join(gone)} of the version in {LOCK.name}: its sources must be those of a release "
            f"of Debian with its security updates; where Debian has a newer version, run `python -m shipping lock`"
        )
    return [gone.get(package.name) or kept_file(folder, package.sha256) for package in packages]


def _fetch(packages: list[Package], folder: Path) -> dict[str, Path]:
    """Brings packages into the folder. Those whose version is gone come in the archive's present one, by name."""
    requirements = {package.name: f"{package.name}={package.version}" for package in packages}
    architecture = packages[0].architecture
    files = downloaded(requirements, folder, architecture, RELEASE)
    gone: dict[str, Path] = {}
    for package in packages:
        if package.name not in files:
            say(f"{package.name} {package.version} is no longer in the archive")
            gone |= downloaded({package.name: package.name}, folder, architecture, RELEASE)
        elif files[package.name] != kept_file(folder, package.sha256):
            files[package.name].unlink()
            raise BuildError(f"{package.name} {package.version}: the file has not the SHA-256 {package.sha256}")
    return gone


def main(arguments: list[str]) -> int:
    """`python -m shipping lock`: writes debian.lock anew, with the versions that apt-get finds now."""
    argparse.ArgumentParser(prog="python -m shipping lock", description=__doc__).parse_args(arguments)
    folder = cache_folder() / "debian"
    folder.mkdir(parents=True, exist_ok=True)
    lines = [line for platform in PLATFORMS for line in _lines(platform, folder)]
    LOCK.write_text(HEADER + "".join(lines))
    return 0


def _lines(platform: Platform, folder: Path) -> list[str]:
    files = downloaded({name: name for name in PACKAGES}, folder, platform.architecture, RELEASE)
    if missing := [name for name in PACKAGES if name not in files]:
        raise BuildError(f"apt-get finds no {', '.join(missing)} for {platform.architecture}")
    packages = [(name, files[name]) for name in PACKAGES]
    return [
        f"{platform.architecture} {name} {field_of(file, 'Version')} {sha256_of(file)}\n" for name, file in packages
    ]

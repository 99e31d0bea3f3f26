"""Packages of Debian's archive as files, named after their hash; fetched by apt-get, not installed."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.errors import BuildError, CannotRunError
from testbed.programs import cache_folder, only_builder

# As root apt-get downloads as a user of its own, who cannot write to the cache folder.
UNCONFINED = ("-o", "APT::Sandbox::User=")


def kept_file(folder: Path, sha256: str) -> Path:
    """Where a package of this hash lies in a folder."""
    return folder / f"{sha256}.deb"


def downloaded(wanted: Mapping[str, str], folder: Path, architecture: str = "", release: str = "") -> dict[str, Path]:
    """The files of packages, by name; asks with the lists that are there, then with fresh ones.

    `wanted` has what apt-get shall be asked for, such as `zlib1g=1.2.13`. What the archive does not have is left out.
    `architecture` and `release` of Debian are this machine's by default. This machine's configuration of apt and dpkg
    is not changed.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise CannotRunError("apt-get and dpkg-deb are needed to fetch packages of Debian")
    fresh = _own_lists(folder / f"apt-{release or 'own'}-{architecture or 'native'}", architecture)
    if release:
        fresh += _own_sources(folder, release)
    packages = _asked(fresh if architecture or release else [], list(wanted.values()), folder) if wanted else {}
    if missing := _missing(wanted, packages):
        _run(["apt-get", *fresh, *UNCONFINED, "update", "--quiet"], folder)
        packages |= _asked(fresh, missing, folder)
        # One by one: apt-get fetches nothing at all when one of its arguments is unknown.
        for request in _missing(wanted, packages):
            packages |= _asked(fresh, [request], folder)
    return packages


def _missing(wanted: Mapping[str, str], packages: Mapping[str, Path]) -> list[str]:
    return [request for name, request in wanted.items() if name not in packages]


def _own_lists(state: Path, architecture: str) -> list[str]:
    """Options by which apt-get keeps its lists of this architecture in the folder `state`."""
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    settings = [f"Dir::State::Lists={state / 'lists'}", f"Dir::Cache={state}", "Acquire::Languages=none"]
    settings += ["Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false"]
    if architecture:
        settings += [f"APT::Architecture={architecture}", f"APT::Architectures={architecture}"]
    return [option for setting in settings for option in ("-o", setting)]


def _own_sources(folder: Path, release: str) -> list[str]:
    """Options by which apt-get asks the archives of this machine for another release of Debian.

    Archives of others are left out: their suites have other names. apt-get checks the signature of the release, for
    which this machine needs a keyring of Debian with its keys.
    """
    own = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    fields = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    listed = _run(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"], folder).stdout.splitlines()
    suites = {(uri, suite) for uri, suite, component in map(str.split, listed) if component == "main"}
    ours = sorted((uri, suite) for uri, suite in suites if suite == own or suite.startswith(f"{own}-"))
    sources = folder / f"{release}.list"
    sources.write_text("".join(f"deb {uri} {release}{suite.removeprefix(own)} main\n" for uri, suite in ours))
    return ["-o", f"Dir::Etc::SourceList={sources}", "-o", "Dir::Etc::SourceParts=-"]


def unpacked(packages: Sequence[str]) -> Path:
    """The root of packages in the cache folder, named after the first; fetched once. Installing could start a service.

    Only what this machine lacks has to be named: no dependency is followed.
    """
    folder = cache_folder() / packages[0]
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with only_builder(packages[0]):
            if not folder.is_dir():
                _unpack(packages, folder)
    return folder


def _unpack(packages: Sequence[str], folder: Path) -> None:
    """Works beside the final place and renames: an interrupted fetch is never taken for a whole one."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as temporary:
        files = downloaded({name: name for name in packages}, Path(temporary))
        if missing := [name for name in packages if name not in files]:
            raise BuildError(f"apt-get finds no package {', '.join(missing)}: its sources must be those of Debian")
        root = Path(temporary) / "root"
        for file in files.values():
            subprocess.run(["dpkg-deb", "--extract", file, root], check=True)
        root.rename(folder)


def _asked(options: list[str], wanted: list[str], folder: Path) -> dict[str, Path]:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        _run(["apt-get", *options, *UNCONFINED, "download", "--quiet", *wanted], Path(temporary))
        files = {field_of(file, "Package"): file for file in Path(temporary).glob("*.deb")}
        return {name: file.rename(kept_file(folder, sha256_of(file))) for name, file in files.items()}


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def sha256_of(file: Path) -> str:
    """The hash of a file in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def field_of(file: Path, name: str) -> str:
    """A field of a package's control file, such as `Version`."""
    done = subprocess.run(["dpkg-deb", "--field", file, name], capture_output=True, text=True, check=True)
    return done.stdout.strip()

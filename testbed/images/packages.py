"""Installed Python packages as an image layer: the ones that one project needs at run time, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from testbed.images.layers import FILE, Entry, files_under
from testbed.images.roots import shared_libraries

SITE_PACKAGES = "opt/site-packages"


def runtime_packages(project: str) -> list[Distribution]:
    """The project's distribution and all it requires, transitively, in this environment; no extras, no dev groups."""
    found: dict[str, Distribution] = {}
    wanted = [project]
    while wanted:
        name = canonicalize_name(wanted.pop())
        if name not in found:
            found[name] = distribution(name)
            wanted += _required_by(found[name])
    return list(found.values())


def package_entries(project: str, sources: Path) -> list[Entry]:
    """Everything below /opt/site-packages: the packages as installed, the project itself from its `sources` folder."""
    installed = {
        path.relative_to(home).as_posix(): path
        for package in runtime_packages(project)
        for path, home in _files(package)
    }
    libraries = shared_libraries([path for path in installed.values() if ".so" in path.suffixes])
    return [
        *(Entry(f"{SITE_PACKAGES}/{name}", FILE, path.read_bytes()) for name, path in installed.items()),
        *files_under(sources, f"{SITE_PACKAGES}/{sources.name}", lambda path: path.suffix not in {".pyc", ".so"}),
        *libraries,
    ]


def _required_by(package: Distribution) -> Iterator[str]:
    for line in package.requires or []:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name
            # an extra that is asked for brings its own requirements
            for extra in requirement.extras:
                yield from _required_with(distribution(requirement.name), extra)


def _required_with(package: Distribution, extra: str) -> Iterator[str]:
    for line in package.requires or []:
        requirement = Requirement(line)
        if requirement.marker is not None and requirement.marker.evaluate({"extra": extra}):
            yield requirement.name


def _files(package: Distribution) -> Iterator[tuple[Path, Path]]:
    """Files of an installed package with the folder it is installed in; scripts and compiled modules left out."""
    home = Path(str(package.locate_file(""))).resolve()
    for file in package.files or []:
        path = Path(str(package.locate_file(file))).resolve()
        if path.is_file() and path.is_relative_to(home) and path.suffix not in {".pyc", ".pth"}:
            yield path, home

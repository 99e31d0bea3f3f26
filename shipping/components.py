"""The packages in the image, as both forms of the SBOM describe them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from shipping.debian import RELEASE_NUMBER
from shipping.licences import Licence, author_of, copyright_files, licence_texts, of_debian, of_wheel
from shipping.wheel_parts import Part, parts_of
from shipping.wheels import package_name
from testbed.debian_archive import field_of, sha256_of

DEBIAN = "Organization: Debian"


@dataclass(frozen=True)
class Component:
    """One package in the image. `sha256` is that of the package file; Hermetic's own code has none.

    `supplier` and `download` as SPDX writes them, empty where the package does not say. `parts`: what is compiled into
    it. `source`: name and version of Debian's source package. `notices`: the texts of its licence files.
    """

    name: str
    version: str
    url: str
    sha256: str = ""
    licence: Licence = field(default_factory=Licence)
    supplier: str = ""
    download: str = ""
    parts: tuple[Part, ...] = ()
    source: str = ""
    notices: tuple[str, ...] = ()


def debian_components(packages: Iterable[Path]) -> Iterator[Component]:
    """One component for each package file of Debian. The package URL has the qualifiers that scanners match by."""
    packages = list(packages)
    files = copyright_files(packages)
    for package in packages:
        name, version, architecture = (field_of(package, key) for key in ("Package", "Version", "Architecture"))
        source, source_version = source_of(package)
        upstream = "" if (source, source_version) == (name, version) else _upstream(source, source_version, version)
        distro = f"debian-{RELEASE_NUMBER}"
        url = f"pkg:deb/debian/{quoted(name)}@{quoted(version)}?arch={architecture}&distro={distro}{upstream}"
        download = f"https://snapshot.debian.org/package/{quoted(source)}/{quoted(source_version)}/"
        yield Component(
            name,
            version,
            url,
            sha256_of(package),
            of_debian(files[name]),
            DEBIAN,
            download,
            source=f"{source} {source_version}",
            notices=(files[name].text,),
        )


def source_of(package: Path) -> tuple[str, str]:
    """Name and version of the source package, by the control field Source; by default those of the package."""
    source, _, bracketed = field_of(package, "Source").partition(" ")
    version = bracketed.strip("() ") or field_of(package, "Version")
    return source or field_of(package, "Package"), version


def wheel_components(wheels: Iterable[Path]) -> Iterator[Component]:
    """One component for each wheel."""
    for wheel in sorted(wheels):
        name, version = package_name(wheel), wheel.name.split("-")[1]
        yield Component(
            name,
            version,
            f"pkg:pypi/{name}@{quoted(version)}",
            sha256_of(wheel),
            of_wheel(wheel),
            author_of(wheel),
            f"https://pypi.org/project/{name}/{quoted(version)}/",
            parts_of(wheel, name),
            notices=licence_texts(wheel),
        )


def _upstream(source: str, source_version: str, version: str) -> str:
    """The qualifier as Syft writes it: with the version where that is another than the package's."""
    return f"&upstream={quoted(source)}" + ("" if source_version == version else f"%40{quoted(source_version)}")


def quoted(text: str) -> str:
    """As package URLs write it: a colon stays as it is."""
    return quote(text, safe=":~._-")

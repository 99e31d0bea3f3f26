"""The inventory of a release, in `sbom/`: SBOMs, advisories that do not apply, and the texts of all licences.

The image has an SBOM for each platform, the command line one for each Python: compiled wheels are other files for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hermetic import __version__
from shipping.components import Component, debian_components, wheel_components
from shipping.debian import fetched
from shipping.licences import Licence
from shipping.notices import third_party_licences
from shipping.platforms import AMD64, PLATFORMS
from shipping.revision import LICENCE, SUPPLIER, TITLE, Revision
from shipping.sbom import COMMAND_LINE, IMAGE, Contents, cyclonedx, spdx
from shipping.vex import openvex
from shipping.wheels import image_wheels, locked_wheels
from testbed.images.oci import Image, ImageIndex, digest_of

VEX = f"sbom/{TITLE}-{__version__}.openvex.json"
LICENCES = "sbom/THIRD_PARTY_LICENSES.txt"


@dataclass(frozen=True)
class Inventory:
    """The files by their names in the bundle, and every package that is in an artifact, each once."""

    files: Mapping[str, bytes]
    components: tuple[Component, ...]


def spdx_name(image: Image) -> str:
    """The file of the SBOM in SPDX of an image for one platform."""
    return f"sbom/{TITLE}-{__version__}-{image.architecture}.spdx.json"


def cyclonedx_name(image: Image) -> str:
    """The file of the SBOM in CycloneDX of an image for one platform."""
    return f"sbom/{TITLE}-{__version__}-{image.architecture}.cdx.json"


def inventory_of(
    image: Image | ImageIndex, command_lines: Mapping[str, bytes], revision: Revision, *, exactly: bool = True
) -> Inventory:
    """The inventory of an image of this commit and of its command lines, by Python; `exactly` as in `fetched`."""
    contents = [(platform, contents_of(platform, revision, exactly=exactly)) for platform in image.images]
    programs = {python: command_line_contents(program, python, revision) for python, program in command_lines.items()}
    listed = (*(document for _, document in contents), *programs.values())
    components = {
        (component.url, component.sha256): component for document in listed for component in document.components
    }
    files = {
        **{spdx_name(platform): spdx(document) for platform, document in contents},
        **{cyclonedx_name(platform): cyclonedx(document) for platform, document in contents},
        **dict(_command_line_files(programs)),
        VEX: openvex(image, revision, tuple(document for _, document in contents)),
        LICENCES: third_party_licences(components.values()),
    }
    return Inventory(files, tuple(components.values()))


def _command_line_files(programs: Mapping[str, Contents]) -> Iterator[tuple[str, bytes]]:
    for python, contents in programs.items():
        stem = f"sbom/{TITLE}-{__version__}-cli-cp{python.replace('.', '')}"
        yield f"{stem}.spdx.json", spdx(contents)
        yield f"{stem}.cdx.json", cyclonedx(contents)


def contents_of(image: Image, revision: Revision, *, exactly: bool = True) -> Contents:
    """What an image of this commit for one platform contains; `exactly` as in `fetched`."""
    platform = next(candidate for candidate in PLATFORMS if candidate.architecture == image.architecture)
    packages = debian_components(fetched(platform, exactly=exactly))
    components = _own(revision), *packages, *wheel_components(image_wheels(platform))
    return Contents(IMAGE, TITLE, __version__, image.digest, revision, components)


def command_line_contents(program: bytes, python: str, revision: Revision) -> Contents:
    """What the command line for this Python contains; it brings no Python and no library of the system."""
    components = _own(revision), *wheel_components(locked_wheels(AMD64, python))
    return Contents(COMMAND_LINE, f"{TITLE}-cli", __version__, digest_of(program), revision, components)


def _own(revision: Revision) -> Component:
    return Component(
        TITLE,
        __version__,
        f"pkg:pypi/{TITLE}@{__version__}",
        licence=Licence(LICENCE),
        supplier=SUPPLIER,
        download=f"git+{revision.source}@{revision.commit}" if revision.commit and revision.source else "",
    )

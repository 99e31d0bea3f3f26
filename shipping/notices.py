"""The licences and notices of everything that ships, as one text that can be read without unpacking a layer."""

from __future__ import annotations

from collections.abc import Iterable

from shipping.components import Component
from shipping.licences import UNKNOWN

RULE = "=" * 100
HEADER = """\
Licences of the packages in the image and in the command line of Hermetic, as each package declares them, with the
texts that it brings along.

Packages of Debian are unchanged but for the files that the image leaves out. Their sources, those of GPL and LGPL
included, are at the address that is given with each package. A wheel's sources are at the address of its project.
"""


def third_party_licences(components: Iterable[Component]) -> bytes:
    """One section for each package that is not Hermetic's own, and for what is compiled into it."""
    packages = {(component.name, component.version): component for component in components if component.sha256}
    sections = [_section(component) for component in packages.values()]
    return "\n".join([HEADER, *sections]).encode()


def _section(component: Component) -> str:
    lines = [RULE, f"{component.name} {component.version}", f"Licence: {component.licence.expression}"]
    if component.supplier:
        lines.append(f"Supplier: {component.supplier.partition(': ')[2]}")
    lines.append(f"Source: {component.download}")
    if component.parts:
        lines.append("Contains:")
        lines += [
            f"  {part.name} {part.version}: {'not declared' if part.licence == UNKNOWN else part.licence}"
            for part in component.parts
        ]
    return "\n".join([*lines, RULE, *component.notices]) + "\n"

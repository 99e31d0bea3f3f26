"""What is compiled into a wheel, by the SBOMs that wheels bring along.

https://peps.python.org/pep-0770/: they are in `NAME.dist-info/sboms/`. Some wheels have them, in CycloneDX.
BUNDLED names what the other wheels contain and do not say; a test compares it with the libraries themselves. What is
named there was read from one version of the wheel, and another version is refused until it is read again.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shipping.licences import UNKNOWN, valid_expression
from testbed.errors import BuildError

SBOM = re.compile(r"[^/]+\.dist-info/sboms/[^/]+\.json")


@dataclass(frozen=True)
class Part:
    """A library inside a wheel. `sha256`: of its source archive, empty where it is not recorded."""

    name: str
    version: str
    url: str
    licence: str = UNKNOWN
    sha256: str = ""


@dataclass(frozen=True)
class Bundled:
    """What a wheel of this version contains, and the file of its project that says so."""

    version: str
    source: str
    parts: tuple[Part, ...]


BUNDLED = {
    "aiohttp": Bundled(
        "3.14.5",
        "vendor/llhttp/package.json in the source archive of aiohttp",
        (Part("llhttp", "9.4.2", "pkg:github/nodejs/llhttp@v9.4.2", "MIT"),),
    ),
    "pyyaml": Bundled(
        "6.0.3",
        "the version in the library: https://github.com/yaml/pyyaml links its wheels with libyaml",
        (Part("libyaml", "0.2.5", "pkg:generic/libyaml@0.2.5", "MIT"),),
    ),
}


def parts_of(wheel: Path, name: str) -> tuple[Part, ...]:
    """The libraries in a wheel, in order of their package URLs, each once.

    Raises BuildError for a version of a wheel whose libraries BUNDLED does not name.
    """
    with zipfile.ZipFile(wheel) as archive:
        documents = [json.loads(archive.read(file)) for file in archive.namelist() if SBOM.fullmatch(file)]
    parts = {part.url: part for document in documents for part in _components(document)}
    if (bundled := BUNDLED.get(name)) is not None:
        version = wheel.name.split("-")[1]
        if version != bundled.version:
            raise BuildError(
                f"shipping/wheel_parts.py names the libraries in {name} {bundled.version}, and the lock has {version}: "
                f"read them again from {bundled.source}"
            )
        parts |= {part.url: part for part in bundled.parts}
    return tuple(parts[url] for url in sorted(parts))


def _components(document: dict[str, Any]) -> Iterator[Part]:
    """The components of a CycloneDX document that are in the wheel: what only its build used is excluded there."""
    for component in document.get("components", []):
        if component.get("scope") == "excluded":
            continue
        url = component.get("purl", "").partition("?")[0]
        hashes = {entry["alg"]: entry["content"] for entry in component.get("hashes", [])}
        licences = [entry.get("expression", "") for entry in component.get("licenses", [])]
        expression = next((valid for text in licences if (valid := valid_expression(text))), UNKNOWN)
        yield Part(component["name"], component["version"], url, expression, hashes.get("SHA-256", ""))

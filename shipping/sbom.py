"""What the operator's image is made of, as SPDX 2.3 and as CycloneDX 1.6, both in JSON.

The components are the files that the image was built from: Debian packages and wheels of the locks, each with its
SHA-256, package URL and declared licence (shipping/licences.py), and Hermetic itself. The texts of licences without a
name of SPDX are in the document in SPDX alone; that in CycloneDX refers to them by the same names.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shipping.debian import RELEASE
from shipping.licences import REFERENCE, UNKNOWN, Licence, of_debian, of_wheel
from testbed.debian_archive import field_of, sha256_of

NAMESPACE = "https://hermetic.dev/sbom"


@dataclass(frozen=True)
class Component:
    """One package in the image. `sha256` is that of the package file; Hermetic's own code has none."""

    name: str
    version: str
    url: str
    sha256: str = ""
    licence: Licence = field(default_factory=Licence)


@dataclass(frozen=True)
class Contents:
    """The image, what is in it, and when the sources were last changed."""

    name: str
    version: str
    digest: str
    created: datetime
    components: tuple[Component, ...]

    @property
    def url(self) -> str:
        """The package URL of the image."""
        return f"pkg:oci/{self.name}@{quote(self.digest, safe='')}"

    @property
    def moment(self) -> str:
        """`created` as both formats write it."""
        return self.created.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def debian_components(packages: Iterable[Path]) -> Iterator[Component]:
    """One component for each package file of Debian."""
    packages = list(packages)
    licences = of_debian(packages)
    for package in packages:
        name, version, architecture = (field_of(package, one) for one in ("Package", "Version", "Architecture"))
        url = f"pkg:deb/debian/{_quoted(name)}@{_quoted(version)}?arch={architecture}&distro={RELEASE}"
        yield Component(name, version, url, sha256_of(package), licences[name])


def wheel_components(wheels: Iterable[Path]) -> Iterator[Component]:
    """One component for each wheel."""
    for wheel in sorted(wheels):
        name, version = wheel.name.split("-")[:2]
        name = name.replace("_", "-").lower()
        yield Component(name, version, f"pkg:pypi/{name}@{_quoted(version)}", sha256_of(wheel), of_wheel(wheel))


def spdx(contents: Contents) -> bytes:
    """The document in SPDX 2.3."""
    image = Component(contents.name, contents.version, contents.url)
    packages = [_spdx_package("Image", image)]
    packages += [_spdx_package(f"Package-{number}", one) for number, one in enumerate(contents.components)]
    contained = [_relationship("Image", "CONTAINS", one["SPDXID"]) for one in packages[1:]]
    return _json(
        {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{contents.name}-{contents.version}",
            "documentNamespace": f"{NAMESPACE}/{contents.digest.replace(':', '-')}",
            "creationInfo": {"created": contents.moment, "creators": [f"Tool: hermetic-{contents.version}"]},
            "packages": packages,
            "hasExtractedLicensingInfos": _texts(contents.components),
            "relationships": [_relationship("DOCUMENT", "DESCRIBES", "SPDXRef-Image"), *contained],
        }
    )


def cyclonedx(contents: Contents) -> bytes:
    """The document in CycloneDX 1.6."""
    image = {
        "type": "container",
        "bom-ref": contents.url,
        "name": contents.name,
        "version": contents.version,
        "purl": contents.url,
        "hashes": [{"alg": "SHA-256", "content": contents.digest.removeprefix("sha256:")}],
    }
    components = [_cyclonedx_component(one) for one in contents.components]
    return _json(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{NAMESPACE}/{contents.digest}").urn,
            "version": 1,
            "metadata": {"timestamp": contents.moment, "component": image},
            "components": components,
            "dependencies": [{"ref": contents.url, "dependsOn": [one["bom-ref"] for one in components]}],
        }
    )


def _spdx_package(identifier: str, component: Component) -> dict[str, Any]:
    package = {
        "SPDXID": f"SPDXRef-{identifier}",
        "name": component.name,
        "versionInfo": component.version,
        "supplier": "Organization: Debian" if component.url.startswith("pkg:deb/") else "NOASSERTION",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": component.licence.expression,
        "copyrightText": "NOASSERTION",
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": component.url}
        ],
    }
    if component.sha256:
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": component.sha256}]
    return package


def _texts(components: Iterable[Component]) -> list[dict[str, str]]:
    """What the LicenseRefs of the packages stand for, each once."""
    texts = {name: text for one in components for name, text in one.licence.texts.items()}
    return [
        {"licenseId": name, "name": name.removeprefix(REFERENCE), "extractedText": text}
        for name, text in sorted(texts.items())
    ]


def _relationship(one: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": f"SPDXRef-{one}", "relationshipType": kind, "relatedSpdxElement": other}


def _cyclonedx_component(component: Component) -> dict[str, Any]:
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": component.url,
        "name": component.name,
        "version": component.version,
        "purl": component.url,
    }
    if component.sha256:
        described["hashes"] = [{"alg": "SHA-256", "content": component.sha256}]
    if component.licence.expression != UNKNOWN:
        described["licenses"] = [{"expression": component.licence.expression}]
    return described


def _quoted(text: str) -> str:
    """As package URLs write it: a colon stays as it is."""
    return quote(text, safe=":~._-")


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()

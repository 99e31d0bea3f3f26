"""What the operator's image or the command line is made of, as SPDX 2.3 and as CycloneDX 1.6, both in JSON.

The components are the files that it was built from: Debian packages and wheels of the locks, each with its
SHA-256, package URL and declared licence (shipping/licences.py), the libraries in wheels
(shipping/wheel_parts.py), and Hermetic itself. In an image the release of Debian is a component too, because scanners
that read an SBOM take it from there. The texts of licences without a name of SPDX are in the document in SPDX alone;
that in CycloneDX refers to them by the same names.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from shipping.components import DEBIAN, Component
from shipping.debian import RELEASE, RELEASE_NUMBER
from shipping.licences import REFERENCE, UNKNOWN
from shipping.revision import HOME, SUPPLIER, Revision
from shipping.wheel_parts import Part

NAMESPACE = f"{HOME}/sbom"


@dataclass(frozen=True)
class Kind:
    """What a document describes: `purpose` in SPDX, `type` in CycloneDX, and the type of its package URL."""

    purpose: str
    type: str
    url_type: str
    has_system: bool


IMAGE = Kind("CONTAINER", "container", "oci", has_system=True)
COMMAND_LINE = Kind("APPLICATION", "application", "generic", has_system=False)


@dataclass(frozen=True)
class Contents:
    """An image for one platform or a command line, what is in it, and the commit that it was built from."""

    kind: Kind
    name: str
    version: str
    digest: str
    revision: Revision
    components: tuple[Component, ...]

    @property
    def url(self) -> str:
        """The package URL: of an image by its digest, of another file by version and checksum."""
        if self.kind is IMAGE:
            return image_url(self.name, self.digest)
        return f"pkg:{self.kind.url_type}/{self.name}@{quote(self.version, safe='')}?checksum={self.digest}"


def image_url(name: str, digest: str) -> str:
    """The package URL of an image, or of an index of images."""
    return f"pkg:oci/{name}@{quote(digest, safe='')}"


def spdx(contents: Contents) -> bytes:
    """The document in SPDX 2.3."""
    described = Component(contents.name, contents.version, contents.url, supplier=SUPPLIER)
    packages = [_spdx_package("Described", described, contents.kind.purpose)]
    contained = []
    if contents.kind.has_system:
        system = Component("debian", RELEASE_NUMBER, "", supplier=DEBIAN)
        packages.append(_spdx_package("System", system, "OPERATING-SYSTEM"))
        contained.append(_relationship("Described", "CONTAINS", "SPDXRef-System"))
    for number, component in enumerate(contents.components):
        packages.append(_spdx_package(f"Package-{number}", component, "LIBRARY"))
        contained.append(_relationship("Described", "CONTAINS", f"SPDXRef-Package-{number}"))
        for position, part in enumerate(component.parts):
            packages.append(_spdx_part(f"Part-{number}-{position}", part))
            contained.append(_relationship(f"Package-{number}", "CONTAINS", f"SPDXRef-Part-{number}-{position}"))
    return _json(
        {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"{contents.name}-{contents.version}",
            "documentNamespace": f"{NAMESPACE}/{contents.digest.replace(':', '-')}",
            "creationInfo": {"created": contents.revision.moment, "creators": [f"Tool: hermetic-{contents.version}"]},
            "packages": packages,
            "hasExtractedLicensingInfos": _texts(contents.components),
            "relationships": [_relationship("DOCUMENT", "DESCRIBES", "SPDXRef-Described"), *contained],
        }
    )


def cyclonedx(contents: Contents) -> bytes:
    """The document in CycloneDX 1.6."""
    described = {
        "type": contents.kind.type,
        "bom-ref": contents.url,
        "name": contents.name,
        "version": contents.version,
        "purl": contents.url,
        "hashes": [{"alg": "SHA-256", "content": contents.digest.removeprefix("sha256:")}],
    }
    system = {"type": "operating-system", "bom-ref": "os", "name": "debian", "version": RELEASE_NUMBER}
    systems = [{**system, "description": f"Debian {RELEASE}"}] if contents.kind.has_system else []
    components = [_cyclonedx_component(component) for component in contents.components]
    return _json(
        {
            "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{NAMESPACE}/{contents.digest}").urn,
            "version": 1,
            "metadata": {"timestamp": contents.revision.moment, "component": described},
            "components": [*systems, *components],
            "dependencies": [{"ref": contents.url, "dependsOn": [part["bom-ref"] for part in components]}],
        }
    )


def _spdx_package(identifier: str, component: Component, purpose: str) -> dict[str, Any]:
    package = {
        "SPDXID": f"SPDXRef-{identifier}",
        "name": component.name,
        "versionInfo": component.version,
        "supplier": component.supplier or UNKNOWN,
        "downloadLocation": component.download or UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": component.licence.expression,
        "copyrightText": UNKNOWN,
        "primaryPackagePurpose": purpose,
    }
    if component.source:
        package["sourceInfo"] = f"built from the source package {component.source}"
    return {**package, **_spdx_identity(component.url, component.sha256)}


def _spdx_part(identifier: str, part: Part) -> dict[str, Any]:
    return {
        "SPDXID": f"SPDXRef-{identifier}",
        "name": part.name,
        "versionInfo": part.version,
        "supplier": UNKNOWN,
        "downloadLocation": UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": UNKNOWN,
        "licenseDeclared": part.licence,
        "copyrightText": UNKNOWN,
        "primaryPackagePurpose": "LIBRARY",
        **_spdx_identity(part.url, part.sha256),
    }


def _spdx_identity(url: str, sha256: str) -> dict[str, Any]:
    identity: dict[str, Any] = {}
    if url:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url}
        identity["externalRefs"] = [reference]
    if sha256:
        identity["checksums"] = [{"algorithm": "SHA256", "checksumValue": sha256}]
    return identity


def _texts(components: Iterable[Component]) -> list[dict[str, str]]:
    """What the LicenseRefs of the packages stand for, each once."""
    texts = {name: text for component in components for name, text in component.licence.texts.items()}
    return [
        {"licenseId": name, "name": name.removeprefix(REFERENCE), "extractedText": text}
        for name, text in sorted(texts.items())
    ]


def _relationship(element: str, kind: str, other: str) -> dict[str, str]:
    return {"spdxElementId": f"SPDXRef-{element}", "relationshipType": kind, "relatedSpdxElement": other}


def _cyclonedx_component(component: Component) -> dict[str, Any]:
    described = _cyclonedx_library(component, component.url)
    if component.supplier:
        described["supplier"] = {"name": component.supplier.removeprefix("Organization: ")}
    if component.licence.expression != UNKNOWN:
        described["licenses"] = [{"expression": component.licence.expression}]
    if component.parts:
        described["components"] = [_cyclonedx_part(component, part) for part in component.parts]
    return described


def _cyclonedx_part(component: Component, part: Part) -> dict[str, Any]:
    described = _cyclonedx_library(part, f"{component.url}#{part.url}")
    return described if part.licence == UNKNOWN else {**described, "licenses": [{"expression": part.licence}]}


def _cyclonedx_library(library: Component | Part, reference: str) -> dict[str, Any]:
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": reference,
        "name": library.name,
        "version": library.version,
        "purl": library.url,
    }
    if library.sha256:
        described["hashes"] = [{"alg": "SHA-256", "content": library.sha256}]
    return described


def _json(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()

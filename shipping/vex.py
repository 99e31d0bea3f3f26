"""Advisories that scanners report for the image and that do not apply to it, as OpenVEX.

https://github.com/openvex/spec/blob/main/OPENVEX-SPEC.md. A statement is here only with evidence that a test checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from shipping.revision import Revision
from shipping.sbom import NAMESPACE, Contents, image_url
from testbed.images.oci import Image, ImageIndex


@dataclass(frozen=True)
class NotAffected:
    """One vulnerability of a package whose vulnerable code is not in the image; `reason` says why."""

    vulnerability: str
    package: str
    reason: str


NOT_AFFECTED = (
    NotAffected(
        "CVE-2022-0563",
        "libuuid1",
        "The leak is in the programs chfn and chsh of util-linux where they are set-user-ID, by the release notes of "
        "util-linux 2.37.4. The image has libuuid.so.1 alone of that source package: "
        "https://security-tracker.debian.org/tracker/CVE-2022-0563",
    ),
)


def openvex(image: Image | ImageIndex, revision: Revision, contents: Sequence[Contents]) -> bytes:
    """The document about an image and what it contains on each platform."""
    document = {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": f"{NAMESPACE}/vex/{image.digest.replace(':', '-')}",
        "author": "Hermetic",
        "timestamp": revision.moment,
        "version": 1,
        "statements": [
            {
                "vulnerability": {"name": statement.vulnerability},
                "products": list(_products(image, contents, statement.package)),
                "status": "not_affected",
                "justification": "vulnerable_code_not_present",
                "impact_statement": statement.reason,
            }
            for statement in NOT_AFFECTED
        ],
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def _products(image: Image | ImageIndex, contents: Sequence[Contents], package: str) -> Iterator[dict[str, Any]]:
    """The index with the package of every platform, and each platform's image with its own."""
    packages = {
        document.url: [component.url for component in document.components if component.name == package]
        for document in contents
    }
    index = {image_url(contents[0].name, image.digest): [url for urls in packages.values() for url in urls]}
    for product, urls in {**index, **packages}.items():
        yield {"@id": product, "subcomponents": [{"@id": url} for url in urls]}

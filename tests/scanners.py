"""What a scanner of images finds in a root, by the documented rules of Trivy.

The operating system: `etc/debian_version`
(https://github.com/aquasecurity/trivy/blob/main/pkg/fanal/analyzer/os/debian/debian.go). Packages of an image without
dpkg: the control files of `var/lib/dpkg/status.d`, except `*.md5sums`; advisories are looked up by the source package
(pkg/fanal/analyzer/pkg/dpkg/dpkg.go). Python packages: `*.dist-info/METADATA`
(pkg/fanal/analyzer/language/python/packaging/packaging.go).
"""

from __future__ import annotations

import email
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Scan:
    """The release of Debian, empty where it is not recognised; packages by name with version and source; wheels."""

    release: str
    packages: dict[str, tuple[str, str]]
    wheels: dict[str, str]


def scanned_by_rules(root: Path) -> Scan:
    """What a scanner finds below the root of an image."""
    version = root / "etc/debian_version"
    controls = [
        email.message_from_string(file.read_text())
        for file in sorted((root / "var/lib/dpkg/status.d").glob("*"))
        if file.suffix != ".md5sums"
    ]
    packages = {
        control["Package"]: (control["Version"], (control["Source"] or control["Package"]).partition(" ")[0])
        for control in controls
    }
    metadata = [email.message_from_string(file.read_text()) for file in root.rglob("*.dist-info/METADATA")]
    wheels = {re.sub(r"[-_.]+", "-", fields["Name"]).lower(): fields["Version"] for fields in metadata}
    return Scan(version.read_text().strip() if version.is_file() else "", packages, wheels)

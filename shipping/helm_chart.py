"""The packaged chart as `helm push` puts it into a registry, so that its digest can be signed before it is pushed."""

from __future__ import annotations

from dataclasses import dataclass

from hermetic import __version__
from hermetic.cli.bundle.helm_chart import CONFIG_TYPE, CONTENT_TYPE, chart_documents
from shipping.oci_artifacts import Artifact, Blob


@dataclass(frozen=True)
class Chart:
    """The package, and the manifest under which a registry has it."""

    package: bytes
    artifact: Artifact

    @property
    def digest(self) -> str:
        """`sha256:...` that `helm push` prints."""
        return self.artifact.digest


def chart_artifact(package: bytes) -> Chart:
    """The artifact of a package (.tgz) of this version."""
    config, manifest = chart_documents(package)
    blobs = (Blob(CONFIG_TYPE, config), Blob(CONTENT_TYPE, package))
    return Chart(package, Artifact(manifest, blobs, __version__, CONFIG_TYPE))

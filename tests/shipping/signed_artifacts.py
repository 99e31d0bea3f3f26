"""Image, chart and all that refers to them, as a release has them, of an image of two files and with keys of a test."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hermetic.cli.bundle.pushes import CHART as CHART_NAME
from hermetic.cli.bundle.pushes import IMAGE as IMAGE_NAME
from shipping.artifacts import artifact_files
from shipping.bundle import packaged_chart
from shipping.helm_chart import Chart, chart_artifact
from shipping.inventory import VEX, cyclonedx_name, spdx_name
from shipping.provenance import provenance
from shipping.revision import Revision
from shipping.signer import Signer
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, ImageIndex
from tests.bundles import VERSION

REVISION = Revision("0123456789abcdef0123456789abcdef01234567", datetime(2026, 1, 2, tzinfo=UTC))
IMAGE = ImageIndex(
    tuple(
        Image(IMAGE_NAME, VERSION, (layer_of_files({"a": architecture}),), architecture=architecture)
        for architecture in ("amd64", "arm64")
    )
)
DOCUMENTS = {
    **{spdx_name(image): f'{{"name": "{image.architecture}"}}'.encode() for image in IMAGE.images},
    **{cyclonedx_name(image): b"{}" for image in IMAGE.images},
    VEX: b"{}",
}


class Keys(NamedTuple):
    """A private key with its public key and its certificate."""

    private: Path
    public: Path
    certificate: Path


def new_keys(folder: Path) -> Keys:
    """A key of P-256, as docs/supply-chain.md makes it."""
    folder.mkdir(parents=True)
    keys = Keys(folder / "platform.key", folder / "platform.pub", folder / "platform.crt")
    usage = ("-addext", "keyUsage=critical,digitalSignature", "-addext", "extendedKeyUsage=codeSigning")
    subject = ("-subj", "/C=DE/ST=Hessen/O=Contoso/CN=platform", "-addext", "basicConstraints=critical,CA:FALSE")
    for command in (
        ("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", keys.private),
        ("pkey", "-in", keys.private, "-pubout", "-out", keys.public),
        ("req", "-x509", "-new", "-key", keys.private, "-days", "365", *subject, *usage, "-out", keys.certificate),
    ):
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    return keys


def new_chart() -> Chart:
    """The chart of this checkout, which names REVISION."""
    return chart_artifact(packaged_chart(REVISION))


def statement(chart: Chart) -> dict[str, Any]:
    """The provenance of IMAGE and of the chart."""
    digests = {IMAGE_NAME: IMAGE.digest, CHART_NAME: chart.digest}
    digests |= {f"{IMAGE_NAME}/linux/{image.architecture}": image.digest for image in IMAGE.images}
    subjects = {name: digest.partition(":")[2] for name, digest in digests.items()}
    return provenance(subjects, "bundle", REVISION, (), {"requirements.lock": "0" * 64})


def artifacts(chart: Chart, signer: Signer | None) -> dict[str, bytes]:
    """The files of artifacts/."""
    return artifact_files(IMAGE, chart, DOCUMENTS, statement(chart), REVISION, signer)


def image_digests() -> list[str]:
    """Of the index and of the image of each platform."""
    return [IMAGE.digest, *(image.digest for image in IMAGE.images)]


def references(host: str, chart: Chart) -> list[str]:
    """Of everything that is signed, in the registry."""
    return [*(f"{host}/{IMAGE_NAME}@{digest}" for digest in image_digests()), f"{host}/{CHART_NAME}@{chart.digest}"]


def tags(chart: Chart) -> Iterator[tuple[str, str]]:
    """Every tag of the layout, with where it belongs in the registry."""
    yield IMAGE.tag, f"{IMAGE_NAME}:{IMAGE.tag}"
    yield f"chart-{IMAGE.tag}", f"{CHART_NAME}:{IMAGE.tag}"
    names = [(IMAGE_NAME, digest) for digest in image_digests()]
    for repository, digest in (*names, (CHART_NAME, chart.digest)):
        for suffix in ("sig", "att"):
            tag = f"{digest.replace(':', '-')}.{suffix}"
            yield tag, f"{repository}:{tag}"

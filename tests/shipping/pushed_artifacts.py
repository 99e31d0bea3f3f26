"""Image, chart and all that refers to them, pushed into a registry by ORAS; and images with other signatures."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hermetic.cli.bundle.layout import ARTIFACTS
from hermetic.weights.oci import blob_name
from shipping.helm_chart import Chart
from shipping.layout import layout_files
from shipping.oci_artifacts import Artifact
from shipping.signer import Signer
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, as_json
from testbed.programs import programs
from tests.bundles import VERSION
from tests.oci_images import write_layout
from tests.shipping.signed_artifacts import IMAGE, IMAGE_NAME, artifacts, tags


def push_release(folder: Path, host: str, chart: Chart, signer: Signer) -> None:
    """Pushes IMAGE, the chart and all that refers to them, as docs/supply-chain.md says."""
    over = {name.removeprefix(ARTIFACTS): content for name, content in artifacts(chart, signer).items()}
    layout = write_layout(folder, {**layout_files(IMAGE), **over})
    for source, target in tags(chart):
        push(layout, source, f"{host}/{target}")


def push(layout: Path, tag: str, target: str) -> None:
    """Pushes what a layout has under a tag, with everything that refers to it."""
    oras("cp", "--recursive", "--from-oci-layout", f"{layout}:{tag}", target)


def oras(*arguments: str) -> str:
    """What ORAS prints. An error fails the test."""
    done = subprocess.run([programs("oras")["oras"], *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def another_image(content: str, repository: str = IMAGE_NAME) -> Image:
    """An image of one file that has this content."""
    return Image(repository, VERSION, (layer_of_files({"a": content}),))


def named_subject(image: Image) -> dict[str, Any]:
    """An image as statements name it."""
    return {"name": image.repository, "digest": {"sha256": image.digest.removeprefix("sha256:")}}


def push_with(image: Image, signed: Sequence[Artifact], folder: Path, host: str) -> str:
    """Pushes an image with what claims to be its signatures. Returns its reference."""
    blobs = {blob.digest: blob.content for artifact in signed for blob in artifact.blobs}
    blobs |= {artifact.digest: artifact.manifest for artifact in signed}
    files = layout_files(image)
    index = json.loads(files["index.json"])
    index["manifests"] += [artifact.entry() for artifact in signed]
    files |= {"index.json": as_json(index), **{blob_name(digest): blob for digest, blob in blobs.items()}}
    layout = write_layout(folder, files)
    for tag in (image.tag, *(artifact.tag for artifact in signed if artifact.tag)):
        push(layout, tag, f"{host}/{image.repository}:{tag}")
    return f"{host}/{image.repository}@{image.digest}"

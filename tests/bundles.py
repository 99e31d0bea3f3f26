"""A small bundle, whole and signed where a key is given, and ways to damage it."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from hermetic.cli.bundle.layout import BLOBS, CHECKSUMS, SCHEMA, SIGNATURE, checksums, sign_checksums
from hermetic.signing.keys import SigningKey
from shipping.layout import layout_files
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, ImageIndex, as_json

VERSION = "0.1.0"
IMAGE = Image("hermetic", VERSION, (layer_of_files({"a": "b"}),), architecture="amd64")
ARM_IMAGE = Image("hermetic", VERSION, (layer_of_files({"a": "c"}), IMAGE.layers[0]), architecture="arm64")
IMAGE_INDEX = ImageIndex((IMAGE, ARM_IMAGE))
MANIFEST = BLOBS + IMAGE.digest.removeprefix("sha256:")
LAYER = BLOBS + IMAGE.layers[0].digest.removeprefix("sha256:")


def content() -> dict[str, bytes]:
    """Every file but checksums and signature."""
    entry = {"mediaType": "", "digest": IMAGE.digest, "size": len(IMAGE.manifest)}
    config = BLOBS + hashlib.sha256(IMAGE.config).hexdigest()
    return {
        "bundle.json": as_json({"schema": SCHEMA, "version": VERSION, "image": IMAGE.by_digest}),
        "docs/a.md": b"text\n",
        "oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": as_json({"schemaVersion": 2, "manifests": [entry]}),
        MANIFEST: IMAGE.manifest,
        config: IMAGE.config,
        LAYER: IMAGE.layers[0].tar,
    }


def index_content() -> dict[str, bytes]:
    """The same of an image that is an index of two platforms."""
    description = as_json({"schema": SCHEMA, "version": VERSION, "image": IMAGE_INDEX.by_digest})
    return {"bundle.json": description, "docs/a.md": b"text\n", **layout_files(IMAGE_INDEX)}


def sealed(files: Mapping[str, bytes], key: SigningKey | None = None) -> dict[str, bytes]:
    """The files with their checksums, and a signature."""
    sums = checksums({name: hashlib.sha256(file).hexdigest() for name, file in files.items()})
    signature = {SIGNATURE: sign_checksums(sums, VERSION, key).as_bytes()} if key is not None else {}
    return {CHECKSUMS: sums, **signature, **files}


def written(path: Path, files: Mapping[str, bytes], *more: tarfile.TarInfo, end: bytes = b"") -> Path:
    """The tar; `more` are members without content, `end` is written behind it."""
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name, payload in files.items():
            header = tarfile.TarInfo(name)
            header.size = len(payload)
            archive.addfile(header, io.BytesIO(payload))
        for header in more:
            archive.addfile(header)
    with path.open("ab") as file:
        file.write(end)
    return path

"""The documents of an OCI image, and the image that it is made on.

The forms are those of the OCI image specification 1.1. containerd mounts only real images (a configuration and tar
layers) as volumes, so the weights are one, not an artifact.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermetic.errors import InputError, Unreachable
from hermetic.weights.streamed_json import NotJsonError, read_small

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar"
BLOBS = "blobs/sha256"
ROOT_DIGEST = "hermetic.dev/weights-digest"
"""Annotation of the manifest: the root digest of the weights."""
LARGEST_DOCUMENT = 4 * 2**20
"""Bytes of a manifest that registries accept at most."""
MOST_LAYERS = 120
"""Layers of an image, its base included; Docker mounts 125 at most."""
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_LAYER_TYPES = tuple(f"{LAYER_TYPE}{compression}" for compression in ("", "+gzip", "+zstd"))


@dataclass(frozen=True, slots=True)
class ImageLayer:
    """A layer of an image: the digest of its blob and of the tar in it, the blob's bytes and type."""

    digest: str
    size: int
    diff_id: str
    media_type: str = LAYER_TYPE


@dataclass(slots=True)
class BaseImage:
    """The image to add layers to: where its blobs are, its configuration and layers."""

    folder: Path
    config: dict[str, Any]
    layers: list[ImageLayer] = field(default_factory=list)


def image_documents(base: BaseImage, layers: list[ImageLayer], root: str) -> tuple[bytes, bytes]:
    """Configuration and manifest of the base with these layers on it, of weights with this root digest."""
    every = [*base.layers, *layers]
    config = {**base.config, "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in every]}}
    if "history" in config:
        config["history"] = [*config["history"], *({"created_by": "hermetic stage"} for _ in layers)]
    written = _as_json(config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": _descriptor(CONFIG_TYPE, digest_of(written), len(written)),
        "layers": [_descriptor(layer.media_type, layer.digest, layer.size) for layer in every],
        "annotations": {ROOT_DIGEST: root},
    }
    return written, _as_json(manifest)


def layout_documents(manifest: bytes, name: str, descriptor: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The two files of a layout beside its blobs. `name`: what it calls the image, a tag.

    `descriptor`: of the manifest, by default that of an image for one platform that it does not name.
    """
    entry = dict(descriptor or _descriptor(MANIFEST_TYPE, digest_of(manifest), len(manifest)))
    entry["annotations"] = {"org.opencontainers.image.ref.name": name}
    return {
        "oci-layout": _as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _as_json({"schemaVersion": 2, "manifests": [entry]}),
    }


def empty_base(architecture: str) -> BaseImage:
    """No layers: an image of weights alone."""
    return BaseImage(Path(), {"architecture": architecture, "os": "linux", "config": {}})


def read_base(folder: Path) -> BaseImage:
    """The only image of an OCI layout. Raises Unreachable and InputError."""
    fix = f"skopeo copy --override-os linux --override-arch amd64 docker://IMAGE oci:{folder}"
    match _json(folder, folder / "index.json"):
        case {"manifests": [{"mediaType": kind, "digest": str(digest)}]} if kind == MANIFEST_TYPE:
            manifest = _json(folder, _blob(folder, digest), digest)
        case _:
            raise InputError(f"{folder}: is not the layout of exactly one image", fix=fix)
    match manifest:
        case {"config": {"digest": str(digest)}, "layers": [*layers]}:
            config = _json(folder, _blob(folder, digest), digest)
        case _:
            raise InputError(f"{folder}: its manifest has no configuration or no layers", fix=fix)
    match config:
        case {"architecture": str(), "os": "linux", "rootfs": {"diff_ids": [*diff_ids]}}:
            pass
        case _:
            raise InputError(f"{folder}: its configuration is not one of a Linux image", fix=fix)
    if len(diff_ids) != len(layers) or not isinstance(config.get("history", []), list):
        raise InputError(f"{folder}: its configuration and manifest do not fit together", fix=fix)
    return BaseImage(folder, config, [_layer(folder, *pair) for pair in zip(layers, diff_ids, strict=True)])


def _layer(folder: Path, layer: Any, diff_id: Any) -> ImageLayer:
    match layer:
        case {"mediaType": str(kind), "digest": str(digest), "size": int(size)} if kind in _LAYER_TYPES:
            _blob(folder, digest)
            return ImageLayer(digest, size, str(diff_id), kind)
    raise InputError(f"{folder}: a layer of its image is not a tar of the OCI specification")


def blob_name(digest: str) -> str:
    """The path of a blob in a layout."""
    return f"{BLOBS}/{digest.removeprefix('sha256:')}"


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _blob(folder: Path, digest: str) -> Path:
    if not _DIGEST.fullmatch(digest):
        raise InputError(f"{folder}: {digest[:100]!r} is not a digest by SHA-256")
    return folder / blob_name(digest)


def _json(folder: Path, file: Path, digest: str = "") -> Any:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_DOCUMENT + 1)
    except FileNotFoundError:
        raise InputError(f"{file}: No such file or directory", fix="name the folder of an OCI layout") from None
    except OSError as error:
        raise Unreachable(f"{file}: {error.strerror}", fix="name the folder of an OCI layout") from None
    if len(content) > LARGEST_DOCUMENT:
        raise InputError(f"{file}: is larger than {LARGEST_DOCUMENT} bytes")
    if digest and digest_of(content) != digest:
        raise InputError(f"{folder}: {digest} has other content than its digest")
    try:
        return read_small(content)
    except NotJsonError as error:
        raise InputError(f"{file}: {error}") from None


def _descriptor(media_type: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": digest, "size": size}


def _as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()

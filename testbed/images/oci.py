"""OCI images as one tar that containerd imports: no registry, no builder.

The tar is an OCI layout. containerd takes an image's name from the annotation `io.containerd.image.name` of its entry
in index.json, so one manifest can be entered under several names: by tag, and by `repository@sha256:...`, which is how
a pod that pins its images finds it without a pull.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from testbed.images.layers import Layer

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
CREATED = "org.opencontainers.image.created"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Image:
    """What an image is made of, and the name it goes by.

    `repository` has no tag: `contoso.azurecr.io/vllm/vllm-openai`.
    """

    repository: str
    tag: str
    layers: tuple[Layer, ...]
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    working_folder: str = "/"
    architecture: str = field(default_factory=lambda: ARCHITECTURES[platform.machine()])
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the manifest, and the labels of the configuration; `created` of the configuration is taken from them."""

    @property
    def by_tag(self) -> str:
        return f"{self.repository}:{self.tag}"

    @property
    def by_digest(self) -> str:
        return f"{self.repository}@{self.digest}"

    @property
    def digest(self) -> str:
        """`sha256:...` of the manifest: what a pod names after the `@`."""
        return digest_of(self.manifest)

    @cached_property
    def config(self) -> bytes:
        created = self.annotations.get(CREATED)
        return as_json(
            {
                **({"created": created} if created else {}),
                **self.platform,
                "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]},
                "config": self._run_config(),
            }
        )

    @property
    def platform(self) -> dict[str, str]:
        """As an index names it."""
        return {"architecture": self.architecture, "os": "linux"}

    @property
    def images(self) -> tuple[Image, ...]:
        """The image of each platform, as of an ImageIndex."""
        return (self,)

    def descriptor(self) -> dict[str, Any]:
        """As an index names it."""
        return {
            "mediaType": MANIFEST,
            "digest": self.digest,
            "size": len(self.manifest),
            "platform": self.platform,
        }

    @cached_property
    def manifest(self) -> bytes:
        layers = [
            {"mediaType": layer.media_type, "digest": layer.blob_digest, "size": len(layer.blob)}
            for layer in self.layers
        ]
        return as_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {"mediaType": CONFIG, "digest": digest_of(self.config), "size": len(self.config)},
                "layers": layers,
                **({"annotations": dict(self.annotations)} if self.annotations else {}),
            }
        )

    def _run_config(self) -> dict[str, Any]:
        environment = {"PATH": PATH, **self.environment}
        settings = {
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "Cmd": list(self.command),
            "Entrypoint": list(self.entrypoint),
            "User": self.user,
            "WorkingDir": self.working_folder,
            "Labels": dict(self.annotations),
        }
        return {name: value for name, value in settings.items() if value}


@dataclass(frozen=True)
class ImageIndex:
    """Images of several platforms under one digest. https://github.com/opencontainers/image-spec, image-index.md"""

    images: tuple[Image, ...]

    @property
    def repository(self) -> str:
        return self.images[0].repository

    @property
    def tag(self) -> str:
        return self.images[0].tag

    @property
    def by_digest(self) -> str:
        return f"{self.repository}@{self.digest}"

    @property
    def digest(self) -> str:
        """`sha256:...` of the index: what a pod names after the `@`, whatever its node's platform is."""
        return digest_of(self.manifest)

    @cached_property
    def manifest(self) -> bytes:
        annotations = self.images[0].annotations
        return as_json(
            {
                "schemaVersion": 2,
                "mediaType": INDEX,
                "manifests": [image.descriptor() for image in self.images],
                **({"annotations": dict(annotations)} if annotations else {}),
            }
        )

    def descriptor(self) -> dict[str, Any]:
        """As the index of a layout names it."""
        return {"mediaType": INDEX, "digest": self.digest, "size": len(self.manifest)}


def write_archive(path: Path, images: Iterable[Image]) -> None:
    """One tar with every image under both its names; a layer that several images share is written once."""
    images = list(images)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        _add(archive, "oci-layout", as_json({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", as_json({"schemaVersion": 2, "manifests": list(_index(images))}))
        for digest, content in _blobs(images).items():
            _add(archive, "blobs/" + digest.replace(":", "/"), content)


def _index(images: Iterable[Image]) -> Iterator[dict[str, Any]]:
    for image in images:
        for name in (image.by_tag, image.by_digest):
            yield {
                "mediaType": MANIFEST,
                "digest": image.digest,
                "size": len(image.manifest),
                "annotations": {"io.containerd.image.name": name},
            }


def _blobs(images: Iterable[Image]) -> dict[str, bytes]:
    blobs: dict[str, bytes] = {}
    for image in images:
        blobs |= {layer.blob_digest: layer.blob for layer in image.layers}
        blobs |= {digest_of(content): content for content in (image.config, image.manifest)}
    return blobs


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    header = tarfile.TarInfo(name)
    header.size = len(content)
    archive.addfile(header, io.BytesIO(content))


def as_json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def digest_of(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()

"""OCI images as one tar that containerd imports: no registry, no builder.

The tar is an OCI layout. containerd takes an image's name from the annotation `io.containerd.image.name` of its entry
in index.json, so one manifest can be entered under several names: by tag, and by `repository@sha256:...`, which is how
a pod that pins its images finds it without a pull.
"""

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
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"
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
        return as_json(
            {
                "architecture": self.architecture,
                "os": "linux",
                "rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]},
                "config": self._run_config(),
            }
        )

    @cached_property
    def manifest(self) -> bytes:
        layers = [{"mediaType": LAYER, "digest": layer.digest, "size": len(layer.tar)} for layer in self.layers]
        return as_json(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": {"mediaType": CONFIG, "digest": digest_of(self.config), "size": len(self.config)},
                "layers": layers,
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
        }
        return {name: value for name, value in settings.items() if value}


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
        blobs |= {layer.digest: layer.tar for layer in image.layers}
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

"""What a platform team has before Hermetic: a registry's images, a share with staged weights, an overlay of its own."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.images.command import all_images
from testbed.images.model import stage_model
from testbed.images.oci import Image, write_archive
from testbed.installation import CONFIGURATION, REPOSITORY

SAMPLES = REPOSITORY / "manifests" / "samples"
PINNED = re.compile(r"(?P<repository>[a-z0-9./-]+)@sha256:[0-9a-f]{64}")
STAGED = ("contosomodels/models/llama-3-1-8b/fp8", "contosomodels/nim/store/llama-3-1-8b")


@dataclass(frozen=True)
class Estate:
    """Images by repository name, in an archive that a node can be given."""

    images: dict[str, Image]
    archive: Path

    @classmethod
    def prepare(cls, folder: Path) -> Estate:
        """Make every image of the samples, and the operator's own."""
        images = {name: image for name, image in all_images().items() if name != "nim-1"}
        archive = folder / "images.tar"
        write_archive(archive, images.values())
        return cls({image.repository: image for image in images.values()}, archive)

    def sample(self, name: str, **spec: Any) -> dict[str, Any]:
        """A sample from manifests/samples with the digests of the images that exist here."""
        manifest = self.with_digests(yaml.safe_load((SAMPLES / f"{name}.yaml").read_text()))
        manifest["spec"].update(spec)
        return manifest

    def with_digests(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """The manifest with every image that exists here named by its digest."""
        pinned: dict[str, Any] = json.loads(PINNED.sub(self._digest_here, json.dumps(manifest)))
        return pinned

    def _digest_here(self, match: re.Match[str]) -> str:
        image = self.images.get(match["repository"])
        return image.by_digest if image is not None else match[0]


def stage_weights(shares: Path) -> None:
    """Put model folders where the samples look for them."""
    for folder in STAGED:
        stage_model(shares / folder)


def overlay(estate: Estate, folder: Path, minimum_enforcement: str = "Enforce") -> Path:
    """A kustomize overlay as a platform team writes it: the operator's image by digest, and what may be used."""
    image = next(image for name, image in estate.images.items() if name.endswith("/hermetic"))
    configuration = {
        **CONFIGURATION,
        "isolation": {"minimumEnforcement": minimum_enforcement},
        # Only deployments that pin their weights are verified.
        "integrity": {"verifiers": [image.by_digest], "minimumPolicy": "Off"},
    }
    shutil.copytree(REPOSITORY / "manifests", folder / "manifests")
    shutil.copytree(REPOSITORY / "crds", folder / "crds")
    (folder / "manifests/operator/config.yaml").write_text(yaml.safe_dump(configuration))
    name, digest = image.by_digest.split("@")
    ours = folder / "overlay"
    ours.mkdir()
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["../manifests/default"],
        "images": [{"name": "hermetic-operator", "newName": name, "digest": digest}],
    }
    (ours / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    return ours

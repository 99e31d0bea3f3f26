"""What a platform team has before Hermetic: a registry's images, a share with staged weights, an overlay of its own."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from testbed.images.command import all_images
from testbed.images.model import stage_model
from testbed.images.oci import Image, write_archive
from testbed.installation import CONFIGURATION, REPOSITORY

HERMETIC = str(Path(sys.executable).parent / "hermetic")
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

    @property
    def operator_image(self) -> str:
        """The operator's own image by digest."""
        return next(image.by_digest for name, image in self.images.items() if name.endswith("/hermetic"))

    def sample(self, name: str, **spec: Any) -> dict[str, Any]:
        """A sample from manifests/samples with the digests of the images and of the weights that exist here."""
        manifest = self.with_digests(yaml.safe_load((SAMPLES / f"{name}.yaml").read_text()))
        if integrity := manifest["spec"]["weights"].get("integrity"):
            integrity["digest"] = weights_digest()
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
    """Put model folders, each with its manifest, where the samples look for them."""
    for folder in STAGED:
        stage_model(shares / folder)
        _write_manifest(shares / folder)


@cache
def weights_digest() -> str:
    """The root digest of the model that `stage_weights` puts on the shares."""
    with tempfile.TemporaryDirectory(prefix="hermetic-weights-") as folder:
        stage_model(Path(folder))
        return _write_manifest(Path(folder))


def _write_manifest(model: Path) -> str:
    command = [HERMETIC, "manifest", str(model), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return str(json.loads(done.stdout)["digest"])


def configuration(estate: Estate, **lowered: Any) -> dict[str, Any]:
    """The operator's: what the samples use is allowed, and the operator's own image verifies weights.

    Everything else has its default, unless it is `lowered`: `isolation={"minimumEnforcement": "Report"}`. Further keys
    are added: `gateways=[...]`.
    """
    allowed = {key: value for key, value in CONFIGURATION.items() if key not in ("isolation", "integrity")}
    integrity = {"verifiers": [estate.operator_image], **lowered.pop("integrity", {})}
    return {**allowed, "integrity": integrity, **lowered}


def overlay(estate: Estate, folder: Path, **lowered: Any) -> Path:
    """A kustomize overlay as a platform team writes it: the operator's image by digest, and its `configuration`."""
    shutil.copytree(REPOSITORY / "manifests", folder / "manifests")
    shutil.copytree(REPOSITORY / "crds", folder / "crds")
    (folder / "manifests/operator/config.yaml").write_text(yaml.safe_dump(configuration(estate, **lowered)))
    name, digest = estate.operator_image.split("@")
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

"""Lists of images for programs that copy between registries. Each keeps the digest of every image.

A target has a tag too: a registry may purge manifests without one (Azure Container Registry: "retention policy for
untagged manifests").
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hermetic.api.field_types import REFERENCE
from hermetic.api.image_references import digest_of, registry_of, repository_of, tag_of
from hermetic.api.kubernetes_yaml import dump
from hermetic.errors import InputError

_PINNED = re.compile(REFERENCE)
_AZURE = re.compile(r"(?P<name>[a-z0-9]{5,50})(?:-[a-z0-9]+)?\.azurecr\.(?:io|cn|us)")
"""Login server of a registry of Azure; a domain name label adds a hash to the name, which itself has no hyphen."""
_TAG_LENGTH = 12


@dataclass(frozen=True, slots=True)
class ImageCopy:
    """One image to copy: registry and repository at both ends, the digest, and the tag that the target gets."""

    source: str
    target: str
    digest: str
    tag: str

    @property
    def pinned_source(self) -> str:
        """The source by digest."""
        return f"{self.source}@{self.digest}"

    @property
    def path(self) -> str:
        """The target's repository, without its registry."""
        return self.target.partition("/")[2]

    @property
    def tagged_target(self) -> str:
        """The target by tag."""
        return f"{self.target}:{self.tag}"


def image_copies(sources: Mapping[str, str]) -> list[ImageCopy]:
    """The copies for source repositories by target image. Raises InputError for an image that is not pinned.

    A tag that two digests of one repository would share is replaced by one made of the digest.
    """
    for image, source in sources.items():
        if not _PINNED.fullmatch(image):
            raise InputError(
                f"{image}: is not of the form registry/repository@sha256:DIGEST; a copy by tag has no certain digest",
                fix="name the image by digest in the manifest",
            )
        if repository_of(image) == source:
            raise InputError(
                f"{image}: is in a public registry, so it has no target to copy it to",
                fix="name the image as your private registry will have it",
            )
    tags = Counter((repository_of(image), tag_of(image)) for image in sources)
    return [
        ImageCopy(source, repository_of(image), digest_of(image), _tag(image, tags))
        for image, source in sources.items()
    ]


def _tag(image: str, tags: Mapping[tuple[str, str], int]) -> str:
    tag = tag_of(image)
    is_unique = tag and tags[repository_of(image), tag] == 1
    return tag if is_unique else f"digest-{digest_of(image).removeprefix('sha256:')[:_TAG_LENGTH]}"


def _skopeo(copies: Sequence[ImageCopy]) -> str:
    """`skopeo copy`: https://github.com/containers/skopeo/blob/main/docs/skopeo-copy.1.md.

    `skopeo sync` names a target by the last component of the source's path, so it cannot express these.
    """
    return _commands(
        ["skopeo", "copy", "--all", "--preserve-digests", f"docker://{copy.pinned_source}",
         f"docker://{copy.tagged_target}"]
        for copy in copies
    )  # fmt: skip


def _oras(copies: Sequence[ImageCopy]) -> str:
    """`oras cp`: https://oras.land/docs/commands/oras_cp."""
    return _commands(["oras", "cp", copy.pinned_source, copy.tagged_target] for copy in copies)


def _acr_import(copies: Sequence[ImageCopy]) -> str:
    """`az acr import`: https://learn.microsoft.com/cli/azure/acr#az-acr-import. The registry's service copies."""
    return _commands(
        ["az", "acr", "import", "--name", _azure_name(copy), "--source", copy.pinned_source,
         "--image", f"{copy.path}:{copy.tag}"]
        for copy in copies
    )  # fmt: skip


def _azure_name(copy: ImageCopy) -> str:
    login_server = registry_of(copy.tagged_target)
    if (azure := _AZURE.fullmatch(login_server)) is None:
        raise InputError(
            f"{login_server}: is not a registry of Azure, so 'az acr import' cannot copy into it",
            fix="hermetic images -o skopeo",
        )
    return azure["name"]


def _hauler(copies: Sequence[ImageCopy]) -> str:
    """Manifest of kind Images for `hauler store sync`: pkg/apis/hauler.cattle.io/v1/image.go of hauler-dev/hauler.

    A reference by digest needs a `rewrite` with a tag there. It has no registry: `hauler store copy` adds one.
    """
    _must_share_registry(copies, "hauler store copy registry://REGISTRY")
    images = [{"name": copy.pinned_source, "rewrite": f"{copy.path}:{copy.tag}"} for copy in copies]
    return dump(
        {
            "apiVersion": "content.hauler.cattle.io/v1",
            "kind": "Images",
            "metadata": {"name": "hermetic-images"},
            "spec": {"images": images},
        }
    )


def _zarf(copies: Sequence[ImageCopy]) -> str:
    """ZarfPackageConfig: src/pkg/schema/zarf-v1alpha1-schema.json of zarf-dev/zarf.

    `zarf package mirror-resources --registry-url REGISTRY` pushes an image by digest as REGISTRY/path@digest, with the
    path of the source (src/pkg/transform/image.go there).
    """
    _must_share_registry(copies, "zarf package mirror-resources --registry-url REGISTRY")
    for copy in copies:
        source_path = copy.source.partition("/")[2]
        if source_path != copy.path:
            raise InputError(
                f"{copy.target}: Zarf would push it as {registry_of(copy.tagged_target)}/{source_path}",
                fix="hermetic images -o hauler",
            )
    component = {"name": "images", "required": True, "images": [copy.pinned_source for copy in copies]}
    return dump(
        {
            "kind": "ZarfPackageConfig",
            "metadata": {"name": "hermetic-images", "description": "Images that models of Hermetic need"},
            "components": [component],
        }
    )


def _must_share_registry(copies: Sequence[ImageCopy], program: str) -> None:
    registries = sorted({registry_of(copy.tagged_target) for copy in copies})
    if len(registries) > 1:
        raise InputError(
            f"the images are in {' and '.join(registries)}; '{program}' copies to one registry",
            fix="name the manifests of one registry at a time with -f",
        )


def _commands(commands: Iterable[Sequence[str]]) -> str:
    return "".join(f"{shlex.join(command)}\n" for command in commands)


LISTS: Mapping[str, Callable[[Sequence[ImageCopy]], str]] = {
    "skopeo": _skopeo,
    "oras": _oras,
    "acr-import": _acr_import,
    "hauler": _hauler,
    "zarf": _zarf,
}
"""The forms of --output that are lists, and what writes each."""

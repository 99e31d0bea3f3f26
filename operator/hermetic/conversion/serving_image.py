"""The image of a command as one of a private registry, by digest, and the release of the engine inside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from hermetic.api.engine import Member
from hermetic.api.field_types import REFERENCE
from hermetic.api.image_references import digest_of, is_public, registry_of, repository_of, tag_of
from hermetic.conversion.outcomes import Note
from hermetic.conversion.server_command import FlagMember
from hermetic.engines.flag_tables import TableFolder
from hermetic.errors import InputError

PLACEHOLDER_REGISTRY = "registry.invalid"
"""A host that no resolver knows (RFC 2606): a pod of such a manifest never pulls another image by accident."""
PLACEHOLDER_DIGEST = "sha256:" + "0" * 64
_ACR = ".azurecr.io"
_NGC_LOGIN = " --username '$oauthtoken' --password NGC_API_KEY"
"""How `az acr import` reads from nvcr.io/nim, which asks for an account (docs.nvidia.com, NIM "Installation")."""
_RELEASE = re.compile(r"(?<![0-9.])([0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4})(\.post[0-9]{1,4})?(?![0-9])")
_PULLED = re.compile(REFERENCE)


@dataclass(frozen=True, slots=True)
class ServingImage:
    """`reference` is pinned by digest; `version` is a release that has a flag table."""

    reference: str
    version: str
    notes: tuple[Note, ...]


def serving_image(image: str, version: str, registry: str, member: FlagMember, tables: TableFolder) -> ServingImage:
    """The image to serve with. `version` and `registry` are "" where the caller names none.

    Raises InputError for an image that cannot be pulled by that name, and for a `version` that has no flag table.
    """
    if not image:
        raise InputError(
            "the command names no image", fix="add the image that is to run it: --image vllm/vllm-openai:v0.32.0"
        )
    release, notes = _release(image, version, member, tables)
    reference, image_notes = private_image(_without_old_tag(image, release, notes), registry, member)
    return ServingImage(reference, release, (*notes, *image_notes))


def private_image(source: str, registry: str, member: Member) -> tuple[str, tuple[Note, ...]]:
    """The image of `source` in a private registry, by digest, and what is to be done for it.

    Raises InputError for an image that cannot be pulled by that name.
    """
    is_mirrored = is_public(registry_of(source))
    path = repository_of(source)
    path = path.partition("/")[2] if path.startswith(f"{registry_of(source)}/") else path
    host = (registry or PLACEHOLDER_REGISTRY) if is_mirrored else registry_of(source)
    reference = f"{host}/{path}@{digest_of(source) or PLACEHOLDER_DIGEST}"
    if not _PULLED.fullmatch(reference):
        raise InputError(
            f"'{source[:128]}' is not the reference of an image",
            fix="write it as 'registry/repository:tag', in lower case",
        )
    located = _Located(source, host, path, tag_of(source) or "latest", is_mirrored)
    return reference, tuple(_image_notes(located, member))


@dataclass(frozen=True, slots=True)
class _Located:
    """An image, and the registry and repository that it is served from."""

    source: str
    host: str
    path: str
    tag: str
    is_mirrored: bool

    @property
    def registry_name(self) -> str:
        """What `az acr` calls the registry; a word in capitals where it is not known."""
        return self.host.removesuffix(_ACR) if self.host.endswith(_ACR) else "REGISTRY"


def _release(image: str, version: str, member: FlagMember, tables: TableFolder) -> tuple[str, tuple[Note, ...]]:
    """The release to render for, and what there is to say about it."""
    newest = tables.table_for(tables.supported[-1]).version
    if version:
        if not tables.is_supported(version):
            supported = ", ".join(tables.supported)
            raise InputError(
                f"--version '{version[:64]}' is not supported; there are tables for {supported}",
                fix=f"serve with an image of a supported release, and name it: --version {newest}",
            )
        full = version.removeprefix("v").partition("+")[0]
        return (full if full.count(".") > 1 else f"{full}.0"), ()
    field = f"engine.{member}.version"
    releases = [match[1] + (match[2] or "" if member == "sglang" else "") for match in _RELEASE.finditer(tag_of(image))]
    if not releases:
        message = f"the image does not name its release; {newest} is assumed: set it, or give --version"
        return newest, (Note("set", field, message),)
    # A tag may name the release of ROCm or CUDA as well, before that of the engine.
    release = next(filter(tables.is_supported, releases), releases[-1])
    if tables.is_supported(release):
        return release, ()
    message = f"{release} of the image has no flag table; {newest} takes its place, the image included"
    return newest, (Note("replaced", field, message),)


def _without_old_tag(image: str, release: str, notes: tuple[Note, ...]) -> str:
    """The image, with the release in its tag where another one takes its place. Its digest is of the old one."""
    if not any(note.kind == "replaced" for note in notes):
        return image
    return f"{repository_of(image)}:{'v' if tag_of(image).startswith('v') else ''}{release}"


def _image_notes(image: _Located, member: Member) -> Iterator[Note]:
    """The commands that bring the image into the registry and read its digest."""
    pinned = digest_of(image.source)
    if image.is_mirrored:
        source_path = f"library/{image.path}" if "/" not in image.path else image.path
        version = f"@{pinned}" if pinned else f":{image.tag}"
        public = f"{registry_of(image.source)}/{source_path}{version}"
        login = _NGC_LOGIN if member == "nim" and registry_of(image.source) == "nvcr.io" else ""
        yield Note(
            "replaced",
            f"image {image.source}",
            "pods pull from a private registry; mirror it: "
            f"az acr import --name {image.registry_name} --source {public} --image {image.path}:{image.tag}{login}",
        )
    if image.host == PLACEHOLDER_REGISTRY:
        yield Note("set", f"engine.{member}.image", f"'{image.host}' stands for your registry: give --registry HOST")
    if not pinned:
        yield Note(
            "set",
            f"engine.{member}.image",
            "the digest is a placeholder of zeros; read it: az acr repository show "
            f"--name {image.registry_name} --image {image.path}:{image.tag} --query digest --output tsv",
        )

"""References of images: registry, repository, tag and digest of one, and which registries are public."""

from __future__ import annotations

DEFAULT = "docker.io"

# Registries with public pull: an image from there was pulled from outside, or will be.
PUBLIC = frozenset(
    {
        "docker.io",
        "gcr.io",
        "ghcr.io",
        "k8s.gcr.io",
        "mcr.microsoft.com",
        "nvcr.io",
        "public.ecr.aws",
        "quay.io",
        "registry-1.docker.io",
        "registry.gitlab.com",
        "registry.k8s.io",
        "xpkg.upbound.io",
    }
)
PUBLIC_ENDINGS = (".gcr.io", ".pkg.dev", ".docker.io", ".gallery.ecr.aws")


def registry_of(image: str) -> str:
    """Host (and port) of the registry in lower case; "docker.io" where none is named.

    The first part is a host exactly where it has a dot or a port, or is localhost.
    """
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first.lower() if is_host else DEFAULT


def repository_of(image: str) -> str:
    """Registry and path without tag and digest: "contoso.azurecr.io/nvidia/driver"."""
    bare = image.partition("@")[0]
    path, colon, tag = bare.rpartition(":")
    named = path if colon and "/" not in tag else bare
    first, slash, repository = named.partition("/")
    return f"{first.lower()}{slash}{repository}" if slash and registry_of(image) == first.lower() else named


def tag_of(image: str) -> str:
    """The tag, "v0.32.0"; "" where none is named."""
    path, colon, tag = image.partition("@")[0].rpartition(":")
    return tag if colon and path and "/" not in tag else ""


def digest_of(image: str) -> str:
    """ "sha256:…" of a reference by digest; "" of every other."""
    return image.partition("@")[2]


def is_public(registry: str) -> bool:
    """Whether the registry is one with public pull."""
    return registry in PUBLIC or registry.endswith(PUBLIC_ENDINGS)

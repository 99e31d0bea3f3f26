"""Image references: the registry and repository of one, and whether that is Microsoft's."""

from __future__ import annotations

from collections.abc import Collection

DEFAULT = "docker.io"
MICROSOFT = frozenset({"mcr.microsoft.com", "mcr.azk8s.cn"})
"""The registry of AKS's own images. Nodes of an isolated cluster use this name with the bootstrap registry."""
MIRROR = "aks-managed-repository/"
"""The repository prefix that the cache rule aks-managed-mcr of an isolated cluster gives to Microsoft's images."""


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
    first, slash, rest = named.partition("/")
    return f"{first.lower()}{slash}{rest}" if slash and registry_of(image) == first.lower() else named


def digest_of(image: str) -> str:
    """ "sha256:…" of a reference by digest; "" of every other."""
    return image.partition("@")[2]


def microsofts(image: str, approved: Collection[str]) -> str:
    """The path of an image of Microsoft's registry, "oss/v2/calico/node"; "" for every other.

    The mirror of that registry in a registry that the policy allows is accepted too.
    """
    registry, path = registry_of(image), repository_of(image).partition("/")[2]
    if registry in MICROSOFT:
        return path
    is_mirrored = path.startswith(MIRROR) and registry in {one.lower() for one in approved}
    return path.removeprefix(MIRROR) if is_mirrored else ""

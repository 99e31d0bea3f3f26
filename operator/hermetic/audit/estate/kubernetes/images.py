"""Which images are Microsoft's own."""

from __future__ import annotations

from collections.abc import Collection

from hermetic.api.image_references import registry_of, repository_of

MICROSOFT = frozenset({"mcr.microsoft.com", "mcr.azk8s.cn"})
"""The registry of AKS's own images. Nodes of an isolated cluster use this name with the bootstrap registry."""
MIRROR = "aks-managed-repository/"
"""The repository prefix that the cache rule aks-managed-mcr of an isolated cluster gives to Microsoft's images."""


def microsofts(image: str, approved: Collection[str]) -> str:
    """The path of an image of Microsoft's registry, "oss/v2/calico/node"; "" for every other.

    The mirror of that registry in a registry that the policy allows is accepted too.
    """
    registry, path = registry_of(image), repository_of(image).partition("/")[2]
    if registry in MICROSOFT:
        return path
    is_mirrored = path.startswith(MIRROR) and registry in {registry.lower() for registry in approved}
    return path.removeprefix(MIRROR) if is_mirrored else ""

"""Image references: which registry one names."""

from __future__ import annotations

DEFAULT = "docker.io"


def registry_of(image: str) -> str:
    """Host (and port) of the registry in lower case; "docker.io" where none is named.

    The first part is a host exactly where it has a dot or a port, or is localhost.
    """
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first.lower() if is_host else DEFAULT

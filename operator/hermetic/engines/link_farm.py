"""Init containers that fill a writable cache of the engine from staged files, which stay read-only where they are."""

from __future__ import annotations

from hermetic.engines.launch import InitContainer, InitContainerName


def linked(image: str, source: str, target: str, volume: str, *, brings_code: bool = False) -> InitContainer:
    """Builds a writable tree of links to the files below `source` in the folder `target` of the volume."""
    # Forced, because the folder outlives the container: after a restart of the node this runs again.
    return _container("link-cache", image, ("cp", "-Rsf", f"{source}/.", f"{target}/"), volume, brings_code=brings_code)


def copied(image: str, source: str, target: str, volume: str, *, brings_code: bool = False) -> InitContainer:
    """Copies the files below `source`, for those that the engine opens for writing in place."""
    return _container("copy-cache", image, ("cp", "-Rf", f"{source}/.", f"{target}/"), volume, brings_code=brings_code)


def _container(
    name: InitContainerName, image: str, command: tuple[str, ...], volume: str, *, brings_code: bool
) -> InitContainer:
    return InitContainer(
        name,
        image,
        command,
        frozenset({"weights", volume}),
        cpu="100m",
        memory="64Mi",
        memory_limit="256Mi",
        brings_code=brings_code,
    )

"""Compile caches on the command line: which are staged, for what key, and what to write below `weights.caches`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hermetic.errors import InputError

if TYPE_CHECKING:
    from hermetic.api.engine_caches import EngineCaches
    from hermetic.weights.tree import Tree

Function = TypeVar("Function", bound=Callable[..., Any])


def caches_options(function: Function) -> Function:
    folder = click.option(
        "--caches",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Stage compile caches too: the folder .cache of the engine's home, from a pod that serves this model on "
        "a connected cluster.",
    )
    manifest = click.option(
        "--caches-for",
        metavar="FILE",
        help="The ModelDeployment of that pod: its engine, version, GPU model and parallelism are the key.",
    )
    return folder(manifest(function))


def source_with_caches(source: Path, caches: Path | None, manifest: str | None, excludes: tuple[str, ...] = ()) -> Tree:
    """The folder that a model is copied from, with its caches. Raises InputError and Unreachable."""
    from hermetic.weights.sources import source_tree

    if (caches is None) != (manifest is None):
        raise InputError(
            "--caches and --caches-for go together", fix="hermetic stage SRC DEST --caches DIR --caches-for FILE"
        )
    if caches is None or manifest is None:
        return source_tree(source, excludes)
    from hermetic.weights.caches import WithCaches

    key = _key_of(manifest)
    return WithCaches(source_tree(source, excludes), caches, key)


def caches_of_source(tree: Tree) -> list[str]:
    """The folders of compile caches that a source brings with it. Staging keeps them, and an engine executes them."""
    from hermetic.api.staged_folders import CACHES

    try:
        folders = {path.name for path in (tree.root / CACHES).iterdir()}
    except OSError:
        return []
    from hermetic.weights.caches import WithCaches  # 0.3 s to import, and most sources have no caches

    return sorted(folders - {tree.key.folder} if isinstance(tree, WithCaches) else folders)


def keys_of(tree: Tree) -> dict[str, list[dict[str, Any]]]:
    """What to write below `weights` for the caches of this source; nothing where it has none."""
    from hermetic.weights.caches import WithCaches

    return (
        {"caches": [tree.key.model_dump(by_alias=True, exclude_defaults=True)]} if isinstance(tree, WithCaches) else {}
    )


def _key_of(manifest: str) -> EngineCaches:
    from hermetic.cli.manifest_validation import validate
    from hermetic.cli.manifests import read_manifests
    from hermetic.engines.registry import engine_of

    reading = read_manifests((manifest,))
    accepted, findings = validate(reading.typed, namespace="default")
    reading.findings += findings
    reading.raise_findings()
    specs = [deployment.spec for deployment in accepted if deployment.spec is not None]
    if len(specs) != 1:
        raise InputError(
            f"--caches-for {manifest}: holds {len(specs)} ModelDeployments",
            fix="name the file of the one whose caches these are",
        )
    key = engine_of(specs[0]).cache_key(specs[0])
    if isinstance(key, str):
        raise InputError(f"--caches-for {manifest}: {key}", fix="docs/weights.md lists which caches can be staged")
    return key

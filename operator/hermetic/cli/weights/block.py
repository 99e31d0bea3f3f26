"""The `weights:` block of a ModelDeployment that serves what was staged: digest, facts, allowed files and caches."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermetic.cli.weights.mounts import share_of

if TYPE_CHECKING:
    from hermetic.weights.copying import Staged
    from hermetic.weights.staging import Options

_ACCOUNT, _SHARE, _REGISTRY = "contosomodels", "models", "contoso.azurecr.io"
"""Examples, where nothing on this host says which share or registry it is."""
_NOT_IN_IMAGE_NAMES = re.compile(r"[^a-z0-9]+")


def weights_block(
    staged: Staged, source: Path, destination: Path, options: Options, caches: dict[str, Any]
) -> dict[str, Any]:
    """The value of `spec.weights`."""
    allow = sorted(options.allowed.used)
    integrity = {"integrity": {"digest": staged.root, **({"allow": allow} if allow else {})}}
    return {
        **_source(staged, source, destination, options),
        **({} if staged.image else integrity),
        **({} if staged.facts is None else {"facts": staged.facts}),
        **caches,
    }


def wrong_with_block(block: dict[str, Any]) -> str:
    """Why a ModelDeployment cannot have this block; "" where it can."""
    from pydantic import ValidationError

    from hermetic.api.validation_errors import problems_of
    from hermetic.api.weights import Weights

    try:
        Weights.model_validate(block)
    except ValidationError as error:
        problem = problems_of(error, Weights)[0]
        return f"weights.{problem.path} {problem.message}"
    return ""


def block_as_text(block: dict[str, Any], excludes: tuple[str, ...], *, is_example: bool) -> str:
    """YAML, a line for each field, with comments about what to replace and what was left out."""
    member = next(iter(block))
    lines = [f"# Write the name of your own share or registry into {member}."] if is_example else []
    lines += [f"# Staged with --exclude {pattern!a}" for pattern in excludes]
    # A value in JSON is one in YAML.
    fields = (f"  {name}: {json.dumps(value)}" for name, value in block.items())
    return "\n".join((*lines, "weights:", *fields))


def is_on_known_share(destination: Path, staged: Staged) -> bool:
    """Whether the block names the share by what is mounted."""
    return not staged.image and share_of(destination) is not None


def _source(staged: Staged, source: Path, destination: Path, options: Options) -> dict[str, Any]:
    if not staged.image:
        folder = {"azureFiles": {"account": _ACCOUNT, "share": _SHARE, "folder": destination.absolute().name}}
        return share_of(destination) or folder
    image = options.image
    path = image.path if image is not None else ""
    if image is not None and image.base is not None:
        return {"bakedImage": {"path": f"/{path}"}}
    name = _NOT_IN_IMAGE_NAMES.sub("-", source.absolute().name.casefold()).strip("-") or "model"
    return {
        "imageVolume": {"reference": f"{_REGISTRY}/models/{name}@{staged.image}", **({"path": path} if path else {})}
    }

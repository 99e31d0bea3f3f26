"""Adapters of a staged folder: what their files say, compared with the manifest."""

from __future__ import annotations

import os
import posixpath
from pathlib import Path

from hermetic.api.adapters import Adapter
from hermetic.api.modeldeployment import ModelDeploymentSpec
from hermetic.cli.plan.planned import StagedAdapter
from hermetic.errors import InputError, ModelFactsUnusable, Unreachable
from hermetic.weights.adapter_configuration import CONFIGURATION, problems_of_adapter, rank_for
from hermetic.weights.model_folder import read_adapter_configuration


def staged_adapters(model: Path, spec: ModelDeploymentSpec) -> tuple[StagedAdapter, ...]:
    """Every adapter of the manifest, read where it lies beside or below the staged model, as in the share.

    The engine keeps room for the largest `rank`, so that one decides for all. Nothing raises: what cannot be read is
    not known.
    """
    return tuple(_staged(model, spec, adapter) for adapter in spec.adapters)


def _staged(model: Path, spec: ModelDeploymentSpec, adapter: Adapter) -> StagedAdapter:
    if not spec.weights.is_mounted:
        return StagedAdapter(adapter.name, adapter.rank, unread="it is in the image of the weights")
    below = posixpath.relpath(adapter.folder, spec.weights.folder or ".")
    folder = Path(os.path.normpath(model.absolute() / below))
    try:
        configuration = read_adapter_configuration(folder)
    except ModelFactsUnusable as error:
        return StagedAdapter(adapter.name, adapter.rank, problems=(f"adapter '{adapter.name}': {error.message}",))
    except (InputError, Unreachable) as error:
        return StagedAdapter(adapter.name, adapter.rank, unread=error.message)
    if not isinstance(configuration, dict):
        message = f"adapter '{adapter.name}': {folder / CONFIGURATION} holds no object"
        return StagedAdapter(adapter.name, adapter.rank, problems=(message,))
    largest = max(other.rank for other in spec.adapters)
    problems = tuple(
        f"adapter '{adapter.name}': expected {expected}, found {value}"
        for expected, value in problems_of_adapter(configuration, largest)
    )
    return StagedAdapter(adapter.name, adapter.rank, rank_for(configuration), problems)

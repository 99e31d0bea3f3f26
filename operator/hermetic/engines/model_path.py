"""Where the model is mounted in the engine's container."""

from __future__ import annotations

from hermetic.api.weights import Weights
from hermetic.engines.launch import WEIGHTS


def model_path(weights: Weights) -> str:
    """Absolute path of the model folder: in the image itself, below the image volume, or the mounted folder."""
    if weights.baked_image is not None:
        return weights.baked_image.path
    if weights.image_volume is not None and weights.image_volume.path:
        return f"{WEIGHTS}/{weights.image_volume.path}"
    return WEIGHTS


def model_folders(weights: Weights) -> tuple[str, ...]:
    """Every folder of the container in which there may be weights."""
    return tuple(dict.fromkeys((WEIGHTS, model_path(weights))))

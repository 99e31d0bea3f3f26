"""Which part of a model a tensor belongs to, by its name: experts, and encoders of images or sound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Part = Literal["experts", "vision", "audio"]

EXPERTS = "experts"
"""Segment of the names of experts that are chosen among; those of shared experts have another."""
# Segments near the beginning of names, as the published safetensors of vLLM's multimodal families have them.
ENCODERS: Mapping[str, Part] = {
    "visual": "vision",
    "vision_tower": "vision",
    "vision_model": "vision",
    "vision_encoder": "vision",
    "vision_embed_tokens": "vision",
    "vision_language_adapter": "vision",
    "pre_mm_projector_norm": "vision",
    "patch_merger": "vision",
    "embed_vision": "vision",
    "multi_modal_projector": "vision",
    "mm_projector": "vision",
    "audio_tower": "audio",
    "audio_model": "audio",
    "audio_encoder": "audio",
    "embed_audio": "audio",
}
LEADING = 3
"""Segments among which the name of an encoder stands."""


def part_of(tensor: str) -> Part | None:
    """The part; None for a tensor of the language model that is no expert."""
    segments = tensor.split(".", 64)
    encoder = next((ENCODERS[segment] for segment in segments[:LEADING] if segment in ENCODERS), None)
    if encoder is not None:
        return encoder
    return "experts" if EXPERTS in segments else None

"""The encoders of images and sound of a config.json, with the dimensions that decide their memory.

Names of keys are those of the families that vLLM serves (vllm/model_executor/models). A dimension that is not there is
left out: the memory of such an encoder is not computed, and only requests without its input can be sized.
"""

from __future__ import annotations

from collections.abc import Iterator

from hermetic.api.model_facts import MOST_COUNT, Encoder
from hermetic.sizing.config_reading import Config

VISION = ("vision_config", "vit_config", "visual", "vision_tower")
SOUND = ("audio_config", "sound_config", "audio_encoder")
# Kinds of input of one encoder, by the family. Others may have images and video.
INPUTS = {
    "gemma3": ["image"],
    "llama4": ["image"],
    "mistral3": ["image"],
    "pixtral": ["image"],
    "kimi_k25": ["vision_chunk", "image", "video"],
    "kimi_k3": ["vision_chunk", "image", "video"],
}
BOTH = ["image", "video"]
CHANNELS = 3
DEFAULT_RATIO = 4
"""Width of the feed-forward layers of an encoder, as a multiple of its hidden size, where config.json has none."""


def encoders_of(top: Config, family: str, part_bytes: dict[str, int]) -> list[Encoder]:
    """The encoders; `family` is `model_type` of the whole config.json, `part_bytes` the weights by part."""
    encoders = list(_vision(top, family, part_bytes.get("vision", 0)))
    if any(top.values.get(key) is not None for key in SOUND):
        encoders.append(Encoder(inputs=["audio"], bytes=part_bytes.get("audio", 0)))
    return encoders


def _vision(top: Config, family: str, weights: int) -> Iterator[Encoder]:
    key = next((key for key in VISION if top.values.get(key) is not None), None)
    if key is None:
        return
    # Values that are not usable leave a dimension out, which is no problem of the language model.
    config = Config(top.values[key] if isinstance(top.values[key], dict) else {})
    outer = Config(top.values)
    hidden = _largest(config, "hidden_size", "embed_dim", "vt_hidden_size", "width")
    patches, patch = _patches_per_token(config, outer), config.whole("patch_size", most=1024)
    frames = config.whole("temporal_patch_size", most=16) or 1
    values = CHANNELS * patch * patch * frames if patch is not None else None
    yield Encoder(
        inputs=INPUTS.get(family, BOTH),
        bytes=weights,
        hidden_size=hidden,
        intermediate_size=_width(config, hidden),
        patches_per_token=patches,
        patch_values=values if values is not None and values <= MOST_COUNT else None,
        item_tokens=_item_tokens(config, outer, patches),
    )


def _largest(config: Config, *keys: str) -> int | None:
    """Families differ in which key is the encoder's own and which the language model's: the larger counts."""
    sizes = [size for key in keys if (size := config.whole(key, most=MOST_COUNT)) is not None]
    return max(sizes, default=None)


def _width(config: Config, hidden: int | None) -> int | None:
    stated = config.whole("intermediate_size", "vt_intermediate_size", most=MOST_COUNT)
    if stated is not None or hidden is None:
        return stated
    ratio = config.values.get("mlp_ratio")
    if not isinstance(ratio, int | float) or isinstance(ratio, bool) or not 0 < ratio <= 64:
        ratio = DEFAULT_RATIO
    width = round(hidden * ratio)
    return width if 1 <= width <= MOST_COUNT else None


def _patches_per_token(config: Config, outer: Config) -> int | None:
    """How many patches become one token; None where config.json does not say it."""
    for source in (config, outer):
        merged = source.whole("spatial_merge_size", "pooling_kernel_size", most=64)
        if merged is not None:
            return merged * merged
    compression = config.inner("img_token_compression_config") or outer.inner("img_token_compression_config")
    if compression is not None and (merged := compression.whole("spatial_merge_size", most=64)) is not None:
        return merged * merged
    kernel = config.numbers("merge_kernel_size")
    if kernel is not None and len(kernel) == 2 and all(1 <= number <= 64 for number in kernel):
        return kernel[0] * kernel[1]
    ratio = config.values.get("pixel_shuffle_ratio", outer.values.get("downsample_ratio"))
    if isinstance(ratio, float) and 0.01 <= ratio <= 1:
        return round(1 / ratio / ratio)
    tokens, image = outer.whole("mm_tokens_per_image", most=MOST_COUNT), _image_patches(config)
    return max(1, image // tokens) if tokens is not None and image is not None else None


def _image_patches(config: Config) -> int | None:
    size, patch = config.whole("image_size", most=65_536), config.whole("patch_size", most=1024)
    return (size // patch) ** 2 if size is not None and patch is not None and size >= patch else None


def _item_tokens(config: Config, outer: Config, patches: int | None) -> int | None:
    """Tokens of the largest image, where the encoder takes one size or the key says a limit."""
    stated = outer.whole("vision_soft_tokens_per_image", "mm_tokens_per_image", most=MOST_COUNT)
    image = _image_patches(config)
    if stated is not None:
        return stated
    if image is None or patches is None:
        return None
    return min(MOST_COUNT, max(1, -(-image // patches)))

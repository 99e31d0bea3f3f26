"""Memory for images and sound: of models that read them, with and without the flags of vLLM that switch them off."""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.engines.registry import engine_of
from hermetic.sizing.catalogue import GIB, Gpu, Value
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.facts_file import as_json
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.overhead import encoder_bytes
from hermetic.sizing.serving import Serving
from hermetic.sizing.tensor_parts import part_of
from tests.corpus.manifests import changed
from tests.public_models import aiconfigurator_models, kaito_models
from tests.scenarios import a_share_model
from tests.snapshots import spec_of

VISION = {"hidden_size": 1152, "intermediate_size": 4304, "patch_size": 16, "temporal_patch_size": 2}
TEXT = {"model_type": "qwen3", "num_hidden_layers": 36, "num_attention_heads": 32, "num_key_value_heads": 8}
TEXT |= {"hidden_size": 4096, "head_dim": 128, "max_position_embeddings": 8192}
PARTS = {"vision": GIB}


def gpu(gib: float) -> Gpu:
    return Gpu("", f"{gib} GiB", "nvidia", Value(int(gib * GIB), "test", True), 9.0)


def reading(**configs: Any):
    config = {"model_type": "qwen3_vl", "text_config": TEXT} | configs
    return facts_of(config, TensorSums({"BF16": 16 * GIB}, 4, 4 * GIB, PARTS))


def test_an_encoder_takes_the_patches_of_the_largest_image():
    """16384 tokens of 4 patches: ten vectors of 1152 and two of 4304 in 16 bits, and 1536 numbers in 6 bytes."""
    (encoder,) = aiconfigurator_models()["Qwen/Qwen3-VL-8B-Instruct"].facts().encoders
    assert encoder.inputs == ["image", "video"]
    expected = 16_384 * 4 * (2 * (10 * 1152 + 2 * 4304) + 6 * 3 * 16 * 16 * 2)
    assert encoder_bytes(encoder, Serving(batched_tokens=2048)) == expected


@pytest.mark.parametrize(
    ("name", "patches", "item"),
    [
        ("google/gemma-3-27b-it", 16, 256),
        ("google/gemma-4-31B-it", 9, 280),
        ("moonshotai/Kimi-K2.5", 4, None),
        ("mistralai/Ministral-3-8B-Instruct-2512", 4, 3025),
        ("nvidia/MiniMax-M3-NVFP4", 4, 5184),
    ],
)
def test_patches_of_a_token_follow_from_the_form_of_each_family(name, patches, item):
    (encoder,) = (aiconfigurator_models() | kaito_models())[name].facts().encoders
    assert (encoder.patches_per_token, encoder.item_tokens) == (patches, item)


def test_a_fixed_image_is_counted_as_often_as_a_step_has_room_for_it():
    """gemma-3: 2048 tokens of a step on an A100 are 8 images of 256 tokens, on an H100 8192 are 32."""
    (encoder,) = kaito_models()["google/gemma-3-27b-it"].facts().encoders
    small, large = (encoder_bytes(encoder, Serving(batched_tokens=tokens)) for tokens in (2048, 8192))
    assert large == 4 * small


@pytest.mark.parametrize(
    ("arguments", "is_off"),
    [
        ([], False),
        (["--language-model-only"], True),
        (["--language_model_only"], True),
        (["--no-language-model-only"], False),
        (["--limit-mm-per-prompt", '{"image": 0, "video": 0}'], True),
        (['--limit-mm-per-prompt={"image":0,"video":0,"audio":0}'], True),
        (["--limit-mm-per-prompt.image", "0", "--limit-mm-per-prompt.video", "0"], True),
        (["--limit-mm-per-prompt.image=0", "--limit-mm-per-prompt.video=0"], True),
        (["--limit-mm-per-prompt", '{"image": 0}'], False),
        (["--limit-mm-per-prompt", '{"image": 0, "video": 1}'], False),
        (["--limit-mm-per-prompt", '{"image": false, "video": 0}'], False),
        (["--limit-mm-per-prompt", '{"image": {"count": 0}, "video": 0}'], False),
        (["--limit-mm-per-prompt.image", "0"], False),
        (["--limit-mm-per-prompt", "[]"], False),
        (["--limit-mm-per-prompt", "{"], False),
    ],
)
def test_an_encoder_counts_unless_each_of_its_inputs_is_switched_off(arguments, is_off):
    """`_mark_tower_model` of vLLM: not loaded where the limits of all of its inputs are zero."""
    facts = reading(vision_config=VISION | {"spatial_merge_size": 2})
    manifest = changed(a_share_model(), {"spec.weights.facts": as_json(facts), "spec.engine.vllm.extraArgs": arguments})
    spec = spec_of(manifest)
    result = fit(facts, engine_of(spec).serving(spec), gpu(80))
    assert result.answer is FitAnswer.FITS
    assert (result.encoder == 0) is is_off
    assert result.weights == round(1.02 * (15 if is_off else 16) * GIB)


def test_an_encoder_without_dimensions_is_unknown_unless_it_is_switched_off():
    facts = reading(vision_config={"model_type": "of tomorrow"})
    assert facts.not_computed == []
    assert fit(facts, Serving(), gpu(500)).answer is FitAnswer.UNKNOWN
    assert fit(facts, Serving(inputs_off=frozenset({"image", "video"})), gpu(80)).answer is FitAnswer.FITS


def test_sound_is_not_computed_and_each_encoder_is_switched_off_by_itself():
    facts = reading(vision_config=VISION | {"spatial_merge_size": 2}, audio_config={"hidden_size": 1024})
    assert [encoder.inputs for encoder in facts.encoders] == [["image", "video"], ["audio"]]
    assert fit(facts, Serving(), gpu(500)).unknown == ("memory for audio in requests is not computed",)
    silent = fit(facts, Serving(inputs_off=frozenset({"audio"})), gpu(80))
    assert (silent.answer, silent.encoder > 0) == (FitAnswer.FITS, True)


def test_what_fits_only_without_images_is_unknown_and_says_how_to_switch_them_off():
    facts = reading(vision_config=VISION | {"spatial_merge_size": 2, "hidden_size": 8192, "intermediate_size": 32_768})
    result = fit(facts, Serving(), gpu(25))
    assert result.answer is FitAnswer.UNKNOWN
    assert "`--language-model-only`" in " ".join(result.unknown)
    assert fit(facts, Serving(inputs_off=frozenset({"*"})), gpu(25)).answer is FitAnswer.FITS


@pytest.mark.parametrize(
    "vision",
    [
        {"hidden_size": "1152"},
        {"hidden_size": -1, "patch_size": 16},
        {"hidden_size": float("nan"), "mlp_ratio": float("inf")},
        {"hidden_size": 10**30},
        VISION | {"spatial_merge_size": 0},
        VISION | {"merge_kernel_size": [0, 0]},
        VISION | {"merge_kernel_size": ["2", 2]},
        VISION | {"patch_size": 10**9, "spatial_merge_size": 2},
        VISION | {"pixel_shuffle_ratio": 0.0},
        VISION | {"img_token_compression_config": []},
        [],
        "siglip",
        1,
    ],
)
def test_dimensions_that_are_not_usable_leave_the_text_computed(vision):
    facts = reading(vision_config=vision)
    assert facts.not_computed == []
    assert fit(facts, Serving(), gpu(500)).answer is FitAnswer.UNKNOWN
    assert fit(facts, Serving(inputs_off=frozenset({"*"})), gpu(500)).answer is FitAnswer.FITS


@pytest.mark.parametrize(
    ("tensor", "part"),
    [
        ("model.layers.3.mlp.experts.7.gate_proj.weight", "experts"),
        ("model.layers.3.mlp.experts.gate_up_proj", "experts"),
        ("layers.0.experts.0.w1.weight", "experts"),
        ("backbone.layers.1.mixer.experts.5.up_proj.weight", "experts"),
        ("model.layers.3.mlp.shared_experts.gate_proj.weight", None),
        ("model.layers.3.mlp.gate.weight", None),
        ("model.visual.blocks.0.attn.qkv.weight", "vision"),
        ("vision_tower.vision_model.encoder.layers.0.mlp.fc1.weight", "vision"),
        ("model.vision_tower.encoder.layers.0.mlp.weight", "vision"),
        ("model.multi_modal_projector.linear_1.weight", "vision"),
        ("vision_encoder.transformer.layers.0.attention.wq.weight", "vision"),
        ("model.audio_tower.layers.0.weight", "audio"),
        ("model.language_model.layers.0.self_attn.q_proj.weight", None),
        ("lm_head.weight", None),
        ("", None),
        ("." * 5000, None),
        ("experts", "experts"),
    ],
)
def test_a_tensor_belongs_to_the_part_that_its_name_says(tensor, part):
    assert part_of(tensor) == part

"""What the layers of each family keep, by facts of public models: bytes of a token, of a state, and of an index.

Products are written out as vLLM computes them (https://github.com/vllm-project/vllm, 0.33): layers x heads x values x
bytes. Names of files are those of that repository.
"""

from __future__ import annotations

from typing import Any

import pytest

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import GIB, Gpu, Value, sizes
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.kv_cache import kv_cache
from hermetic.sizing.layer_kinds import state_bytes
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.parallelism import possible
from hermetic.sizing.serving import Serving
from tests.public_models import aiconfigurator_models, kaito_models

H100, A100 = sizes()["Standard_ND96isr_H100_v5"].gpu, sizes()["Standard_NC24ads_A100_v4"].gpu
ONE_STEP = Serving(batched_tokens=8192)


def gpu(gib: float) -> Gpu:
    return Gpu("", f"{gib} GiB", "nvidia", Value(int(gib * GIB), "test", True), 9.0)


def public(name: str) -> ModelFacts:
    return (kaito_models() | aiconfigurator_models())[name].facts()


TOKENS = {
    # Every fourth layer has attention: 16 layers x 4 heads x (256 + 256) values x 2 bytes.
    "Qwen/Qwen3.5-27B": 16 * 4 * 512 * 2,
    # 6 of 52 layers.
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": 6 * 2 * 256 * 2,
    # 12 of 108 layers, which config.json lists without their number; the checkpoint names an fp8 cache.
    "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16": 12 * 2 * 256 * 2,
    # 24 layers with latent attention beside 69 with delta attention.
    "moonshotai/Kimi-K3": 24 * (512 + 64) * 2,
    # 10 full layers with 4 heads of 512, and 50 with a window with 16 heads of 256.
    "nvidia/Gemma-4-31B-IT-NVFP4": 10 * 4 * 1024 * 2 + 50 * 16 * 512 * 2,
    # The last 20 of 35 layers share: of the others 3 are full with one head of 512, and 12 have a window.
    "google/gemma-4-E2B-it": 3 * 1 * 1024 * 2 + 12 * 1 * 512 * 2,
    # The last 18 of 42 layers share: of the others 4 are full with two heads of 512, and 20 have a window.
    "google/gemma-4-E4B-it": 4 * 2 * 1024 * 2 + 20 * 2 * 512 * 2,
    # 8 full layers with one head of 512, and 40 with a window with 8 heads of 256.
    "google/gemma-4-12B-it": 8 * 1 * 1024 * 2 + 40 * 8 * 512 * 2,
    # 6 of 62 layers, and 4 of 42, with 8 heads of 128.
    "nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16": 6 * 8 * 256 * 2,
    "nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16": 4 * 8 * 256 * 2,
    # 6 of 24 layers, with 2 heads of 256.
    "Qwen/Qwen3.5-2B": 6 * 2 * 512 * 2,
    # 9 layers with 4 heads, 39 with a window with 8, padded to 45; keys of 192 and values of 128.
    "XiaomiMiMo/MiMo-V2-Flash": 9 * 4 * 320 * 2 + 45 * 8 * 320 * 2,
    # Latent attention, and an index of 128 bytes with one scale of 4.
    "deepseek-ai/DeepSeek-V3.2": 61 * ((512 + 64) * 2 + 132),
    # 21 of 78 layers have an index of their own, and the others take that of a layer before.
    "zai-org/GLM-5.2": 78 * (512 + 64) * 2 + 21 * 132,
    # 57 of 60 layers have an index of 128 values in 16 bits.
    "MiniMaxAI/MiniMax-M3": 60 * 4 * 256 * 2 + 57 * 256,
    # 49 of 80 layers have attention, with 64 / 8 heads.
    "nvidia/Llama-3_3-Nemotron-Super-49B-v1": 49 * 8 * 256 * 2,
    "Qwen/Qwen3-VL-8B-Instruct": 36 * 8 * 256 * 2,
    "moonshotai/Kimi-K2.5": 61 * (512 + 64) * 2,
    # Mistral's own form, with latent attention.
    "mistralai/Mistral-Large-3-675B-Instruct-2512": 61 * (512 + 64) * 2,
    "mistralai/Ministral-3-8B-Instruct-2512": 34 * 8 * 256 * 2,
}


@pytest.mark.parametrize("name", TOKENS)
def test_bytes_of_a_token_are_those_of_the_layers_that_keep_one(name):
    assert kv_cache(public(name).attention, ONE_STEP).token_bytes == pytest.approx(TOKENS[name])


STATES = {
    # Gated DeltaNet: 48 heads of 128 x 128 in float32, and 3 tokens of (2 x 16 + 48) x 128 channels in 16 bits.
    ("Qwen/Qwen3.5-27B", 1): (48, 48 * 128 * 128 * 4 + 3 * (2 * 16 + 48) * 128 * 2),
    ("Qwen/Qwen3.5-27B", 2): (48, (48 * 128 * 128 * 4 + 3 * (2 * 16 + 48) * 128 * 2) // 2),
    # Mamba-2: 64 heads of 64 x 128, and 3 tokens of 64 x 64 + 2 x 8 x 128 channels.
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 1): (23, 64 * 64 * 128 * 4 + 3 * (4096 + 2048) * 2),
    ("nvidia/NVIDIA-Nemotron-Nano-12B-v2-VL-BF16", 1): (28, 128 * 80 * 128 * 4 + 3 * (128 * 80 + 2 * 8 * 128) * 2),
    ("nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16", 1): (21, 96 * 80 * 128 * 4 + 3 * (96 * 80 + 2 * 8 * 128) * 2),
    ("Qwen/Qwen3.5-2B", 1): (18, 16 * 128 * 128 * 4 + 3 * (2 * 16 + 16) * 128 * 2),
    # 16 GPUs and 8 groups: the groups are extended by 8, which are replicated.
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 16): (23, 4 * 64 * 128 * 4 + 3 * (4096 + 2 * 16 * 128) // 16 * 2),
    # Its config.json has no format of the state: float32 (`NemotronHForCausalLMConfig`).
    ("nvidia/Nemotron-H-56B-Base-8K", 1): (54, 256 * 64 * 256 * 4 + 3 * (16_384 + 2 * 8 * 256) * 2),
    # Kimi Delta Attention: 96 heads of 128 x 128, and 3 tokens of 3 x 96 x 128 channels.
    ("moonshotai/Kimi-K3", 1): (69, 96 * 128 * 128 * 4 + 3 * 3 * 96 * 128 * 2),
}


@pytest.mark.parametrize(("name", "parts"), STATES)
def test_bytes_of_a_recurrent_state_are_those_of_its_heads_and_convolution(name, parts):
    recurrent = public(name).attention.recurrent
    assert (recurrent.layers, state_bytes(recurrent, parts)) == STATES[name, parts]


def test_attention_layers_share_blocks_that_hold_a_state():
    """Qwen3.5-27B: 16 layers with attention, 48 in three groups; a block of attention is as large as a state."""
    state, token = STATES["Qwen/Qwen3.5-27B", 1][1], 4 * 512 * 2
    block_tokens = -(-state // (16 * token)) * 16
    page = block_tokens * token
    cache = kv_cache(public("Qwen/Qwen3.5-27B").attention, ONE_STEP)
    assert cache.state_block == 16 * page
    assert cache.state_bytes == 2 * 48 * page
    assert cache.request_bytes(262_144) == (-(-262_144 // block_tokens) + 2 * 3) * 16 * page


def test_windowed_layers_of_gemma_4_hold_their_window_only():
    """Blocks of layers with 8192 bytes of a token are twice as long as those of layers with 16384."""
    cache = kv_cache(public("google/gemma-4-31B-it").attention, ONE_STEP)
    assert (cache.whole_layers, cache.windowed_layers, cache.window_tokens) == (10, 50, 1023 + 2 * 8192)
    windowed = (-(-(1023 + 2 * 8192) // 16) + 1) * 16 * 50 * 16_384
    assert cache.request_bytes(131_072) == 131_072 * 10 * 8192 + windowed


def test_layers_of_gemma_4_that_share_caches_keep_none():
    layers = [*4 * ["sliding_attention"], "full_attention"] * 6
    text = {"model_type": "gemma4_text", "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 2}
    text |= {"hidden_size": 2048, "head_dim": 256, "global_head_dim": 512, "layer_types": layers, "sliding_window": 512}
    shared = facts_of(
        text | {"num_kv_shared_layers": 10, "max_position_embeddings": 8192}, TensorSums({"BF16": GIB}, 1, 1)
    )
    assert shared.not_computed == []
    assert (shared.attention.key_value_layers, shared.attention.sliding_window.layers) == (20, 16)
    all_shared = facts_of(text | {"num_kv_shared_layers": 30}, TensorSums({"BF16": GIB}, 1, 1))
    assert any("which layers have a window" in clause for clause in all_shared.not_computed)


def test_deepseek_v4_keeps_one_vector_for_several_tokens_and_a_window():
    """21 layers compress 4 tokens, 20 compress 128; all 43 have a window of 128 tokens in pages of 64.

    Pages of 256 tokens: 64 vectors of 584 bytes and as many of the index of 132, rounded up to 576; or 2 vectors.
    """
    facts = public("deepseek-ai/DeepSeek-V4-Flash")
    cache = kv_cache(facts.attention, ONE_STEP)
    per_token = 21 * (37_440 + 8640) / 256 + 20 * 1728 / 256
    assert 64 * 584 <= 37_440 < 64 * 584 + 576
    assert 64 * 132 <= 8640 < 64 * 132 + 576
    grown = cache.request_bytes(1_048_576) - cache.request_bytes(524_288)
    assert grown == pytest.approx(524_288 * per_token)
    assert cache.windowed_layers == 43
    assert cache.token_bytes == pytest.approx(per_token + 43 * 585)


def test_deepseek_v4_in_16_bits_is_not_computed():
    facts = public("deepseek-ai/DeepSeek-V4-Flash")
    assert fit(facts, Serving(kv_cache_dtype="bfloat16"), gpu(500)).answer is FitAnswer.UNKNOWN
    assert fit(facts, Serving(kv_cache_dtype="fp8"), gpu(500)).answer is FitAnswer.FITS


def test_the_fp8_cache_of_sparse_latent_attention_has_scales():
    """656 bytes: 512 in fp8, 4 scales of 4 bytes, 64 in 16 bits (v1/attention/backends/mla/flashmla_sparse.py)."""
    attention = public("deepseek-ai/DeepSeek-V3.2").attention
    assert kv_cache(attention, Serving(kv_cache_dtype="fp8")).token_bytes == pytest.approx(61 * (656 + 132))
    plain = public("deepseek-ai/DeepSeek-V3").attention
    assert kv_cache(plain, Serving(kv_cache_dtype="fp8")).token_bytes == 61 * 576


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        # 48 heads, and 10240 channels, which 12 does not divide.
        ("Qwen/Qwen3.5-27B", (1, 2, 4, 8)),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", (1, 2, 4, 8, 16, 32)),
        ("nvidia/NVIDIA-Nemotron-Nano-9B-v2", (1, 2, 4, 8)),
    ],
)
def test_heads_of_recurrent_layers_are_divided_without_a_remainder(name, parts):
    """`divide` of vLLM ends otherwise."""
    divided = possible(public(name), 32)
    assert set(divided) <= {number for number in range(1, 33) if public(name).attention.recurrent.heads % number == 0}
    assert divided == parts


@pytest.mark.parametrize(
    ("size", "weights", "sequences", "answer"),
    [
        # vLLM ends where fewer blocks of state fit than requests at a time (config/compilation.py).
        pytest.param(H100, 54, None, FitAnswer.UNKNOWN, id="1024 by default on an H100"),
        pytest.param(H100, 54, 128, FitAnswer.FITS, id="128"),
        pytest.param(A100, 54, None, FitAnswer.TIGHT, id="256 by default on an A100"),
        pytest.param(H100, 90, 16, FitAnswer.DOES_NOT_FIT, id="the weights are too large for any"),
    ],
)
def test_states_of_all_requests_at_a_time_must_fit(size, weights, sequences, answer):
    model = aiconfigurator_models()["Qwen/Qwen3.5-27B"].facts(weights * 10**9)
    result = fit(model, Serving(max_model_length=8192, sequences=sequences, inputs_off=frozenset({"*"})), size)
    assert result.answer is answer


def test_the_clause_names_the_requests_at_a_time_that_fit():
    model = aiconfigurator_models()["Qwen/Qwen3.5-27B"].facts(54 * 10**9)
    settings: dict[str, Any] = {"max_model_length": 8192, "inputs_off": frozenset({"*"})}
    (clause,) = fit(model, Serving(**settings), H100).unknown
    most = int(clause.rpartition(" ")[2])
    assert "`--max-num-seqs` to at most" in clause
    assert fit(model, Serving(sequences=most, **settings), H100).answer is FitAnswer.TIGHT


@pytest.mark.parametrize("field", ["recurrent", "index", "compressed", "latent"])
def test_facts_without_what_the_layers_keep_are_not_computed(field):
    """As in facts that a person wrote, or that an earlier release wrote."""
    names = {"recurrent": "Qwen/Qwen3.5-27B", "index": "zai-org/GLM-5", "compressed": "deepseek-ai/DeepSeek-V4-Flash"}
    facts = public(names.get(field, "deepseek-ai/DeepSeek-V3"))
    absent: Any = [] if field == "compressed" else None
    less = facts.model_copy(update={"attention": facts.attention.model_copy(update={field: absent})})
    result = fit(less, Serving(), gpu(1000))
    assert result.answer is FitAnswer.UNKNOWN
    assert any("read them again" in clause for clause in result.unknown)


FALCON_H1 = {"mamba_n_heads": 24, "mamba_d_head": 64, "mamba_d_state": 256, "mamba_n_groups": 1, "mamba_d_conv": 4}
GRANITE_4 = {"mamba_n_heads": 48, "mamba_d_head": 64, "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_d_conv": 4}
COMMON = {"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096, "max_position_embeddings": 8192}


@pytest.mark.parametrize(
    ("config", "attention", "recurrent"),
    [
        # Both kinds in every layer.
        ({"model_type": "falcon_h1", "num_hidden_layers": 36, "mamba_d_ssm": 1536} | FALCON_H1, 36, 36),
        (
            {"model_type": "granitemoehybrid", "num_hidden_layers": 40}
            | {"layer_types": [*36 * ["mamba"], *4 * ["attention"]]}
            | GRANITE_4,
            4,
            36,
        ),
        ({"model_type": "bamba", "num_hidden_layers": 32, "attn_layer_indices": [9, 18, 27]} | GRANITE_4, 3, 29),
        (
            {"model_type": "jamba", "num_hidden_layers": 32, "attn_layer_period": 8, "attn_layer_offset": 4}
            | {"mamba_d_state": 16, "mamba_d_conv": 4, "mamba_expand": 2},
            4,
            28,
        ),
        (
            {"model_type": "lfm2", "num_hidden_layers": 16, "conv_L_cache": 3}
            | {"layer_types": [*10 * ["conv"], *6 * ["full_attention"]]},
            6,
            10,
        ),
        ({"model_type": "lfm2", "num_hidden_layers": 16, "conv_L_cache": 3, "full_attn_idxs": [2, 5, 8]}, 3, 13),
        (
            {"model_type": "qwen3_next", "num_hidden_layers": 48, "full_attention_interval": 4}
            | {"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_num_key_heads": 16}
            | {"linear_num_value_heads": 32, "linear_conv_kernel_dim": 4},
            12,
            36,
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else str(value),
)
def test_layers_of_both_kinds_are_counted_by_each_form_of_config_json(config, attention, recurrent):
    facts = facts_of(COMMON | config, TensorSums({"BF16": 2**33}, 4, 2**31))
    assert facts.not_computed == []
    assert (facts.attention.key_value_layers, facts.attention.recurrent.layers) == (attention, recurrent)
    assert fit(facts, Serving(sequences=8), gpu(80)).answer is FitAnswer.FITS


@pytest.mark.parametrize("family", ["falcon_h1", "granitemoehybrid", "nemotron_h", "jamba", "lfm2", "qwen3_next"])
def test_a_family_without_the_keys_of_its_layers_is_not_computed(family):
    facts = facts_of(COMMON | {"model_type": family, "num_hidden_layers": 32}, TensorSums({"BF16": 2**30}, 1, 2**30))
    assert facts.not_computed
    assert fit(facts, Serving(), gpu(1000)).answer is FitAnswer.UNKNOWN


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Qwen/Qwen3.5-27B", "layer_types"),
        ("google/gemma-4-26B-A4B", "layer_types"),
        ("nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16", "layers_block_type"),
        ("zai-org/GLM-5.2-FP8", "layer_types"),
        ("openai/gpt-oss-20b", "layer_types"),
    ],
)
@pytest.mark.parametrize("kind", ["of_tomorrow", "deepseek_sparse_attention"])
def test_a_layer_of_another_kind_is_not_computed(name, key, kind):
    model = aiconfigurator_models()[name]
    text = dict(model.config.get("text_config", model.config))
    text[key] = [kind, *text.get(key, ["full_attention"] * 78)[1:]]
    config = model.config | ({"text_config": text} if "text_config" in model.config else text)
    facts = facts_of(config, TensorSums({"BF16": 2**33}, 4, 2**31))
    is_covered = name.startswith("zai-org") and kind == "deepseek_sparse_attention"
    assert bool(facts.not_computed) is not is_covered

"""Popular models by the keys of their published config.json: bytes of one token, and the context.

The products are written out: layers x (key and value) x key-value heads x length of a head x 2 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.catalogue import sizes
from hermetic.sizing.facts import TensorSums, facts_of
from hermetic.sizing.kv_cache import kv_cache
from hermetic.sizing.memory import FitAnswer, fit
from hermetic.sizing.parallelism import possible
from hermetic.sizing.serving import Serving
from tests.model_configs import DEEPSEEK_V3

FP8 = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}


def shape(layers: int, heads: int, key_value_heads: int, hidden: int, **others: Any) -> dict[str, Any]:
    return {
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "hidden_size": hidden,
    } | others


@dataclass(frozen=True)
class Published:
    """The config of one model, and what follows from it by hand; `windowed` of its layers keep a window only."""

    config: dict[str, Any]
    token_bytes: int
    context: int
    windowed: int = 0
    images: bool = False

    @property
    def facts(self) -> ModelFacts:
        return facts_of(self.config | {"torch_dtype": "bfloat16"}, TensorSums({"BF16": 2**34}, 4, 2**32))


QWEN3_30B = shape(48, 32, 4, 2048, head_dim=128, num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768)
GLM_AIR = shape(46, 96, 8, 4096, head_dim=128, n_routed_experts=128, num_experts_per_tok=8, moe_intermediate_size=1408)
KIMI = DEEPSEEK_V3 | shape(61, 64, 64, 7168, n_routed_experts=384, max_position_embeddings=131_072)
SMALL = shape(40, 32, 8, 5120, head_dim=128, model_type="mistral", max_position_embeddings=131_072, sliding_window=None)
OSS = shape(24, 64, 8, 2880, head_dim=64, num_local_experts=32, num_experts_per_tok=4, sliding_window=128)
GEMMA = shape(62, 32, 16, 5376, head_dim=128, model_type="gemma3_text", sliding_window=1024)
HUNYUAN = shape(32, 32, 8, 4096, head_dim=128, num_experts=64, intermediate_size=3072, max_position_embeddings=32_768)
QWEN_VL = shape(28, 28, 4, 3584, max_position_embeddings=128_000, use_sliding_window=False, sliding_window=32_768)
YARN = {"type": "yarn", "original_max_position_embeddings": 4096}
LINEAR = {"rope_type": "linear", "factor": 8.0}
DYNAMIC = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0, "beta_fast": 32}

LOCAL_LOCAL_LOCAL_GLOBAL = ["sliding_attention"] * 3 + ["full_attention"]
EXAONE = shape(64, 40, 8, 5120, head_dim=128, sliding_window=4096, layer_types=LOCAL_LOCAL_LOCAL_GLOBAL * 16)
OLMO3 = shape(32, 32, 32, 4096, sliding_window=4096, layer_types=LOCAL_LOCAL_LOCAL_GLOBAL * 8)
MINISTRAL = shape(34, 32, 8, 4096, head_dim=128, model_type="ministral3", max_position_embeddings=262_144)
V2_LITE = shape(27, 16, 16, 2048, kv_lora_rank=512, qk_rope_head_dim=64, n_routed_experts=64, num_experts_per_tok=6)
ERNIE = shape(28, 20, 4, 2560, head_dim=None, moe_num_experts=64, moe_k=6, moe_intermediate_size=1536)
MIXTRAL = shape(32, 32, 8, 4096, num_local_experts=8, num_experts_per_tok=2, sliding_window=None)
MINIMAX = shape(62, 48, 8, 3072, head_dim=128, intermediate_size=1536, num_local_experts=256, num_experts_per_tok=8)

MODELS = {
    "Mixtral-8x7B": Published(
        MIXTRAL | {"model_type": "mixtral", "max_position_embeddings": 32_768}, 32 * 2 * 8 * 128 * 2, 32_768
    ),
    # Every second layer has a window.
    "gemma-2-9b": Published(
        shape(42, 16, 8, 3584, head_dim=256, model_type="gemma2", sliding_window=4096, max_position_embeddings=8192),
        42 * 2 * 8 * 256 * 2,
        8192,
        windowed=21,
    ),
    "Seed-OSS-36B": Published(
        shape(64, 80, 8, 5120, head_dim=128, model_type="seed_oss", max_position_embeddings=524_288)
        | {"rope_scaling": {"rope_type": "default"}},
        64 * 2 * 8 * 128 * 2,
        524_288,
    ),
    "EXAONE-4.0-32B": Published(
        EXAONE
        | {"model_type": "exaone4", "max_position_embeddings": 131_072, "sliding_window_pattern": "LLLG"}
        | {"rope_scaling": {"rope_type": "llama3", "factor": 16.0, "original_max_position_embeddings": 8192}},
        64 * 2 * 8 * 128 * 2,
        131_072,
        windowed=48,
    ),
    "MiniMax-M2": Published(
        MINIMAX | {"model_type": "minimax_m2", "max_position_embeddings": 196_608, "quantization_config": FP8},
        62 * 2 * 8 * 128 * 2,
        196_608,
    ),
    "SmolLM3-3B": Published(
        shape(36, 16, 4, 2048, model_type="smollm3", max_position_embeddings=65_536, use_sliding_window=False),
        36 * 2 * 4 * 128 * 2,
        65_536,
    ),
    "ERNIE-4.5-21B-A3B": Published(
        ERNIE | {"model_type": "ernie4_5_moe", "max_position_embeddings": 131_072}, 28 * 2 * 4 * 128 * 2, 131_072
    ),
    "Olmo-3-7B": Published(
        OLMO3
        | {"model_type": "olmo3", "max_position_embeddings": 65_536}
        | {"rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8192}},
        32 * 2 * 32 * 128 * 2,
        65_536,
        windowed=24,
    ),
    "DeepSeek-V2-Lite": Published(
        V2_LITE
        | {"model_type": "deepseek_v2", "max_position_embeddings": 163_840, "rope_scaling": YARN | {"factor": 40}},
        27 * (512 + 64) * 2,
        163_840,
    ),
    "Qwen3-8B": Published(
        shape(36, 32, 8, 4096, head_dim=128, model_type="qwen3", max_position_embeddings=40_960),
        36 * 2 * 8 * 128 * 2,
        40_960,
    ),
    "Llama-3-70B": Published(
        shape(80, 64, 8, 8192, model_type="llama", max_position_embeddings=8192), 80 * 2 * 8 * 128 * 2, 8192
    ),
    "Ministral-3-8B": Published(
        {
            "model_type": "mistral3",
            "text_config": MINISTRAL
            | {"rope_parameters": {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 16_384}},
            "vision_config": {"model_type": "pixtral"},
        },
        34 * 2 * 8 * 128 * 2,
        262_144,
        images=True,
    ),
    "Qwen3-30B-A3B": Published(
        QWEN3_30B | {"model_type": "qwen3_moe", "max_position_embeddings": 40_960, "sliding_window": None},
        48 * 2 * 4 * 128 * 2,
        40_960,
    ),
    "GLM-4.5-Air": Published(
        GLM_AIR | {"model_type": "glm4_moe", "max_position_embeddings": 131_072, "rope_scaling": None},
        46 * 2 * 8 * 128 * 2,
        131_072,
    ),
    "Kimi-K2": Published(
        KIMI | {"model_type": "kimi_k2", "rope_scaling": YARN | {"factor": 32.0}}, 61 * (512 + 64) * 2, 131_072
    ),
    "DeepSeek-V3.1": Published(
        DEEPSEEK_V3 | {"quantization_config": FP8 | {"scale_fmt": "ue8m0"}}, 61 * (512 + 64) * 2, 163_840
    ),
    "Mistral-Small-3.2": Published(
        {"model_type": "mistral3", "text_config": SMALL, "vision_config": {"model_type": "pixtral"}},
        40 * 2 * 8 * 128 * 2,
        131_072,
        images=True,
    ),
    "Phi-4": Published(
        shape(40, 40, 10, 5120)
        | {"model_type": "phi3", "max_position_embeddings": 16_384, "original_max_position_embeddings": 16_384},
        40 * 2 * 10 * 128 * 2,
        16_384,
    ),
    "gpt-oss-20b": Published(
        OSS
        | {
            "model_type": "gpt_oss",
            "layer_types": ["sliding_attention", "full_attention"] * 12,
            "max_position_embeddings": 131_072,
            "rope_scaling": YARN | {"factor": 32.0},
            "quantization_config": {"quant_method": "mxfp4"},
        },
        24 * 2 * 8 * 64 * 2,
        131_072,
        windowed=12,
    ),
    # Its config.json says no length; of every six layers, five have a window.
    "gemma-3-27b": Published(
        {
            "model_type": "gemma3",
            "text_config": GEMMA | {"rope_scaling": LINEAR},
            "vision_config": {"hidden_size": 1152},
        },
        # 10 whole layers and 52 with a window are put into groups of ten, the last padded.
        (10 + 60) * 2 * 16 * 128 * 2,
        131_072,
        windowed=60,
        images=True,
    ),
    "Qwen2.5-VL-7B": Published(
        QWEN_VL | {"model_type": "qwen2_5_vl", "rope_scaling": {"type": "mrope"}, "vision_config": {"depth": 32}},
        28 * 2 * 4 * 128 * 2,
        128_000,
        images=True,
    ),
    "Hunyuan-A13B": Published(
        HUNYUAN
        | {
            "model_type": "hunyuan_v1_moe",
            "moe_topk": [8] * 32,
            "moe_intermediate_size": [3072] * 32,
            "rope_scaling": DYNAMIC,
        },
        32 * 2 * 8 * 128 * 2,
        32_768,
    ),
    "Command-R": Published(
        shape(40, 64, 64, 8192, model_type="cohere", max_position_embeddings=8192, model_max_length=131_072),
        40 * 2 * 64 * 128 * 2,
        131_072,
    ),
    "Command-R+": Published(
        shape(64, 96, 8, 12_288, model_type="cohere", max_position_embeddings=8192, model_max_length=131_072),
        64 * 2 * 8 * 128 * 2,
        131_072,
    ),
    "Falcon-7B": Published(
        {
            "model_type": "falcon",
            "num_hidden_layers": 32,
            "num_attention_heads": 71,
            "hidden_size": 4544,
            "multi_query": True,
            "new_decoder_architecture": False,
        },
        32 * 2 * 1 * 64 * 2,
        2048,
    ),
    "Falcon-40B": Published(
        {
            "model_type": "falcon",
            "num_hidden_layers": 60,
            "num_attention_heads": 128,
            "num_kv_heads": 8,
            "hidden_size": 8192,
            "multi_query": True,
            "new_decoder_architecture": True,
        },
        60 * 2 * 8 * 64 * 2,
        2048,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_bytes_of_a_token_and_the_context_follow_from_the_published_config(name):
    published, facts = MODELS[name], MODELS[name].facts
    cache = kv_cache(facts.attention, Serving())
    assert (cache.token_bytes, cache.windowed_layers) == (published.token_bytes, published.windowed)
    assert facts.max_model_length == published.context


@pytest.mark.parametrize("name", MODELS)
def test_the_text_of_each_is_computed_and_an_encoder_without_dimensions_is_said(name):
    facts, gpu = MODELS[name].facts, sizes()["Standard_ND128isr_GB300_v6"].gpu
    assert (facts.not_computed, bool(facts.encoders)) == ([], MODELS[name].images)
    is_named = any("image" in clause for clause in fit(facts, Serving(), gpu).unknown)
    assert is_named is MODELS[name].images
    assert fit(facts, Serving(inputs_off=frozenset({"*"})), gpu).answer in {FitAnswer.FITS, FitAnswer.TIGHT}


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("Phi-4", (1, 2, 5, 10)),
        ("GLM-4.5-Air", (1, 2, 4, 8, 16)),
        ("Falcon-7B", (1,)),
        # 8 GPUs need `--enable-expert-parallel`, as the model's own guide says for vLLM.
        ("MiniMax-M2", (1, 2, 4)),
    ],
)
def test_the_numbers_of_gpus_that_work(name, sizes):
    assert possible(MODELS[name].facts, 16) == sizes


LINEAR_LAYERS = ["linear_attention"] * 3 + ["full_attention"]
# Published models without the keys that describe what their layers keep, or of families that are not covered.
NOT_COVERED = {
    "Qwen3.5-9B": {"model_type": "qwen3_5", "text_config": shape(32, 16, 4, 4096, layer_types=LINEAR_LAYERS * 8)},
    "Qwen3-Next-80B-A3B": shape(48, 16, 2, 2048, head_dim=256, model_type="qwen3_next"),
    "DeepSeek-V3.2": DEEPSEEK_V3 | {"model_type": "deepseek_v32", "index_topk": 2048},
    "Nemotron-H-8B": shape(52, 32, 8, 4096, model_type="nemotron_h"),
    "LFM2-1.2B": shape(16, 32, 8, 2048, model_type="lfm2"),
    "Jamba-v0.1": shape(32, 32, 8, 4096, model_type="jamba"),
    "gemma-3n-E4B": shape(35, 8, 2, 2048, head_dim=256, model_type="gemma3n_text"),
}


@pytest.mark.parametrize("name", NOT_COVERED)
def test_a_published_model_that_the_formula_does_not_cover_is_never_called_a_fit(name):
    """The GPU is large enough for any of them."""
    config = NOT_COVERED[name] | {"max_position_embeddings": 40_960, "torch_dtype": "bfloat16"}
    facts = facts_of(config, TensorSums({"BF16": 2**30}, 1, 2**30))
    assert fit(facts, Serving(), sizes()["Standard_NC24ads_A100_v4"].gpu).answer is FitAnswer.UNKNOWN


@pytest.mark.parametrize(
    ("name", "gigabytes", "gpus", "answer"),
    [
        # The model card asks for 100 GB of GPU memory in 16 bits.
        ("Mixtral-8x7B", 93.4, 1, FitAnswer.DOES_NOT_FIT),
        ("Mixtral-8x7B", 93.4, 2, FitAnswer.FITS),
        # The model's guide names four GPUs of 96 GB; two of 80 GB are too few.
        ("MiniMax-M2", 230.0, 2, FitAnswer.DOES_NOT_FIT),
        ("gemma-2-9b", 18.5, 1, FitAnswer.FITS),
        # One request of 512k tokens takes 128 GiB beside 72 GB of weights.
        ("Seed-OSS-36B", 72.3, 1, FitAnswer.DOES_NOT_FIT),
    ],
)
def test_on_how_many_a100_of_80_gb_they_fit(name, gigabytes, gpus, answer):
    config, weight_bytes = MODELS[name].config | {"torch_dtype": "bfloat16"}, int(gigabytes * 10**9)
    facts = facts_of(config, TensorSums({"BF16": weight_bytes}, 16, weight_bytes // 16))
    gpu = sizes()["Standard_NC24ads_A100_v4"].gpu
    assert fit(facts, Serving(tensor_parallel=gpus), gpu).answer is answer

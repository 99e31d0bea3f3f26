"""config.json of public models, the keys that decide memory, and the bytes of their published weights."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from hermetic.api.model_facts import ModelFacts
from hermetic.sizing.facts import TensorSums, facts_of

Config = dict[str, Any]

LLAMA_3 = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192},
    "torch_dtype": "bfloat16",
    "num_key_value_heads": 8,
}
LLAMA_8B: Config = LLAMA_3 | {
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "hidden_size": 4096,
    "intermediate_size": 14336,
}
LLAMA_70B: Config = LLAMA_3 | {
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "hidden_size": 8192,
    "intermediate_size": 28672,
}
LLAMA_405B: Config = LLAMA_3 | {
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "hidden_size": 16384,
    "intermediate_size": 53248,
}
DEEPSEEK_V3: Config = {
    "model_type": "deepseek_v3",
    "architectures": ["DeepseekV3ForCausalLM"],
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "max_position_embeddings": 163840,
    "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096},
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]},
}
GPT_OSS_120B: Config = {
    "model_type": "gpt_oss",
    "architectures": ["GptOssForCausalLM"],
    "num_hidden_layers": 36,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 18,
    "max_position_embeddings": 131072,
    "quantization_config": {"quant_method": "mxfp4"},
}
QWEN3_235B_FP8: Config = {
    "model_type": "qwen3_moe",
    "num_hidden_layers": 94,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "max_position_embeddings": 40960,
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
LLAMA_8B_BYTES = 16_060_522_496
LLAMA_70B_BYTES = 141_107_412_992
LLAMA_405B_BYTES = 811_706_916_864
DEEPSEEK_V3_BYTES = 688_586_727_753
GPT_OSS_120B_BYTES = 65_248_815_744
QWEN3_235B_FP8_BYTES = 236_400_000_000


def facts(config: Config, total: int, shards: int = 16) -> ModelFacts:
    """The facts of a model whose tensors take so many bytes."""
    return facts_of(config, TensorSums({"BF16": total}, shards, -(-total // shards)))


def safetensors(tensors: dict[str, tuple[str, int]]) -> bytes:
    """A safetensors file with tensors of these formats and sizes in bytes, all of them zeros."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, (number_format, size) in tensors.items():
        header[name] = {"dtype": number_format, "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(offset)


def model_folder(folder: Path, config: Any, shards: dict[str, dict[str, tuple[str, int]]]) -> Path:
    """A folder with config.json and these safetensors files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    for name, tensors in shards.items():
        (folder / name).write_bytes(safetensors(tensors))
    return folder

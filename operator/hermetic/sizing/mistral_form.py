"""Mistral's own form of a model's configuration, params.json, by the keys of config.json.

The rules are those of `adapt_config_dict` in vllm/transformers_utils/configs/mistral.py
(https://github.com/vllm-project/vllm). Values are passed on as they are: `facts_of` checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KEYS = {
    "dim": "hidden_size",
    "n_kv_heads": "num_key_value_heads",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
}
EXPERT_KEYS = {
    "num_experts": "num_local_experts",
    "num_experts_per_tok": "num_experts_per_tok",
    "expert_hidden_dim": "moe_intermediate_size",
}
ENCODER_KEYS = ("multimodal", "vision_encoder")
DEFAULT_CONTEXT = 128_000
LATENT = "qk_nope_head_dim"


def config_of_params(params: object) -> object:
    """The content of config.json that says the same; any other value as it is."""
    if not isinstance(params, dict):
        return params
    text = _renamed(params)
    text["model_type"] = _model_type(params)
    text["max_position_embeddings"] = params.get("max_position_embeddings", params.get("max_seq_len", DEFAULT_CONTEXT))
    experts = params.get("moe")
    if isinstance(experts, dict):
        text |= {new: experts[old] for old, new in EXPERT_KEYS.items() if old in experts}
    _set_windows(text)
    if isinstance(yarn := params.get("yarn"), dict):
        text["rope_parameters"] = {"rope_type": "yarn"} | yarn
    quantization = _quantization(params.get("quantization"))
    top: dict[str, Any] = {"architectures": ["MistralForCausalLM"]}
    top |= {} if quantization is None else {"quantization_config": quantization}
    encoder = next((value for key in ENCODER_KEYS if (value := params.get(key))), None)
    if encoder is None:
        return text | top
    return top | {"model_type": "pixtral", "text_config": text} | _encoder(encoder)


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    left_out = {*ENCODER_KEYS, "moe", "yarn", "quantization", "max_seq_len"}
    return {KEYS.get(key, key): value for key, value in params.items() if isinstance(key, str) and key not in left_out}


def _model_type(params: Mapping[str, Any]) -> str:
    """Latent attention makes it a DeepSeek-V3, experts a Mixtral, as they do for vLLM."""
    if params.get("model_type") == "mamba":
        return "mamba2"
    if params.get(LATENT):
        return "deepseek_v3"
    return "mixtral" if params.get("moe") else "mistral"


def _set_windows(text: dict[str, Any]) -> None:
    """A list of windows describes a pattern of layers, of which null is a layer without."""
    windows, layers = text.get("sliding_window"), text.get("num_hidden_layers")
    if not isinstance(windows, list) or not windows or type(layers) is not int or not 0 < layers <= 10_000:
        return
    pattern = ["full_attention" if window is None else "sliding_attention" for window in windows]
    text["layer_types"] = (pattern * (layers // len(pattern) + 1))[:layers]
    text["sliding_window"] = next((window for window in windows if window is not None), None)


def _quantization(stated: object) -> object:
    if not isinstance(stated, dict):
        return stated
    if stated.get("qformat_weight") == "fp8_e4m3":
        return {"quant_method": "fp8"}
    return stated


def _encoder(stated: object) -> dict[str, Any]:
    """`vision_config`, or `audio_config` for an encoder of sound, in either form that params.json has."""
    if not isinstance(stated, dict):
        return {"vision_config": {}}
    if isinstance(stated.get("whisper_model_args"), dict):
        return {"audio_config": stated["whisper_model_args"]}
    vision = stated.get("vision_encoder_args", stated)
    return {"vision_config": vision if isinstance(vision, dict) else {}}

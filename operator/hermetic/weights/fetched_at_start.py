"""What an engine would fetch, or miss, when it starts on a model: told when the model is staged.

Notes and no refusals: a release of an engine may bring what another one fetches.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hermetic.weights.adapter_configuration import CONFIGURATION as ADAPTER
from hermetic.weights.adapter_configuration import rank_for
from hermetic.weights.remote_code import configuration_at
from hermetic.weights.tree import Tree

VOCABULARY = "o200k_base.tiktoken"
"""Of gpt-oss: openai-harmony reads it from TIKTOKEN_ENCODINGS_BASE, and else fetches it."""
_STORE = "https://openaipublic.blob.core.windows.net/encodings"
_TOKENIZER = re.compile(
    r"tokenizer\.json|tokenizer\.model(?:\.v.*)?|tekken.*\.json|vocab\.(?:json|txt)|spiece\.model|.*\.tiktoken|.*bpe\.model"
    r"|tokenization_.*\.py|.*\.gguf|sentencepiece.*"
)
# Keys of config.json whose repository an engine opens beside the model: `UltravoxConfig` of vLLM
# (vllm/transformers_utils/configs/ultravox.py), the vision tower of the LLaVA repositories, backbones of timm.
_REPOSITORIES = (
    "text_model_id", "audio_model_id", "mm_vision_tower", "vision_tower", "llm_model_name_or_path",
    "vision_model_name_or_path",
)  # fmt: skip
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")


def notes_on_start(tree: Tree) -> list[str]:
    """One line for each thing, with what to do about it."""
    config = configuration_at(tree, "", "config.json")
    return [*_notes_on_files(tree, config), *(_notes_on(tree, config) if isinstance(config, dict) else ())]


def _notes_on_files(tree: Tree, config: Any) -> Iterator[str]:
    names = {item.path for item in tree.walk() if "/" not in item.path}
    has_safetensors = any(name.endswith(".safetensors") for name in names)
    if any(name.endswith(".gguf") for name in names) and not has_safetensors:
        yield (
            "the weights are in GGUF alone: vLLM opens such a file by its name, which a ModelDeployment cannot give; "
            "stage the model in safetensors"
        )
    adapter = configuration_at(tree, "", ADAPTER)
    if isinstance(adapter, dict) and config is None:
        base = str(adapter.get("base_model_name_or_path", ""))[:200]
        rank = rank_for(adapter)
        with_rank = f" with `rank: {rank}`" if rank is not None else ""
        yield (
            f"this is an adapter of {base or 'another model'}: an engine loads it beside that model, and nothing "
            f"proves that it was trained on it; name its folder in `adapters` of the model's ModelDeployment{with_rank}"
        )
    elif config is not None and has_safetensors and not any(_TOKENIZER.fullmatch(name) for name in names):
        yield "no tokenizer is at the top of the folder: a model of language does not start without one"


def _notes_on(tree: Tree, config: dict[str, Any]) -> Iterator[str]:
    if config.get("model_type") == "gpt_oss" and tree.lstat(VOCABULARY) is None:
        yield (
            f"gpt-oss without {VOCABULARY}: vLLM 0.24 to 0.30 would fetch its vocabulary from {_STORE}, and end "
            f"minutes after its start; vLLM 0.31 and later bring it. In the folder of the model on the connected "
            f"machine: curl -fO {_STORE}/{VOCABULARY}"
        )
    speculators = config.get("speculators_config")
    verifier = speculators.get("verifier") if isinstance(speculators, dict) else None
    if isinstance(verifier, dict) and isinstance(name := verifier.get("name_or_path"), str):
        yield (
            f"this is a draft model: as the model of a deployment vLLM would fetch {name[:200]}; stage it in a folder "
            "of that model, and name the folder in --speculative-config"
        )
    for key in _REPOSITORIES:
        if isinstance(name := config.get(key), str) and _REPOSITORY.fullmatch(name):
            yield (
                f"config.json names the repository {name} in {key}: an engine that opens it would fetch it; stage that "
                "model in a folder beside the weights, and name the folder as /weights/FOLDER in its place"
            )
    if config.get("use_pretrained_backbone") is True and isinstance(name := config.get("backbone"), str):
        yield f"config.json has use_pretrained_backbone: {name[:200]} would be fetched; set it to false"

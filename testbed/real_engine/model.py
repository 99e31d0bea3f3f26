"""Run by the real engine's Python: writes a tiny Llama with random weights and a tokenizer. Nothing is fetched.

python -I model.py FOLDER
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

TEXT = ("You are a helpful assistant. ", "the quick brown fox jumps over the lazy dog ", "Are you private? ")
TEMPLATE = "{% for m in messages %}<s>{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant: "


def main() -> None:
    folder = Path(sys.argv[1])
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    _tokenizer(transformers).save_pretrained(folder)
    torch.manual_seed(0)
    shape = transformers.LlamaConfig(
        vocab_size=1024, hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, head_dim=32, max_position_embeddings=8192, bos_token_id=0, eos_token_id=1,
        pad_token_id=2, tie_word_embeddings=False,
    )  # fmt: skip
    # Two shards: a model of one file has no index that could name a missing one.
    transformers.LlamaForCausalLM(shape).to(torch.bfloat16).save_pretrained(folder, max_shard_size="3MB")
    for file in folder.iterdir():
        file.chmod(0o644)


def _tokenizer(transformers: Any) -> Any:
    tokenizers = importlib.import_module("tokenizers")
    pairs = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=False))
    pairs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    pairs.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=1024,
        special_tokens=["<s>", "</s>", "<pad>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    pairs.train_from_iterator([text * 50 for text in TEXT], trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=pairs, bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    fast.chat_template = TEMPLATE
    return fast


if __name__ == "__main__":
    main()

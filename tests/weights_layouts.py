"""Folders as download tools and publishers leave them, and what can be wrong with one: for tests of staging.

Layouts: the pages of huggingface_hub ("Understand caching", "Download files"), ModelScope, NGC and NIM, and the file
lists of public repositories that each function names.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.model_configs import LLAMA_8B
from tests.weights import a_shard

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"4d7a" * 16 + b"\nsize 9085657\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Proxy</body></html>\n"
STORAGE_ERROR = b'<?xml version="1.0" encoding="utf-8"?><Error><Code>AuthenticationFailed</Code></Error>'
TEMPLATE = "{%- for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}"


def tokenizer_json(token_count: int = 40) -> bytes:
    vocabulary = {f"töken{number}": number for number in range(token_count)}
    merges = [[f"a{number}", f"b{number}"] for number in range(token_count)]
    model = {"type": "BPE", "vocab": vocabulary, "merges": merges}
    return json.dumps({"version": "1.0", "added_tokens": [], "model": model}, indent=2, ensure_ascii=False).encode()


def sentencepiece(pieces: int = 30) -> bytes:
    """A ModelProto: pieces (field 1), the specification of the trainer (2) and of the normalizer (3)."""
    fields = [(1, bytes((10, 3)) + f"p{number:02d}".encode()) for number in range(pieces)]
    fields += [(2, b"\x0a\x04text"), (3, b"\x0a\x04nmt_")]
    return b"".join(bytes((number << 3 | 2, len(content))) + content for number, content in fields)


def ranks(count: int = 200) -> bytes:
    lines = (f"{base64.b64encode(f'word{number}'.encode()).decode()} {number}" for number in range(count))
    return "\n".join(lines).encode() + b"\n"


def gguf(elements: int = 64) -> bytes:
    """Version 3 with one text, one list of texts, and one tensor of 32-bit numbers."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    entries = text("general.architecture") + struct.pack("<I", 8) + text("llama")
    tokens = b"".join(text(f"w{number}") for number in range(50))
    entries += text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 50) + tokens
    tensor = text("token_embd.weight") + struct.pack("<IQIQ", 1, elements, 0, 0)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 2) + entries + tensor
    return header + bytes(-len(header) % 32) + os.urandom(4 * elements)


def _write(folder: Path, files: Mapping[str, bytes | str | Mapping[str, object] | Sequence[object]]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


def _sharded(folder: Path, stem: str = "model", count: int = 3, index: str = "model.safetensors.index.json") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weight_map: dict[str, str] = {}
    for number in range(1, count + 1):
        name = f"{stem}-{number:05d}-of-{count:05d}.safetensors"
        weight_map |= dict.fromkeys(a_shard(folder / name, tensors=2, size=64, seed=number), name)
    if index:
        (folder / index).write_text(json.dumps({"metadata": {"total_size": 128 * count}, "weight_map": weight_map}))


def download(folder: Path) -> Path:
    """`hf download --local-dir`: the files, and what the tool remembers of them."""
    _sharded(folder)
    return _write(folder, {
        "config.json": LLAMA_8B, "generation_config.json": {"do_sample": True}, "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": TEMPLATE},
        "special_tokens_map.json": {"eos_token": "</s>"}, "chat_template.jinja": TEMPLATE,
        "README.md": "<div align='center'>\n<h1>Model</h1>\n", "LICENSE": "Not Found is a word in it",
        ".gitattributes": "*.safetensors filter=lfs\n", ".cache/huggingface/.gitignore": "*",
        ".cache/huggingface/download/config.json.metadata": "abc\netag\n1\n",
        ".cache/huggingface/download/x.lock": "", ".cache/huggingface/download/y.incomplete": "part",
    })  # fmt: skip


def snapshot(folder: Path) -> Path:
    """`snapshots/REVISION` of a Hugging Face cache, with links into its blobs."""
    plain = download(folder / "plain")
    cache = folder / "models--meta--llama"
    at = cache / "snapshots" / "0123abcd"
    for number, path in enumerate(sorted(path for path in plain.rglob("*") if path.is_file())):
        name = path.relative_to(plain)
        if name.parts[0] == ".cache":
            continue
        (cache / "blobs").mkdir(parents=True, exist_ok=True)
        (at / name).parent.mkdir(parents=True, exist_ok=True)
        path.rename(cache / "blobs" / f"{number:040x}")
        (at / name).symlink_to(Path("../" * (len(name.parts) + 1)) / "blobs" / f"{number:040x}")
    _write(cache, {"refs/main": "0123abcd"})
    return at


def clone(folder: Path) -> Path:
    """`git clone` with the objects of git-lfs, and a token in the address of the remote."""
    download(folder)
    token = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"
    return _write(folder, {
        ".git/config": f'[remote "origin"]\n\turl = https://user:{token}@huggingface.co/meta/llama\n',
        ".git/HEAD": "ref: refs/heads/main\n", ".git/lfs/objects/ab/cd/abcd": b"weights again",
        ".git/hooks/pre-push": "#!/bin/sh\n", ".gitignore": "*.pyc\n", ".gitmodules": "",
    })  # fmt: skip


def modelscope(folder: Path) -> Path:
    """A folder of ModelScope's cache."""
    download(folder)
    return _write(folder, {
        "configuration.json": {"framework": "Pytorch", "task": "text-generation"},
        ".msc": b"\x80\x04pickle", ".mv": "v1",
        ".mdl": b"\x80\x04pickle", "._____temp/model-00009.safetensors": b"part",
    })  # fmt: skip


def awq(folder: Path) -> Path:
    """AutoAWQ: one file, and its own configuration beside the one of transformers."""
    folder.mkdir(parents=True)
    a_shard(folder / "model.safetensors", tensors=2, size=64)
    return _write(folder, {
        "config.json": LLAMA_8B | {"quantization_config": {"quant_method": "awq", "bits": 4}},
        "quant_config.json": {"w_bit": 4}, "tokenizer.json": tokenizer_json(), "added_tokens.json": {},
        "vocab.json": {"a": 0}, "merges.txt": "#version: 0.2\na b\nc d\n",
    })  # fmt: skip


def gptq(folder: Path) -> Path:
    folder.mkdir(parents=True)
    a_shard(folder / "model-00001-of-00001.safetensors", tensors=2, size=64)
    return _write(folder, {
        "config.json": LLAMA_8B | {"quantization_config": {"quant_method": "gptq", "bits": 4}},
        "quantize_config.json": {"bits": 4}, "tokenizer.model": sentencepiece(),
        "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer", "chat_template": [
            {"name": "default", "template": TEMPLATE},
            {"name": "tool_use", "template": "{% for a in b %}{% break %}{% endfor %}"},
        ]},
    })  # fmt: skip


def gguf_only(folder: Path) -> Path:
    return _write(folder, {"model-Q4_K_M.gguf": gguf(), "README.md": "-", "config.json": {"model_type": "llama"}})


def mistral(folder: Path) -> Path:
    """Mistral's own form: consolidated files, params.json and tekken.json, with an index of its own."""
    _sharded(folder, "consolidated", 2, "consolidated.safetensors.index.json")
    tekken = {"config": {"pattern": "x"}, "vocab": [{"rank": 0, "token_bytes": "AA=="}], "special_tokens": []}
    return _write(folder, {"params.json": {"dim": 4096, "n_layers": 32}, "tekken.json": tekken})


ADAPTER = {
    "base_model_name_or_path": "meta/llama", "peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 8, "lora_alpha": 16,
    "target_modules": ["q_proj", "v_proj"], "bias": "none", "modules_to_save": None, "use_dora": False,
    "use_rslora": False, "lora_bias": False, "rank_pattern": {}, "alpha_pattern": {}, "init_lora_weights": True,
}  # fmt: skip
"""As `LoraConfig` of PEFT writes it (src/peft/tuners/lora/config.py)."""


def lora(folder: Path) -> Path:
    folder.mkdir(parents=True)
    a_shard(folder / "adapter_model.safetensors", tensors=2, size=64)
    return _write(folder, {"adapter_config.json": ADAPTER, "README.md": "-"})


def with_adapters(folder: Path) -> Path:
    """A model with an adapter and a draft model below it, as a deployment names them."""
    download(folder)
    lora(folder / "adapters" / "sql")
    awq(folder / "draft")
    return folder


def llama_2(folder: Path) -> Path:
    _sharded(folder, count=2)
    return _write(folder, {
        "config.json": LLAMA_8B, "tokenizer.model": sentencepiece(), "tokenizer.json": tokenizer_json(),
        "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer"}, "pytorch_model.bin.index.json": {
            "metadata": {}, "weight_map": {"a": "pytorch_model-00001-of-00002.bin"}},
    })  # fmt: skip


def qwen(folder: Path) -> Path:
    """Ranks of tiktoken, and code of a family that engines have classes of their own for."""
    _sharded(folder, count=2)
    return _write(folder, {
        "config.json": {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "auto_map": {
            "AutoConfig": "configuration_qwen.QwenConfig", "AutoModelForCausalLM": "org/other--modeling_qwen.Qwen"}},
        "qwen.tiktoken": ranks(), "vocab.txt": "a\nb\n",
        "tokenizer_config.json": {"tokenizer_class": "Qwen2Tokenizer", "auto_map": {"AutoTokenizer": ["tok.Q", None]}},
    })  # fmt: skip


def deepseek(folder: Path) -> Path:
    """DeepSeek-V3: `auto_map` in config.json, shards counted to 163 with six digits."""
    folder.mkdir(parents=True)
    for number in (1, 2):
        a_shard(folder / f"model-{number:05d}-of-000002.safetensors", tensors=1, size=64, seed=number)
    return _write(folder, {
        "config.json": {"model_type": "deepseek_v3", "auto_map": {"AutoConfig": "configuration_ds.V3Config"}},
        "tokenizer.json": tokenizer_json(), "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizerFast"},
    })  # fmt: skip


def sentence_transformers(folder: Path) -> Path:
    folder.mkdir(parents=True)
    a_shard(folder / "model.safetensors", tensors=2, size=64)
    return _write(folder, {
        "config.json": {"model_type": "bert"},
        "modules.json": [{"idx": 0, "type": "sentence_transformers.models.Pooling"}],
        "1_Pooling/config.json": {"pooling_mode_cls_token": True}, "vocab.txt": "[PAD]\n[UNK]\n",
        "tokenizer.json": tokenizer_json(), "sentence_bert_config.json": {"max_seq_length": 512},
    })  # fmt: skip


def ranked(folder: Path) -> Path:
    """`ShardedStateLoader` of vLLM."""
    folder.mkdir(parents=True)
    for rank in range(2):
        for part in range(2):
            name = f"model-rank-{rank}-part-{part}.safetensors"
            a_shard(folder / name, tensors=1, size=64, seed=10 * rank + part)
    return _write(folder, {"config.json": LLAMA_8B, "tokenizer.json": tokenizer_json()})


def diffusers(folder: Path) -> Path:
    for part in ("text_encoder", "transformer"):
        (folder / part).mkdir(parents=True)
        a_shard(folder / part / "model.safetensors", tensors=1, size=64)
    return _write(folder, {
        "model_index.json": {"_class_name": "Pipeline"}, "text_encoder/config.json": {"model_type": "t5"},
        "tokenizer/spiece.model": sentencepiece(),
    })  # fmt: skip


def nim_cache(folder: Path) -> Path:
    """`download-to-cache` of a NIM: models deep below, as links to blobs."""
    hub = folder / "ngc" / "hub" / "models--nim--meta--llama-3-1-8b"
    hub.mkdir(parents=True)
    (hub / "blobs").mkdir()
    a_shard(hub / "blobs" / "0a1b", tensors=1, size=64)
    (hub / "snapshots" / "hf-1").mkdir(parents=True)
    (hub / "snapshots" / "hf-1" / "model.safetensors").symlink_to("../../blobs/0a1b")
    return _write(folder, {"ngc/hub/models--nim--meta--llama-3-1-8b/blobs/0c1d": json.dumps(LLAMA_8B)})


def model_store(folder: Path) -> Path:
    """`create-model-store` of a NIM and a download from NGC: plain files, with sums."""
    download(folder)
    return _write(
        folder, {"checksums.blake3": "ab  config.json\n", "metadata.json": {"v": 1}, "trtllm_config.yaml": "a: 1\n"}
    )


LAYOUTS: tuple[Callable[[Path], Path], ...] = (
    download, snapshot, clone, modelscope, awq, gptq, gguf_only, mistral, lora, with_adapters, llama_2, qwen, deepseek,
    sentence_transformers, ranked, diffusers, nim_cache, model_store,
)  # fmt: skip


@dataclass(frozen=True)
class Defect:
    """One thing that is wrong with a folder: the file, what becomes of its content, and the reason that is found."""

    file: str
    change: Callable[[bytes], bytes] | bytes | None
    """None: the file is removed."""
    reason: str

    def can_be_planted(self, folder: Path) -> bool:
        """Whether this folder has the file that is to be changed."""
        path = folder / self.file
        if path.suffix == ".aria2":
            return path.with_suffix("").is_file()
        return path.is_file() or isinstance(self.change, bytes)

    def plant(self, folder: Path) -> None:
        """Plants it."""
        path = folder / self.file
        content = path.read_bytes() if path.is_file() else b""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if self.change is not None:
            path.write_bytes(self.change(content) if callable(self.change) else self.change)


def cut(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def preallocated(content: bytes) -> bytes:
    """What a download in parts leaves: the whole length, zeros in the middle."""
    third = len(content) // 3
    return content[:third] + bytes(third) + content[2 * third :]


_JSON = (
    "tokenizer.json",
    "tekken.json",
    "vocab.json",
    "special_tokens_map.json",
    "quantize_config.json",
    "modules.json",
)
_TOKENIZERS = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer/spiece.model",
    "qwen.tiktoken",
    "tekken.json",
    "merges.txt",
)
_SHARDS = ("model-00002-of-00003.safetensors", "model-00001-of-00002.safetensors", "model.safetensors",
           "consolidated-00002-of-00002.safetensors", "model-Q4_K_M.gguf", "adapter_model.safetensors")  # fmt: skip
_INVALID = dict.fromkeys(_TOKENIZERS, "TokenizerInvalid") | {
    "vocab.json": "TokenizerInvalid", "special_tokens_map.json": "TokenizerInvalid", "vocab.txt": "TokenizerInvalid",
    "chat_template.jinja": "TemplateInvalid",
}  # fmt: skip
_EVERY = (
    *_TOKENIZERS,
    *_SHARDS,
    "config.json",
    "chat_template.jinja",
    "tokenizer_config.json",
    "vocab.txt",
    "params.json",
)
_CONFIGURATIONS = ("config.json", "generation_config.json", "modules.json", "params.json")
_TOKEN = b"hf_" + b"QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi"

DEFECTS: tuple[Defect, ...] = (
    *(Defect(name, lambda _: POINTER, "PointerNotResolved") for name in _EVERY),
    *(Defect(name, lambda _: PAGE, "DownloadFailed") for name in _EVERY),
    *(Defect(name, lambda _: STORAGE_ERROR, "DownloadFailed") for name in ("tokenizer.model", "model.safetensors")),
    *(Defect(name, lambda _: b"Entry not found", "DownloadFailed") for name in ("config.json", "tokenizer.json")),
    Defect("config.json", lambda _: b'{"error": "Access to model is restricted"}', "DownloadFailed"),
    *(Defect(name, lambda _: b"", _INVALID[name]) for name in _INVALID),
    *(Defect(name, cut, _INVALID[name]) for name in _TOKENIZERS),
    *(Defect(name, preallocated, _INVALID.get(name, "ConfigurationInvalid")) for name in _JSON),
    *(Defect(name, cut, "WeightsCorrupt") for name in _SHARDS),
    *(Defect(name, lambda _: b"", "WeightsCorrupt") for name in _SHARDS),
    *(Defect(name, cut, "ConfigurationInvalid") for name in _CONFIGURATIONS),
    Defect("tokenizer.json", lambda _: b"{}", "TokenizerInvalid"),
    Defect("tokenizer.json", lambda _: b'{"model": {"vocab": {}}}', "TokenizerInvalid"),
    Defect("chat_template.jinja", lambda content: content[:30], "TemplateInvalid"),
    Defect("chat_template.jinja", b"{% for a in b %}", "TemplateInvalid"),
    Defect("tokenizer_config.json", b'{"chat_template": "{% if x %}"}', "TemplateInvalid"),
    *(Defect(name, None, "ShardMissing") for name in _SHARDS if "-of-" in name),
    Defect("model-rank-0-part-0.safetensors", None, "ShardMissing"),
    Defect("more-00002-of-00002.gguf", gguf(), "ShardMissing"),
    Defect("model-00003.safetensors.part", b"x", "DownloadIncomplete"),
    Defect("config.json.aria2", b"x", "DownloadIncomplete"),
    Defect("training_args.bin", b"x", "ExecutableContent"),
    Defect("deep/modeling_x.py", b"x", "ExecutableContent"),
    Defect("config.json", b'{"model_type": "brand_new", "auto_map": {"AutoModel": "m.M"}}', "RemoteCode"),
    Defect("config.json", b'{"model_type": "brand_new", "auto_map": {"AutoModel": "o/r--m.M"}}', "RemoteCodeElsewhere"),
    Defect("notes.txt", b"login with " + _TOKEN, "CredentialInWeights"),
    Defect("eval/run.json", b'{"use_auth_token": "' + _TOKEN + b'"}', "CredentialInWeights"),
)  # fmt: skip

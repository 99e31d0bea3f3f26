"""Files of a model by their form: JSON, vocabularies, templates, GGUF, code that configurations name, and shards."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hermetic.weights.content import Allowed, preflight
from hermetic.weights.json_syntax import wrong_with_json
from hermetic.weights.refused_files import credential_in
from hermetic.weights.templates import wrong_with_template
from hermetic.weights.tree import Tree
from tests.commandline import hermetic
from tests.weights import a_shard
from tests.weights_layouts import gguf, ranks, sentencepiece, tokenizer_json


def found(folder: Path, *allowed: str) -> list[tuple[str, str]]:
    with Tree(folder) as tree:
        return [(finding.reason.value, finding.file) for finding in preflight(tree, Allowed(frozenset(allowed)))]


def is_json(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content.decode()), dict | list)
    except (ValueError, RecursionError):
        return False


def a_value(chance: random.Random, depth: int) -> object:
    kind = chance.randrange(7)
    if kind == 0 and depth:
        return [a_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 1 and depth:
        keys = ["a", 'b"', "ä\\", "\U0001f600", "x\n"]
        return {chance.choice(keys): a_value(chance, depth - 1) for _ in range(chance.randrange(4))}
    return chance.choice([1, -2.5e10, True, None, "x", "[", "}", 'a"b', "\\", float("inf"), 0])


@pytest.mark.parametrize("seed", range(4))
def test_wrong_with_json_agrees_with_json_of_python(seed: int) -> None:
    """Values, and the same cut, changed or with one character more, in pieces of several sizes."""
    chance = random.Random(seed)
    for _ in range(400):
        value = {"k": a_value(chance, 4)} if chance.random() < 0.5 else [a_value(chance, 4)]
        text = json.dumps(value, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1]))
        content = bytearray(text.encode())
        at = chance.randrange(len(content))
        match chance.randrange(4):
            case 1:
                del content[at:]
            case 2:
                content[at] = chance.choice(b'[]{},:"\\0 1-xe.tnTVC\x00\x0b\xff')
            case 3:
                content[at:at] = bytes([chance.choice(b'[]{},:"\\0 1-xe.tnTVC')])
        for size in (1, 3, 1000):
            pieces = (bytes(content[at : at + size]) for at in range(0, len(content), size))
            assert (wrong_with_json(pieces) is None) == is_json(bytes(content)), (size, bytes(content))


@pytest.mark.parametrize(
    "content", [b"[" * 10**5, b'["' + b"x" * 2**21, b"1" * 2**20, b"[" + b'"a",' * 2**18, b'{"a":' * 10**5, b"", b" \n"]
)
def test_wrong_with_json_refuses_hostile_content_in_time(content: bytes) -> None:
    assert wrong_with_json(content[at : at + 2**16] for at in range(0, len(content), 2**16)) is not None


@pytest.mark.parametrize(
    ("template", "is_right"),
    [
        ("{% generation %}x{% endgeneration %}", True),
        ("{% for a in b %}{% continue %}{% endfor %}", True),
        ("{{ raise_exception('x') }}{{ strftime_now('%d') }}{{ a | tojson(indent=2) | unknown_filter }}", True),
        ("{%- macro f(x) -%}{{ x }}{%- endmacro -%}{{ f(1) }}", True),
        ("plain text", True),
        ("", False),
        ("  \n", False),
        ("{% if a %}", False),
        ("{{ a ", False),
        ("{% unknown_tag %}", False),
        ("\0", False),
        ("{{" + "(" * 5000, False),
    ],
)
def test_wrong_with_template_follows_the_template_engine_of_transformers(template: str, is_right: bool) -> None:
    assert (wrong_with_template(template) is None) == is_right


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.model", sentencepiece()), ("tokenizer.model", ranks()), ("tokenizer.model.v3", sentencepiece()),
        ("spiece.model", sentencepiece()), ("qwen.tiktoken", ranks()), ("qwen.tiktoken", ranks().rstrip()),
        ("word2vec.model", b"anything"), ("vocab.txt", b"a\r\nb\r\n"), ("merges.txt", b"#version: 0.2\na b\n"),
        ("m.gguf", gguf()), ("m.gguf", b"GGUF\x00\x00\x00\x03" + bytes(64)), ("added_tokens.json", b"{}"),
        ("special_tokens_map.json", b"{}"), ("notes.json", b"1"), ("tokenizer_v2.json", tokenizer_json()),
        ("data.jsonl", b"{}\n{}\n"), ("README.md", b"<html>"), ("index.html", b"<!doctype html>"), ("empty.txt", b""),
    ],
)  # fmt: skip
def test_preflight_complete_file_is_right(model: Path, name: str, content: bytes) -> None:
    (model / name).write_bytes(content)
    assert found(model) == []


@pytest.mark.parametrize("length", [1, 2, 3, 17, 40])
def test_preflight_tokenizer_cut_anywhere_is_found(model: Path, length: int) -> None:
    for name, content in (("spiece.model", sentencepiece()), ("tokenizer.json", tokenizer_json())):
        original = (model / name).read_bytes() if (model / name).exists() else None
        (model / name).write_bytes(content[: -length - 1])
        assert found(model) == [("TokenizerInvalid", name)], length
        (model / name).unlink() if original is None else (model / name).write_bytes(original)


def test_preflight_pointer_names_git_lfs(model: Path, share: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "ab" * 32 + "\nsize 5\n"
    (model / "model-00001-of-00003.safetensors").write_text(pointer)
    ran = hermetic("stage", model, share / "llama")
    assert ran.code == 1
    assert "PointerNotResolved: model-00001-of-00003.safetensors: expected the content of the file, found" in ran.err
    assert "git lfs pull" in ran.err


OWN_TOKENIZER = {"AutoTokenizer": ["t.T", None]}


@pytest.mark.parametrize(
    ("config", "tokenizer", "reasons"),
    [
        ({"model_type": "deepseek_v3", "auto_map": {"AutoConfig": "c.C", "AutoModel": "m.M"}}, {}, []),
        ({"model_type": "phi3", "auto_map": {"AutoConfig": "org/repo--configuration_phi3.Phi3Config"}}, {}, []),
        ({"model_type": "kimi_k2", "auto_map": {"AutoConfig": "c.C"}}, {}, []),
        ({"model_type": "brand_new", "auto_map": {"AutoConfig": "c.C"}}, {}, ["RemoteCode"]),
        ({"model_type": "brand_new", "auto_map": {"AutoConfig": "o/r--c.C"}}, {}, ["RemoteCodeElsewhere"]),
        ({"auto_map": {"AutoConfig": "c.C"}}, {}, ["RemoteCode"]),
        ({"model_type": "kimi_k2"}, {"tokenizer_class": "TikToken", "auto_map": OWN_TOKENIZER}, ["RemoteCode"]),
        ({"model_type": "brand_new"}, {"tokenizer_class": "LlamaTokenizerFast", "auto_map": OWN_TOKENIZER}, []),
        ({"model_type": "qwen2"}, {"tokenizer_class": "Other", "auto_map": OWN_TOKENIZER}, []),
        ({"model_type": "brand_new", "text_config": {"model_type": "llama", "auto_map": {"AutoModel": "m.M"}}}, {}, []),
        ({"model_type": "brand_new", "text_config": {"auto_map": {"AutoModel": "m.M"}}}, {}, ["RemoteCode"]),
        ({"model_type": "llama", "auto_map": "m.M"}, {}, ["RemoteCode"]),
    ],
)  # fmt: skip
def test_preflight_auto_map_is_judged_by_what_an_engine_does(
    model: Path, config: dict[str, object], tokenizer: dict[str, object], reasons: list[str]
) -> None:
    """`resolve_trust_remote_code` of transformers 5.24.0, and the registry of configurations of vLLM."""
    (model / "config.json").write_text(json.dumps(config))
    (model / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    assert [reason for reason, _ in found(model)] == reasons


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["a-00001-of-00002", "a-00002-of-00002"], None),
        (["a-00000-of-00002", "a-00001-of-00002"], None),
        (["a-1-of-2", "a-2-of-2", "b-1-of-1"], None),
        (["a-00001-of-000002", "a-00002-of-000002"], None),
        (["a-00001-of-00003", "a-00003-of-00003"], "a-00002-of-00003"),
        (["a-00002-of-00002"], "a-00001-of-00002"),
        (["a-00000-of-00003", "a-00002-of-00003"], "a-00001-of-00003"),
        (["a-00001-of-00002", "a-00002-of-00003"], "a-00002-of-00002"),
        (["x-rank-0-part-0", "x-rank-1-part-0"], None),
        (["x-rank-0-part-0", "x-rank-2-part-0"], "x-rank-1-part-0"),
        (["x-rank-0-part-0", "x-rank-0-part-2"], "x-rank-0-part-1"),
    ],
)
def test_preflight_shards_without_an_index_are_counted(tmp_path: Path, names: list[str], missing: str | None) -> None:
    folder = tmp_path / "numbered"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    for seed, name in enumerate(names):
        a_shard(folder / f"{name}.safetensors", tensors=1, size=8, seed=seed)
    reasons = [reason for reason in found(folder) if reason[0] == "ShardMissing"]
    assert (reasons[0][1] if reasons else None) == (f"{missing}.safetensors" if missing else None)


def test_preflight_index_names_a_tensor_that_its_shard_lacks(model: Path) -> None:
    index = model / "model.safetensors.index.json"
    document = json.loads(index.read_text())
    document["weight_map"]["model.absent.weight"] = "model-00001-of-00003.safetensors"
    index.write_text(json.dumps(document))
    assert found(model) == [("WeightsCorrupt", index.name)]
    document["weight_map"] = {}
    index.write_text(json.dumps(document))
    assert found(model) == [("WeightsCorrupt", index.name)]


def test_preflight_stale_shards_beside_an_index_are_right(model: Path) -> None:
    a_shard(model / "model-00004-of-00009.safetensors", tensors=1, size=8, seed=9)
    assert ("ShardMissing", "model-00001-of-00009.safetensors") in found(model)
    (model / "model-00004-of-00009.safetensors").rename(model / "old.safetensors")
    assert found(model) == []


@pytest.mark.parametrize("root", ["models--a--b", "", "hub", "home"])
def test_stage_root_of_a_cache_names_the_snapshot(tmp_path: Path, share: Path, root: str) -> None:
    cache = tmp_path / "cache" / ("hub" if root == "home" else "") / "models--a--b"
    for name in ("blobs", "refs", "snapshots/0abc", "snapshots/0def", ".no_exist/0abc"):
        (cache / name).mkdir(parents=True)
    (cache / "refs" / "main").write_text("0def")
    (cache / ".no_exist" / "0abc" / "adapter_config.json").write_text("")
    a_shard(cache / "snapshots" / "0def" / "model.safetensors")
    source = cache if root == "models--a--b" else tmp_path / "cache"
    ran = hermetic("stage", source, share / "model")
    assert (ran.code, "ModelInSubfolder" in ran.err) == (1, True)
    command = ran.err.split("fix: ")[1].strip()
    assert command == f"hermetic stage {cache / 'snapshots' / '0def'} {share / 'model'}"


def test_stage_parent_of_a_model_and_a_folder_without_weights_are_told(model: Path, share: Path) -> None:
    (model.parent / "parent").mkdir()
    model.rename(model.parent / "parent" / "llama")
    ran = hermetic("stage", model.parent / "parent", share / "model")
    assert f"fix: hermetic stage {model.parent}/parent/llama {share}/model" in ran.err
    for path in (model.parent / "parent" / "llama").glob("*.safetensors*"):
        path.unlink()
    ran = hermetic("stage", model.parent / "parent" / "llama", share / "model")
    assert (ran.code, "WeightsAbsent" in ran.err) == (1, True)


SECRETS = {
    "Hugging Face": "hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUi",
    "GitHub": "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "AWS": "AKIA" + "Q3EGRFQWTY2PLKJH",
    "Azure Storage": "AccountKey=" + "aB3/kQ9+zT" * 8 + "m4Pw7R==",
    "password": "https://user:" + "s3cr3tPa55w0rd9@host.example/x",
    "private key": "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8c\n",
}  # fmt: skip


@pytest.mark.parametrize("kind", SECRETS)
def test_credential_in_file_is_found_and_placeholders_are_not(model: Path, kind: str) -> None:
    (model / "README.md").write_text(f"text {SECRETS[kind]} text")
    assert found(model) == [("CredentialInWeights", "README.md")]
    for text in (
        "hf_" + "x" * 34, "export HF_TOKEN=hf_yourtokenyourtokenyourtokenyourtok", "AKIAIOSFODNN7EXAMPLE",
        "https://user:password@host", "https://huggingface.co/a:b", "-----BEGIN PRIVATE KEY-----\n...\n", "https://a:$PASS@b",
    ):  # fmt: skip
        assert credential_in(text.encode()) is None, text

"""`adapter_config.json` is read where weights are: an adapter that no engine loads is refused before a pod starts.

Sources: `PEFTHelper` of vLLM (vllm/lora/peft_helper.py), `LoRAConfig` of SGLang (sglang/srt/lora/lora_config.py of its
package), `LoraConfig` of PEFT (src/peft/tuners/lora/config.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from hermetic.api.adapters import Adapter
from hermetic.weights.adapter_configuration import RANKS, problems_of_adapter, rank_for
from hermetic.weights.content import Allowed, preflight
from hermetic.weights.tree import Tree
from tests.commandline import hermetic
from tests.weights import a_model, a_shard
from tests.weights_layouts import ADAPTER, lora

UNSUPPORTED = ("AdapterUnsupported", "adapter_config.json")
ABSENT = "absent"


def adapter(folder: Path, **fields: Any) -> Path:
    """An adapter whose configuration has these fields; ABSENT leaves one out."""
    lora(folder)
    changed = {name: value for name, value in {**ADAPTER, **fields}.items() if value is not ABSENT}
    (folder / "adapter_config.json").write_text(json.dumps(changed))
    return folder


def findings(folder: Path, *allow: str, **options: Any) -> list[tuple[str, str]]:
    with Tree(folder) as tree:
        return [
            (finding.reason.value, finding.file) for finding in preflight(tree, Allowed(frozenset(allow)), **options)
        ]


# ---------------------------------------------------------------------- the fields


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("peft_type", "IA3"), ("peft_type", "ADALORA"), ("peft_type", "lora"), ("peft_type", ["LORA"]),
        ("r", 0), ("r", -8), ("r", 513), ("r", 1024), ("r", "16"), ("r", 16.0), ("r", True), ("r", None), ("r", ABSENT),
        ("r", 10**4000),
        ("rank_pattern", {"q_proj": 1024}), ("rank_pattern", {"q_proj": "8"}), ("rank_pattern", [8]),
        ("lora_alpha", ABSENT), ("lora_alpha", None), ("lora_alpha", "16"), ("lora_alpha", True),
        ("lora_alpha", float("nan")), ("lora_alpha", float("inf")),
        ("target_modules", ABSENT), ("target_modules", 1), ("target_modules", {"q_proj": 1}),
        ("target_modules", ["q_proj", 1]),
        ("modules_to_save", ["lm_head"]), ("modules_to_save", ["embed_tokens", "score"]),
        ("modules_to_save", "lm_head"), ("modules_to_save", [["score"]]), ("modules_to_save", {"score": 1}),
        ("use_dora", True), ("use_dora", "yes"), ("use_dora", 1),
        ("bias", "all"), ("bias", "lora_only"), ("bias", None), ("bias", False),
        ("lora_bias", True),
    ],
    ids=lambda value: str(value)[:24] if value is not ABSENT else "absent",
)  # fmt: skip
def test_field_that_engines_refuse_is_named_with_what_it_must_be(tmp_path: Path, field: str, value: Any) -> None:
    folder = adapter(tmp_path / "sql", **{field: value})
    assert findings(folder) == [UNSUPPORTED]
    configuration = json.loads((folder / "adapter_config.json").read_text())
    ((expected, observation),) = problems_of_adapter(configuration)
    assert expected.startswith(f"`{field}`: ")
    assert len(observation) <= 200


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"r": 1}, {"r": 512}, {"lora_alpha": 0.5}, {"lora_alpha": 10**400}, {"use_rslora": True},
        {"target_modules": "all-linear"}, {"target_modules": r".*\.(q|v)_proj"}, {"target_modules": []},
        {"target_modules": None, "target_parameters": ["experts.down_proj"]},
        {"modules_to_save": []}, {"modules_to_save": ["classifier", "score"], "task_type": "SEQ_CLS"},
        {"peft_type": ABSENT}, {"bias": ABSENT}, {"use_dora": ABSENT}, {"modules_to_save": ABSENT},
        {"rank_pattern": {"q_proj": 64}}, {"rank_pattern": None}, {"use_dora": None},
        {"base_model_name_or_path": None}, {"base_model_name_or_path": "/home/me/llama"}, {"field_of_2030": {"a": 1}},
    ],
    ids=str,
)  # fmt: skip
def test_adapter_that_engines_load_is_right(tmp_path: Path, fields: dict[str, Any]) -> None:
    assert findings(adapter(tmp_path / "sql", **fields)) == []


def test_every_field_is_told_at_once(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "sql", use_dora=True, r=1024, modules_to_save=["lm_head"], bias="all")
    assert findings(folder) == [UNSUPPORTED] * 4


def test_ranks_are_those_of_the_field() -> None:
    assert get_args(Adapter.model_fields["rank"].annotation) == RANKS


@pytest.mark.parametrize(
    ("fields", "rank"),
    [
        ({"r": 1}, 8), ({"r": 8}, 8), ({"r": 9}, 16), ({"r": 100}, 128), ({"r": 320}, 512), ({"r": 512}, 512),
        ({"r": 8, "rank_pattern": {"q_proj": 40}}, 64), ({"r": 64, "rank_pattern": {"q_proj": 4}}, 64),
        ({"r": 8, "rank_pattern": None}, 8), ({"r": 513}, None), ({"r": "8"}, None), ({}, None),
        ({"r": 8, "rank_pattern": {"q_proj": 1024}}, None),
    ],
    ids=str,
)  # fmt: skip
def test_rank_to_write_is_the_least_that_holds_every_module(fields: dict[str, Any], rank: int | None) -> None:
    assert rank_for(fields) == rank


# ---------------------------------------------------------------------- files of hostile size or shape


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "ConfigurationInvalid"), (b"{", "ConfigurationInvalid"), (b"[" * 100_000, "ConfigurationInvalid"),
        (b'{"r": 8, "r": 1024}', "ConfigurationInvalid"), (b'{"r": ' + b"9" * 5000 + b"}", "ConfigurationInvalid"),
        (b"[]", "ConfigurationInvalid"), (b'"LORA"', "ConfigurationInvalid"),
        (b"\xef\xbb\xbf" + json.dumps(ADAPTER).encode(), "ConfigurationInvalid"),
        (json.dumps(ADAPTER).encode("utf-16"), "ConfigurationInvalid"),
        (json.dumps({**ADAPTER, "note": "x" * 2**22}).encode(), "TooMuch"),
    ],
    ids=["empty", "cut", "deep", "a key twice", "a number of 5000 digits", "a list", "a text", "byte order mark",
         "UTF-16", "4 MiB"],
)  # fmt: skip
def test_configuration_of_another_form_is_refused_as_other_files_are(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    folder = lora(tmp_path / "sql")
    (folder / "adapter_config.json").write_bytes(content)
    assert findings(folder, is_adapter=True)[0] == (reason, "adapter_config.json")


@pytest.mark.parametrize("field", ["modules_to_save", "target_modules", "base_model_name_or_path"])
def test_value_of_hostile_length_or_form_stays_one_short_line(tmp_path: Path, field: str) -> None:
    hostile = ["\x1b[31m\n\ud800" * 10_000, 1]
    folder = adapter(tmp_path / "sql", **{field: hostile})
    with Tree(folder) as tree:
        messages = [finding.message for finding in preflight(tree)]
    assert len(messages) == (0 if field.startswith("base") else 1)
    assert all(len(message) < 500 and message.isprintable() for message in messages)


def test_configuration_behind_a_link_that_another_name_shares_is_read(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "sql", use_dora=True)
    (folder / "blobs").mkdir()
    (folder / "adapter_config.json").rename(folder / "blobs" / "abc")
    for name in ("a_config.json", "adapter_config.json"):
        (folder / name).symlink_to("blobs/abc")
    assert findings(folder) == [UNSUPPORTED]


# ---------------------------------------------------------------------- which folders are adapters


def test_model_with_an_adapter_of_its_own_is_not_taken_for_one(tmp_path: Path) -> None:
    """ibm-granite/granite-speech-3.3-2b has both at the top: docs.vllm.ai, "LoRA Adapters"."""
    model = a_model(tmp_path / "model", size=64 * 2**10)
    a_shard(model / "adapter_model.safetensors", tensors=1, size=64)
    (model / "adapter_config.json").write_text(json.dumps({**ADAPTER, "use_dora": True}))
    assert findings(model) == []
    assert findings(model, is_adapter=True) == [UNSUPPORTED]


def test_adapter_below_a_model_does_not_keep_the_model_from_being_served(tmp_path: Path) -> None:
    model = a_model(tmp_path / "model", size=64 * 2**10)
    adapter(model / "vision-lora", use_dora=True)
    assert findings(model) == []


def test_adapter_with_the_configuration_of_its_model_is_one(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "sql", bias="all")
    (folder / "config.json").write_text('{"model_type": "llama"}')
    assert findings(folder) == [UNSUPPORTED]


# ---------------------------------------------------------------------- the commands


def test_stage_refuses_an_adapter_with_field_reason_and_fix_and_copies_nothing(tmp_path: Path) -> None:
    ran = hermetic("stage", adapter(tmp_path / "sql", use_dora=True), tmp_path / "share")
    assert (ran.code, (tmp_path / "share").exists()) == (1, False)
    assert "AdapterUnsupported: adapter_config.json: expected `use_dora`: false, as engines load no DoRA" in ran.err
    assert "found true" in ran.err
    assert "merge_and_unload" in ran.fixes[0]
    allowed = ("stage", tmp_path / "sql", tmp_path / "share", "--allow", "adapter_config.json")
    assert hermetic(*allowed).code == 0


def test_stage_tells_the_base_model_as_information_and_the_rank_to_write(tmp_path: Path) -> None:
    ran = hermetic("stage", adapter(tmp_path / "sql", r=24), tmp_path / "share")
    assert ran.code == 0
    assert "this is an adapter of meta/llama" in ran.err
    assert "nothing proves" in ran.err
    assert "`rank: 32`" in ran.err


@pytest.mark.parametrize(
    ("fields", "largest", "is_right"),
    [({"r": 16}, "16", True), ({"r": 17}, "16", False), ({"r": 8, "rank_pattern": {"q_proj": 32}}, "16", False)],
    ids=str,
)
def test_verify_compares_the_rank_with_that_of_the_deployment(
    tmp_path: Path, fields: dict[str, Any], largest: str, is_right: bool
) -> None:
    model, folder = a_model(tmp_path / "model", size=64 * 2**10), adapter(tmp_path / "sql", **fields)
    for listed in (model, folder):
        hermetic("manifest", listed)
    ran = hermetic("verify", model, "--adapter", folder, "--max-lora-rank", largest)
    assert (ran.code == 0) is is_right
    assert is_right or "from 1 to 16" in ran.out


@pytest.mark.parametrize("damage", ["a field", "no configuration"])
def test_verify_refuses_an_adapter_that_its_manifest_lists(tmp_path: Path, damage: str) -> None:
    """The operator passes this result on: `status.adapters` has the reason in place of the digest."""
    model, folder = a_model(tmp_path / "model", size=64 * 2**10), adapter(tmp_path / "sql", lora_bias=True)
    if damage == "no configuration":
        (folder / "adapter_config.json").unlink()
    for listed in (model, folder):
        hermetic("manifest", listed)
    document = json.loads(hermetic("verify", model, "--adapter", folder, "-o", "json").out)
    assert document["adapters"] == {"sql": "AdapterUnsupported"}
    assert [finding["file"] for finding in document["findings"]] == [f"{folder}/adapter_config.json"]
    allowed = hermetic("verify", model, "--adapter", folder, "--allow", "adapter_config.json", "-o", "json")
    assert (allowed.code == 0) is (damage == "a field")

"""A model's folder read for its facts: real files in, bounded however hostile they are."""

from __future__ import annotations

import json
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from hermetic.errors import InputError, ModelFactsUnusable
from hermetic.weights import model_folder as reading
from hermetic.weights.model_folder import read_model_facts
from hermetic.weights.safetensors_layout import LARGEST_HEADER
from tests.model_configs import DEEPSEEK_V3, LLAMA_8B, model_folder

ONE = "model.safetensors"


def llama(folder: Path, **shards) -> Path:
    return model_folder(folder, LLAMA_8B, shards or {ONE: {"a": ("BF16", 100), "b": ("F32", 8)}})


def test_bytes_are_summed_by_format_over_every_file(tmp_path):
    first, second = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
    folder = model_folder(
        tmp_path,
        DEEPSEEK_V3,
        {first: {"a": ("F8_E4M3", 1000), "b": ("F32", 8)}, second: {"c": ("F8_E4M3", 24), "d": ("BF16", 2)}},
    )
    facts = read_model_facts(folder)
    assert {tensor_byte_count.format: tensor_byte_count.bytes for tensor_byte_count in facts.tensor_bytes} == {
        "F8_E4M3": 1024,
        "F32": 8,
        "BF16": 2,
    }
    assert facts.parameter_bytes == 1034
    assert (facts.shards.count, facts.shards.largest_bytes) == (2, (folder / first).stat().st_size)
    assert facts.attention.latent.key_value_rank == 512
    assert facts.quantization.block == 128
    assert facts.not_computed == []


def test_the_index_says_which_files_count(tmp_path):
    folder = llama(tmp_path, **{ONE: {"a": ("BF16", 100)}, "old.safetensors": {"a": ("BF16", 5)}})
    (folder / reading.INDEX).write_text(json.dumps({"weight_map": {"a": ONE}}))
    assert read_model_facts(folder).parameter_bytes == 100


def test_the_second_form_of_the_same_tensors_is_not_counted_twice(tmp_path):
    folder = llama(tmp_path, **{ONE: {"a": ("BF16", 100)}, "consolidated.safetensors": {"a": ("BF16", 100)}})
    assert read_model_facts(folder).parameter_bytes == 100
    (folder / ONE).unlink()
    assert read_model_facts(folder).parameter_bytes == 100


MINISTRAL = {"dim": 4096, "n_layers": 34, "n_heads": 32, "n_kv_heads": 8, "head_dim": 128, "hidden_dim": 14_336}
PIXTRAL = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "patch_size": 14,
    "image_size": 1540,
    "spatial_merge_size": 2,
}


@pytest.mark.parametrize(
    ("params", "family", "context"),
    [
        (MINISTRAL, "mistral", 128_000),
        (MINISTRAL | {"max_position_embeddings": 262_144}, "mistral", 262_144),
        (MINISTRAL | {"max_seq_len": 32_768}, "mistral", 32_768),
        (MINISTRAL | {"moe": {"num_experts": 8, "num_experts_per_tok": 2}}, "mixtral", 128_000),
        (MINISTRAL | {"qk_nope_head_dim": 64, "kv_lora_rank": 256, "qk_rope_head_dim": 64}, "deepseek_v3", 128_000),
        (MINISTRAL | {"yarn": {"factor": 16.0, "original_max_position_embeddings": 8192}}, "mistral", 131_072),
    ],
)
def test_the_form_of_mistral_is_read_where_there_is_no_config_json(tmp_path, params, family, context):
    """vllm/transformers_utils/configs/mistral.py."""
    folder = llama(tmp_path, **{"consolidated.safetensors": {"layers.0.experts.0.w1": ("BF16", 60), "a": ("BF16", 40)}})
    (folder / "config.json").rename(folder / "params.json")
    (folder / "params.json").write_text(json.dumps(params))
    facts = read_model_facts(folder)
    assert (facts.model_type, facts.max_model_length) == (family, context)
    assert (facts.attention.layers, facts.attention.key_value_heads, facts.attention.head_dimension) == (34, 8, 128)
    assert facts.not_computed == []
    if facts.experts is not None:
        assert (facts.experts.count, facts.experts.bytes) == (8, 60)


@pytest.mark.parametrize("key", ["vision_encoder", "multimodal"])
def test_the_encoder_of_mistral_is_read_in_both_of_its_forms(tmp_path, key):
    stated = PIXTRAL if key == "vision_encoder" else {"vision_encoder_args": PIXTRAL}
    folder = llama(tmp_path, **{"consolidated.safetensors": {"vision_encoder.a": ("BF16", 60), "a": ("BF16", 40)}})
    (folder / "config.json").unlink()
    (folder / "params.json").write_text(
        json.dumps(MINISTRAL | {key: stated, "quantization": {"qformat_weight": "fp8_e4m3"}})
    )
    facts = read_model_facts(folder)
    (encoder,) = facts.encoders
    assert (encoder.inputs, encoder.bytes, encoder.patches_per_token) == (["image"], 60, 4)
    assert facts.quantization.method == "fp8"


def test_config_json_counts_where_both_forms_are_there(tmp_path):
    folder = llama(tmp_path)
    (folder / "params.json").write_text(json.dumps(MINISTRAL))
    assert read_model_facts(folder).model_type == "llama"


@pytest.mark.parametrize("content", ["[]", "null", '{"dim": "wide"}', '{"sliding_window": [1, null], "n_layers": 1e9}'])
def test_a_form_of_mistral_that_is_not_usable_gives_facts_that_are_not_computed(tmp_path, content):
    folder = llama(tmp_path)
    (folder / "config.json").unlink()
    (folder / "params.json").write_text(content)
    assert read_model_facts(folder).not_computed


def test_links_of_a_snapshot_are_followed(tmp_path):
    blobs = llama(tmp_path / "blobs")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for name in ("config.json", ONE):
        (snapshot / name).symlink_to(blobs / name)
    assert read_model_facts(snapshot).parameter_bytes == 108


def test_modelopt_says_its_method_in_a_file_of_its_own(tmp_path):
    folder = llama(tmp_path)
    (folder / reading.QUANTIZATION).write_text(json.dumps({"quantization": {"quant_algo": "FP8"}}))
    assert read_model_facts(folder).quantization.method == "modelopt"


def test_of_a_huge_sparse_file_only_the_header_is_read(tmp_path):
    folder = llama(tmp_path)
    size = 5 * 2**40
    header = json.dumps({"a": {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}}).encode()
    with (folder / ONE).open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    facts = read_model_facts(folder)
    assert facts.parameter_bytes == size
    assert facts.shards.largest_bytes == 8 + len(header) + size


@pytest.mark.parametrize(
    ("header", "says"),
    [
        pytest.param(b"", "cut short", id="empty file"),
        pytest.param(b"\x01\x02", "cut short", id="two bytes"),
        pytest.param(struct.pack("<Q", 2**63) + b"{}", "cut short", id="header longer than any file"),
        pytest.param(struct.pack("<Q", 10) + b"{}", "cut short", id="header longer than the file"),
        pytest.param(struct.pack("<Q", 2) + b"[]", "", id="a list"),
        pytest.param(struct.pack("<Q", 3) + b"nul", "", id="no JSON"),
        pytest.param(struct.pack("<Q", 8) + b'{"a": 1}', "no number format", id="no tensor"),
        pytest.param(struct.pack("<Q", 8) + b'{"\xff": 1}', "", id="no UTF-8"),
        pytest.param(struct.pack("<Q", 200_000) + b'{"a":' + b"[" * 199_995, "", id="nested without end"),
    ],
)
def test_a_damaged_header_names_file_and_fault(tmp_path, header, says):
    folder = llama(tmp_path)
    (folder / ONE).write_bytes(header)
    with pytest.raises(ModelFactsUnusable) as refused:
        read_model_facts(folder)
    assert ONE in refused.value.message
    assert says in refused.value.message


@pytest.mark.parametrize(
    "tensor",
    [
        {"dtype": "BF16", "data_offsets": [8, 0]},
        {"dtype": "BF16", "data_offsets": [-8, 0]},
        {"dtype": "BF16", "data_offsets": [0, 1.5]},
        {"dtype": "BF16", "data_offsets": [False, True]},
        {"dtype": "BF16", "data_offsets": [0]},
        {"dtype": "BF16"},
        {"dtype": 16, "data_offsets": [0, 1]},
        {"dtype": "", "data_offsets": [0, 1]},
        {"dtype": "B" * 65, "data_offsets": [0, 1]},
        None,
    ],
)
def test_a_tensor_that_contradicts_itself_is_refused(tmp_path, tensor):
    folder = llama(tmp_path)
    header = json.dumps({"a": tensor}).encode()
    (folder / ONE).write_bytes(struct.pack("<Q", len(header)) + header)
    with pytest.raises(ModelFactsUnusable, match="tensor 'a'"):
        read_model_facts(folder)


def test_sums_beyond_any_model_are_noted_and_never_fit(tmp_path):
    folder = llama(tmp_path)
    header = json.dumps({"a": {"dtype": "BF16", "data_offsets": [0, 10**30]}}).encode()
    (folder / ONE).write_bytes(struct.pack("<Q", len(header)) + header)
    assert any("add up to" in reason for reason in read_model_facts(folder).not_computed)


@pytest.mark.parametrize("name", ["../x.safetensors", "a/b.safetensors", "x.bin", "/etc/passwd", "x\0.safetensors"])
def test_an_index_cannot_lead_out_of_the_folder(tmp_path, name):
    folder = llama(tmp_path)
    (folder / reading.INDEX).write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(ModelFactsUnusable, match="not a safetensors file of this folder"):
        read_model_facts(folder)


@pytest.mark.parametrize("index", ["[]", "{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}'])
def test_an_index_without_a_map_is_refused(tmp_path, index):
    folder = llama(tmp_path)
    (folder / reading.INDEX).write_text(index)
    with pytest.raises(ModelFactsUnusable, match="weight_map"):
        read_model_facts(folder)


@pytest.mark.parametrize("name", ["config.json", ONE])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(tmp_path, name):
    folder = llama(tmp_path)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ModelFactsUnusable, match="not a plain file"):
        read_model_facts(folder)


def test_what_is_not_there_is_named_with_its_path(tmp_path):
    with pytest.raises(InputError, match=r"config\.json: No such file"):
        read_model_facts(tmp_path / "absent")
    folder = llama(tmp_path)
    (folder / ONE).unlink()
    with pytest.raises(ModelFactsUnusable, match="holds no safetensors file"):
        read_model_facts(folder)
    (folder / reading.INDEX).write_text(json.dumps({"weight_map": {"a": ONE}}))
    with pytest.raises(InputError, match=r"model\.safetensors: No such file"):
        read_model_facts(folder)


def test_a_config_that_is_too_large_is_refused(tmp_path):
    folder = llama(tmp_path)
    with (folder / "config.json").open("wb") as file:
        file.truncate(reading.LARGEST_CONFIG + 1)
    with pytest.raises(ModelFactsUnusable, match="larger than"):
        read_model_facts(folder)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_config_in_an_encoding_that_no_engine_reads_is_refused(tmp_path, encoding):
    folder = llama(tmp_path)
    config = folder / "config.json"
    config.write_text(config.read_text(), encoding=encoding)
    with pytest.raises(ModelFactsUnusable, match=r"config\.json is not JSON"):
        read_model_facts(folder)


def test_the_worst_header_stays_within_200_mib_of_memory(tmp_path):
    """A process of its own with a limit on its address space: a bomb in the header must not be unpacked."""
    folder = llama(tmp_path)
    bomb = b'{"a":[' + b"[]," * (LARGEST_HEADER // 3 - 10) + b"[]]}"
    (folder / ONE).write_bytes(struct.pack("<Q", len(bomb)) + bomb)
    script = "import sys; from pathlib import Path; from hermetic.weights.model_folder import read_model_facts as r\n"
    script += "try: r(Path(sys.argv[1]))\nexcept Exception as e: print(type(e).__name__, e)"
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (200 * 2**20, 200 * 2**20)),
    )
    assert done.stdout.startswith("ModelFactsUnusable"), done.stderr

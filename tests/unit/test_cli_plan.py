"""`hermetic plan`: its text and JSON as agreed, its exit codes, and its words for what it cannot use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from hermetic.sizing.catalogue import sizes
from hermetic.sizing.facts_file import as_json, file_content
from tests.commandline import Ran, hermetic
from tests.corpus.manifests import changed
from tests.golden.planned import PLANS, file_of, printed
from tests.model_configs import (
    DEEPSEEK_V3,
    LLAMA_8B,
    LLAMA_8B_BYTES,
    LLAMA_70B,
    LLAMA_70B_BYTES,
    facts,
    model_folder,
)
from tests.scenarios import Manifest, a_nim_model, a_share_model
from tests.weights import a_shard
from tests.weights_layouts import ADAPTER, lora

A100, H100, HALF = "Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5", "Standard_NC72ds_xl_RTXPro6000_v6"
H200, MI300X = "Standard_ND96isr_H200_v5", "Standard_ND96isr_MI300X_v5"
GB200 = "Standard_ND128isr_NDR_GB200_v6"
L8 = facts(LLAMA_8B, LLAMA_8B_BYTES, 4)
L70 = facts(LLAMA_70B, LLAMA_70B_BYTES, 30)
LONG = facts(LLAMA_8B | {"max_position_embeddings": 1_000_000}, LLAMA_8B_BYTES, 4)


def plan(manifest: Manifest, *arguments: str | Path) -> Ran:
    return hermetic("plan", "-f", "-", *arguments, stdin=yaml.safe_dump(manifest))


def with_facts(model=L8, **changes) -> Manifest:
    """A deployment with the facts of a model; `changes` by their path below spec."""
    return of_facts(a_share_model(), model, **changes)


def of_facts(manifest: Manifest, model=L8, **changes) -> Manifest:
    return changed(
        manifest, {f"spec.{path}": value for path, value in {"weights.facts": as_json(model), **changes}.items()}
    )


def of_a_slice(name: str) -> dict:
    return {"accelerator.resource": f"nvidia.com/{name}", "engine.vllm.maxModelLength": 4096}


def of_a_partition(mode: str, model=L8) -> dict:
    return {"accelerator.resource": f"amd.com/{mode}", "engine.vllm.maxModelLength": 4096, "model": model}


def facts_file(folder: Path, model) -> Path:
    file = folder / "model-facts.json"
    file.write_bytes(file_content(model))
    return file


def document(ran: Ran) -> dict:
    return json.loads(ran.out)["deployments"][0]


@pytest.mark.parametrize("name", list(PLANS))
def test_what_is_printed_is_what_was_agreed_to(name):
    assert printed(name) == file_of(name).read_text("utf-8"), "read the difference, then: python -m tests.golden.update"


@pytest.mark.parametrize(
    ("changes", "size", "code", "answer"),
    [
        pytest.param({}, A100, 0, "Fits", id="fits"),
        pytest.param({"model": LONG, "engine.vllm.maxModelLength": 450_000}, A100, 0, "Tight", id="tight"),
        pytest.param({"model": LONG, "engine.vllm.maxModelLength": 700_000}, A100, 1, "DoesNotFit", id="does not fit"),
        pytest.param({"engine.vllm.maxModelLength": 131_073}, A100, 1, "DoesNotFit", id="longer than the model's own"),
        pytest.param({"engine.vllm.maxModelLength": 4096}, HALF, 3, "Unknown", id="a size that is not confirmed"),
        pytest.param({"accelerator.count": 2}, A100, 1, "DoesNotFit", id="more GPUs than it has"),
        pytest.param({"accelerator.count": 3}, "Standard_NC96ads_A100_v4", 1, "DoesNotFit", id="no cut over 3"),
        pytest.param({"accelerator.resource": "amd.com/gpu"}, A100, 1, "DoesNotFit", id="GPUs of another vendor"),
        pytest.param({"engine.vllm.extraArgs": ["--cpu-offload-params=mlp"]}, A100, 3, "Unknown", id="not computed"),
        pytest.param(of_a_slice("mig-3g.40gb"), A100, 0, "Fits", id="a slice"),
        pytest.param(of_a_slice("mig-1g.10gb"), A100, 1, "DoesNotFit", id="a slice that is too small"),
        pytest.param(of_a_slice("mig-3g.71gb"), H200, 0, "Fits", id="a slice of an H200"),
        pytest.param(of_a_slice("mig-1g.23gb"), GB200, 3, "Unknown", id="a slice that is not confirmed"),
        pytest.param(of_a_partition("spx_nps1"), MI300X, 0, "Fits", id="the partition that is the whole GPU"),
        pytest.param(of_a_partition("cpx_nps4"), MI300X, 3, "Unknown", id="a partition that no node lists"),
        pytest.param(of_a_partition("cpx_nps4", L70), MI300X, 1, "DoesNotFit", id="a partition that is too small"),
        pytest.param(of_a_partition("cpx_nps2"), MI300X, 3, "Unknown", id="a partition that the GPU does not have"),
        pytest.param(of_a_partition("cpx_nps4"), A100, 1, "DoesNotFit", id="a partition of another vendor"),
        pytest.param(of_a_slice("gpu.shared"), A100, 3, "Unknown", id="a GPU that others share"),
        pytest.param(of_a_slice("mig-3g.40gb"), MI300X, 1, "DoesNotFit", id="a slice of another vendor"),
    ],
)
def test_exit_code_and_answer(changes, size, code, answer):
    ran = plan(with_facts(**changes), "--instance-type", size, "-o", "json")
    assert (ran.code, document(ran)["answer"]) == (code, answer), ran.err


def test_without_a_size_a_slice_is_compared_on_every_gpu_that_has_it():
    ran = plan(with_facts(**of_a_slice("mig-3g.40gb")), "-o", "json")
    choices = document(ran)["sizes"]
    answers = {choice["instanceType"]: choice["answer"] for choice in choices}
    assert {answers[size] for size in (A100, "Standard_ND96isr_H100_v5")} == {"Fits"}
    assert {answers[size] for size in (H100, H200, HALF)} == {"Unknown"}
    assert {answers[size] for size in (MI300X, "Standard_NV36ads_A10_v5", "Standard_NC4as_T4_v3")} == {"DoesNotFit"}
    assert {choice["tensorParallelSize"] for choice in choices if "tensorParallelSize" in choice} == {1}


def test_the_text_names_the_slice_and_its_share_of_the_gpu():
    ran = plan(with_facts(**of_a_slice("mig-3g.40gb")), "--instance-type", A100)
    sliced = "slice 3g.40gb of NVIDIA A100 80 GB with 3/7 of its computing slices"
    assert f"{A100}: 1 x {sliced}, tensor parallel 1: fits" in ran.out
    assert "39.25 GiB  listings" in ran.out
    assert f"{A100}  1 x {sliced}" in " ".join(ran.out.split()).replace(f"{A100} 1 x", f"{A100}  1 x")


def test_sizes_of_the_manifest_are_planned_for_and_the_worst_counts():
    named = {"accelerator.instanceTypes": [A100, HALF], "engine.vllm.maxModelLength": 4096}
    ran = plan(with_facts(**named), "-o", "json")
    assert [size["answer"] for size in document(ran)["asWritten"]] == ["Fits", "Unknown"]
    assert ran.code == 3


@pytest.mark.parametrize(
    ("size", "is_told"), [("Standard_ND128isr_NDR_GB200_v6", True), ("Standard_ND96isr_H100_v5", False)]
)
def test_a_size_with_another_processor_is_told_with_the_platform_of_the_image(size, is_told):
    ran = plan(with_facts(), "--instance-type", size)
    assert ("the engine image must be for linux/arm64" in ran.out) is is_told, ran.out


def test_a_size_that_is_not_in_the_catalogue_is_unknown():
    ran = plan(with_facts(**{"accelerator.instanceTypes": ["Standard_NV6"]}), "-o", "json")
    assert (ran.code, document(ran)["sizesNotListed"]) == (3, ["Standard_NV6"])


def test_without_a_size_the_best_of_all_counts_and_every_size_is_compared():
    ran = plan(with_facts(), "-o", "json")
    assert ran.code == 0
    assert {size["instanceType"] for size in document(ran)["sizes"]} == set(sizes())
    # Four T4 have less memory in all than one A100.
    assert document(ran)["sizes"][0]["instanceType"] == "Standard_NC64as_T4_v3"


def test_prices_decide_what_is_cheaper_and_sizes_without_one_come_last(tmp_path):
    prices = tmp_path / "prices.yaml"
    prices.write_text(f"{H100}: 1\n{A100}: 2.5\n")
    ran = plan(with_facts(), "--prices", prices, "-o", "json")
    assert [size["instanceType"] for size in document(ran)["sizes"]][:2] == [H100, A100]


def test_a_share_whose_throughput_is_known_comes_first_and_replicas_share_it():
    single = plan(with_facts(), "--share-throughput", "256", "-o", "json")
    four = plan(with_facts(replicas=4), "--share-throughput", "256", "-o", "json")
    loads = [document(ran)["loadTimes"][0] for ran in (single, four)]
    assert loads[0]["storage"] == "this share, 256 MiB/s"
    assert loads[0]["seconds"] == pytest.approx(LLAMA_8B_BYTES / (256 * 2**20), abs=0.1)
    assert loads[1]["seconds"] == pytest.approx(4 * loads[0]["seconds"], abs=0.5)


def test_a_folder_of_a_model_is_read_and_its_facts_can_be_written_into_the_manifest(tmp_path):
    folder = model_folder(tmp_path, LLAMA_8B, {"model.safetensors": {"a": ("BF16", 4096)}})
    shown = hermetic("plan", "--model", folder, "--show-facts")
    assert shown.code == 0
    facts = yaml.safe_load(shown.out)["facts"]
    by_manifest = plan(changed(a_share_model(), {"spec.weights.facts": facts}), "-o", "json")
    by_folder = plan(a_share_model(), "--model", folder, "-o", "json")
    assert by_manifest.code == by_folder.code == 0
    assert by_manifest.out == by_folder.out


def test_the_facts_of_a_file_are_those_of_the_folder(tmp_path):
    folder = model_folder(tmp_path, DEEPSEEK_V3, {"model.safetensors": {"a": ("F8_E4M3", 4096)}})
    file = tmp_path / "facts.json"
    file.write_text(hermetic("plan", "--model", folder, "--show-facts", "-o", "json").out)
    assert plan(a_share_model(), "--model-facts", file).out == plan(a_share_model(), "--model", folder).out


@pytest.mark.parametrize("command", ["stage", "manifest"])
def test_the_facts_that_are_staged_with_a_model_are_planned_with(tmp_path, command):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA_8B))
    a_shard(folder / "model.safetensors")
    by_folder = plan(a_share_model(), "--model", folder, "-o", "json")
    assert by_folder.code == 0
    target = tmp_path / "staged" if command == "stage" else folder
    ran = hermetic(command, folder, *([target] if command == "stage" else []))
    assert ran.code == 0, ran.err
    (folder / "model.safetensors").unlink()
    by_file = plan(a_share_model(), "--model-facts", target / ".hermetic" / "model-facts.json", "-o", "json")
    assert (by_file.code, by_file.out) == (0, by_folder.out)


def test_facts_of_the_command_line_count_before_those_of_the_manifest(tmp_path):
    file = facts_file(tmp_path, facts(LLAMA_8B, 200_000_000_000))
    ran = plan(with_facts(), "--model-facts", file, "--instance-type", A100, "-o", "json")
    assert (ran.code, document(ran)["facts"]["parameterBytes"]) == (1, 200_000_000_000)


def test_a_model_that_is_too_large_is_told_what_offloading_would_cost():
    ran = plan(with_facts(facts(LLAMA_8B, 100_000_000_000)), "--instance-type", A100, "-o", "json")
    cost = document(ran)["offload"]
    assert cost["secondsPerStep"] == pytest.approx(cost["bytes"] / 25e9, abs=0.001)
    assert cost["advised"] is False
    assert "do not" in plan(with_facts(facts(LLAMA_8B, 100_000_000_000)), "--instance-type", A100).out


def test_a_nim_is_unknown():
    planned = document(plan(of_facts(a_nim_model()), "--instance-type", A100, "-o", "json"))
    assert planned["answer"] == "Unknown"
    assert "NIM" in " ".join(planned["asWritten"][0]["notComputed"])


@pytest.mark.parametrize(
    ("arguments", "code", "says", "fix"),
    [
        pytest.param((), 2, "the facts of the model are not known", "--model DIR", id="no facts"),
        pytest.param(("--model", "/nowhere"), 2, "config.json: No such file", "that exists", id="no folder"),
        pytest.param(("--model-facts", "/nowhere"), 2, "/nowhere: No such file", "that exists", id="no file"),
        pytest.param(("--model", "/a", "--model-facts", "/b"), 2, "two sources", "give one of them", id="two sources"),
        pytest.param(("--instance-type", "nc24ads_a100_v4"), 2, f"did you mean '{A100}'", "it has", id="a typo"),
        pytest.param(("--share-throughput", "0"), 2, "not from 1", "", id="no throughput"),
        pytest.param(("--share-throughput", "nan"), 2, "not from 1", "", id="no number"),
        pytest.param(("--prices", "/nowhere"), 2, "/nowhere: No such file", "that exists", id="no prices"),
        pytest.param(("--show-facts",), 2, "needs a model", "--model DIR", id="nothing to show"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, code, says, fix):
    ran = plan(a_share_model(), *arguments)
    assert ran.code == code
    assert says in ran.err
    assert fix in ran.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("[]", "are an object"),
        ("{modelType: llama}", "parameterBytes"),
        ("{modelType: llama, parameterBytes: 0}", "parameterBytes"),
        ("{schema: hermetic.dev/model-facts/v9, facts: {}}", "schema"),
        ("{facts: 7}", "facts"),
        ("{modelType: llama, parameterBytes: 1, colour: red}", "colour"),
        ("a: [", "is not YAML"),
        ("--- 1\n--- 2\n", "one document"),
        ("", "one document"),
    ],
)
def test_damaged_facts_name_the_file_and_the_field(tmp_path, content, says):
    file = tmp_path / "facts.yaml"
    file.write_text(content)
    ran = plan(a_share_model(), "--model-facts", file)
    assert ran.code == 2
    assert str(file) in ran.err
    assert says in ran.err


@pytest.mark.parametrize("content", ["[1]", "a: b", "a: true", "a: .inf", "a: -1"])
def test_prices_that_are_none_are_refused(tmp_path, content):
    file = tmp_path / "prices.yaml"
    file.write_text(content)
    ran = plan(with_facts(), "--prices", file)
    assert ran.code == 2
    assert str(file) in ran.err


def test_facts_of_one_model_are_for_one_deployment(tmp_path):
    two = yaml.safe_dump_all([a_share_model(), a_share_model("b")])
    ran = hermetic("plan", "-f", "-", "--model-facts", facts_file(tmp_path, L8), stdin=two)
    assert (ran.code, "facts of one model" in ran.err) == (2, True)


def test_an_invalid_manifest_is_refused_as_by_validate():
    ran = plan(changed(a_share_model(), {"spec.replicas": 300}))
    assert (ran.code, "HRM-API-001" in ran.err) == (2, True)


def test_every_field_of_the_json_is_described(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8").split("\n## hermetic plan\n")[1]
    planned = document(plan(with_facts(facts(LLAMA_8B, 10**11)), "--instance-type", A100, "-o", "json"))
    parts = [planned, planned["offload"], planned["loadTimes"][0], planned["asWritten"][0], planned["sizes"][0]]
    with_adapters = document(plan(with_adapter(), "--model", a_staged_share(tmp_path), "-o", "json"))
    parts += [with_adapters, with_adapters["adapters"][0]]
    names = {key for part in parts for key in part}
    assert [name for name in names if f"`{name}`" not in page.split("\n## ")[0]] == []


@pytest.mark.parametrize(("gpu", "used", "says"), [("A100-80GB", True, "are linked"), ("H200", False, "are ignored")])
def test_it_says_whether_staged_compile_caches_would_be_used(gpu, used, says):
    caches = [{"engine": "vllm", "version": "0.32.0", "gpu": gpu, "tensorParallelSize": 1}]
    warm = with_facts(**{"weights.caches": caches, "accelerator.instanceTypes": [A100]})
    compile_caches = document(plan(warm, "-o", "json"))["compileCaches"]
    assert (compile_caches["used"], says in compile_caches["message"]) == (used, True)
    assert "Compile caches: the" in plan(warm).out
    assert document(plan(with_facts(), "-o", "json"))["compileCaches"] is None
    assert "Compile caches" not in plan(with_facts()).out


def a_staged_share(root: Path, **fields: object) -> Path:
    """A share with a model and an adapter beside it, as `with_adapter` names them; returns the folder of the model."""
    folder = lora(root / "adapters" / "sql")
    (folder / "adapter_config.json").write_text(json.dumps(ADAPTER | fields))
    model = model_folder(root / "llama-3-1-8b" / "fp8", LLAMA_8B, {})
    a_shard(model / "model.safetensors", tensors=2, size=64)
    return model


def with_adapter(**fields: object) -> Manifest:
    adapter = {"name": "sql", "folder": "adapters/sql", "rank": 16, **fields}
    return changed(a_share_model(), {"spec.adapters": [adapter]})


@pytest.mark.parametrize(
    ("fields", "needed", "says"),
    [
        ({"r": 16}, 16, ""),
        ({"r": 17}, 32, "from 1 to 16, the largest `rank` of the adapters, found 17; write `rank: 32`"),
        ({"r": 8, "rank_pattern": {"q_proj": 64}}, 64, "write `rank: 64`"),
        ({"use_dora": True}, 8, "`use_dora`"),
        ({"r": "16"}, None, "`r`"),
    ],
    ids=str,
)
def test_adapters_of_a_staged_folder_are_compared_with_their_rank(tmp_path, fields, needed, says):
    model = a_staged_share(tmp_path, **fields)
    ran = plan(with_adapter(), "--model", model, "--instance-type", A100, "-o", "json")
    planned = document(ran)
    [adapter] = planned["adapters"]
    assert (adapter["name"], adapter["rank"], adapter["neededRank"]) == ("sql", 16, needed)
    assert (
        planned["impossible"][-1:] == adapter["problems"][-1:]
        or f"; write `rank: {needed}`" in planned["impossible"][-1]
    )
    assert (ran.code == 1) is bool(says)
    assert says in " ".join(planned["impossible"])
    text = plan(with_adapter(), "--model", model, "--instance-type", A100).out
    assert "adapter sql: `rank` 16" in text
    assert ("not possible: adapter 'sql'" in text) is bool(says)


def test_the_largest_rank_of_the_manifest_decides_for_every_adapter(tmp_path):
    model = a_staged_share(tmp_path, r=32)
    manifest = with_adapter()
    manifest["spec"]["adapters"].append({"name": "de", "folder": "adapters/de", "rank": 32})
    planned = document(plan(manifest, "--model", model, "--instance-type", A100, "-o", "json"))
    assert planned["impossible"] == []
    assert "No such file or directory" in planned["adapters"][1]["unread"]


def test_an_adapter_that_cannot_be_read_is_not_known_and_decides_nothing(tmp_path):
    model = a_staged_share(tmp_path)
    (tmp_path / "adapters" / "sql" / "adapter_config.json").unlink()
    ran = plan(with_adapter(), "--model", model, "--instance-type", A100, "-o", "json")
    assert ran.code == 0
    assert document(ran)["adapters"][0]["unread"]
    (tmp_path / "adapters" / "sql" / "adapter_config.json").write_text("{")
    assert plan(with_adapter(), "--model", model, "--instance-type", A100).code == 1

"""LoRA adapters of a model: where they are mounted, how the engine is told, and who may read their folders.

Sources: docs.vllm.ai, "LoRA Adapters" (`--lora-modules`, its JSON form); `LoRAParserAction` in
vllm/entrypoints/openai/cli_args.py (a value with a comma is read as JSON); docs.sglang.io, "LoRA Serving"
(`--lora-paths NAME=PATH`), `LoRAPathAction` of SGLang (a value in braces is read as JSON).
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hermetic.api.allow_lists import AllowedShare
from hermetic.engines.registry import launch
from hermetic.engines.sglang.tables import TABLES as SGLANG_TABLES
from hermetic.engines.vllm import VLLM
from hermetic.engines.vllm.tables import TABLES as VLLM_TABLES
from hermetic.plan.allowed_sources import share_is_allowed
from hermetic.plan.gate_results import Blocks
from hermetic.sizing.catalogue import sizes
from hermetic.sizing.memory import fit
from tests.model_configs import LLAMA_8B, LLAMA_8B_BYTES, facts
from tests.planning import planned, running, written
from tests.scenarios import (
    SGLANG_IMAGE,
    VLLM_IMAGE,
    Manifest,
    a_baked_model,
    a_nim_model,
    a_share_model,
    an_image_volume_model,
    an_sglang_model,
    changed,
)
from tests.snapshots import a_snapshot, rendered, spec_of

REPOSITORY = Path(__file__).resolve().parents[2]
MODEL = "llama-3-1-8b/fp8"
SQL = {"name": "sql", "folder": "adapters/sql", "rank": 16}
GERMAN = {"name": "support-de", "folder": "llama-3-1-8b/adapters/de", "rank": 64}
INSIDE = {"name": "inside", "folder": f"{MODEL}/adapters/in", "rank": 8}


def pod_of(manifest: Manifest) -> dict[str, Any]:
    pod: dict[str, Any] = rendered(manifest)["Deployment"]["spec"]["template"]["spec"]
    return pod


def weights_mounts(manifest: Manifest) -> dict[str, str | None]:
    """{path in the engine's container: folder of the volume}, all of them read-only."""
    mounts = [mount for mount in pod_of(manifest)["containers"][0]["volumeMounts"] if mount["name"] == "weights"]
    assert all(mount["readOnly"] for mount in mounts)
    return {mount["mountPath"]: mount.get("subPath") for mount in mounts}


def mounted_share(manifest: Manifest) -> dict[str, str]:
    attributes: dict[str, str] = rendered(manifest)["PersistentVolume"]["spec"]["csi"]["volumeAttributes"]
    return attributes


def values_of(manifest: Manifest, flag: str) -> list[str]:
    """The values of a flag of the engine: the arguments up to the next flag."""
    arguments = list(launch(spec_of(manifest)).args)
    assert arguments.count(flag) == 1
    behind = arguments[arguments.index(flag) + 1 :]
    end = next((index for index, argument in enumerate(behind) if argument.startswith("--")), len(behind))
    return behind[:end]


@pytest.mark.parametrize(
    ("adapters", "folder", "mounts"),
    [
        ([SQL], None, {"/weights": MODEL, "/adapters/sql": "adapters/sql"}),
        ([GERMAN], "llama-3-1-8b", {"/weights": "fp8", "/adapters/support-de": "adapters/de"}),
        ([INSIDE], MODEL, {"/weights": None}),
        (
            [SQL, GERMAN, INSIDE],
            None,
            {
                "/weights": MODEL,
                "/adapters/sql": "adapters/sql",
                "/adapters/support-de": "llama-3-1-8b/adapters/de",
            },
        ),
        (
            [{**SQL, "folder": "llama-3-1-8b/fp8-sql"}],
            "llama-3-1-8b",
            {"/weights": "fp8", "/adapters/sql": "fp8-sql"},
        ),
    ],
    ids=["beside the model", "below a common folder", "part of the model", "all", "a name that begins as the model's"],
)
def test_volume_is_the_deepest_folder_that_holds_model_and_adapters(
    adapters: list[Manifest], folder: str | None, mounts: dict[str, str | None]
) -> None:
    manifest = a_share_model(adapters=adapters)
    assert mounted_share(manifest).get("folderName") == folder
    assert weights_mounts(manifest) == mounts


def test_nfs_export_is_mounted_at_the_common_folder() -> None:
    nfs = {"server": "nas.contoso.internal", "path": "/export", "folder": MODEL}
    manifest = a_share_model(weights={"nfs": nfs}, adapters=[GERMAN])
    assert mounted_share(manifest)["share"] == "/export/llama-3-1-8b"
    assert weights_mounts(manifest) == {"/weights": "fp8", "/adapters/support-de": "adapters/de"}
    assert mounted_share(a_share_model(weights={"nfs": nfs}, adapters=[SQL]))["share"] == "/export"


def test_claim_is_mounted_once_for_each_folder() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "staged", "folder": MODEL}}
    manifest = a_share_model(weights=claim, adapters=[SQL])
    assert weights_mounts(manifest) == {"/weights": MODEL, "/adapters/sql": "adapters/sql"}
    assert [volume["name"] for volume in pod_of(manifest)["volumes"]].count("weights") == 1


@pytest.mark.parametrize(
    ("manifest", "path", "mounts"),
    [
        (a_baked_model(adapters=[SQL]), "/adapters/sql", {}),
        (an_image_volume_model(adapters=[SQL]), "/weights/adapters/sql", {"/weights": None}),
    ],
    ids=["serving image", "image volume"],
)
def test_adapter_in_an_image_is_read_where_the_image_has_it(
    manifest: Manifest, path: str, mounts: dict[str, str | None]
) -> None:
    (value,) = values_of(manifest, "--lora-modules")
    assert json.loads(value)["path"] == path
    assert weights_mounts(manifest) == mounts


@pytest.mark.parametrize("release", VLLM_TABLES.supported)
def test_every_release_of_vllm_is_told_names_paths_and_the_largest_rank(release: str) -> None:
    engine = {"vllm": {"image": VLLM_IMAGE, "version": f"{release}.0"}}
    manifest = a_share_model(engine=engine, adapters=[GERMAN, SQL, INSIDE])
    base = "meta/llama-3.1-8b-instruct"
    assert [json.loads(value) for value in values_of(manifest, "--lora-modules")] == [
        {"name": "support-de", "path": "/adapters/support-de", "base_model_name": base},
        {"name": "sql", "path": "/adapters/sql", "base_model_name": base},
        {"name": "inside", "path": "/weights/adapters/in", "base_model_name": base},
    ]
    assert values_of(manifest, "--enable-lora") == []
    assert (values_of(manifest, "--max-loras"), values_of(manifest, "--max-cpu-loras")) == (["3"], ["3"])
    assert values_of(manifest, "--max-lora-rank") == ["64"]


@pytest.mark.parametrize("release", SGLANG_TABLES.supported)
def test_every_release_of_sglang_is_told_names_paths_and_the_largest_rank(release: str) -> None:
    engine = {"sglang": {"image": SGLANG_IMAGE, "version": release}}
    manifest = an_sglang_model(engine=engine, adapters=[GERMAN, SQL])
    assert values_of(manifest, "--lora-paths") == ["support-de=/adapters/support-de", "sql=/adapters/sql"]
    assert values_of(manifest, "--enable-lora") == []
    assert values_of(manifest, "--max-lora-rank") == ["64"]


def test_folder_with_an_equals_sign_or_a_dollar_reaches_the_engine_as_it_is() -> None:
    """vLLM splits a value with '=' and no comma at every '='; the kubelet replaces $(NAME) in arguments."""
    inside = {**INSIDE, "folder": f"{MODEL}/r=16 $(HOME)"}
    (value,) = values_of(a_share_model(adapters=[inside]), "--lora-modules")
    assert "," in value
    assert json.loads(value)["path"] == "/weights/r=16 $(HOME)"
    assert any(
        "r=16 $$(HOME)" in argument for argument in pod_of(a_share_model(adapters=[inside]))["containers"][0]["args"]
    )


def test_models_without_adapters_have_no_flag_of_adapters() -> None:
    for manifest in (a_share_model(), an_sglang_model(), a_share_model(adapters=[])):
        assert not [argument for argument in launch(spec_of(manifest)).args if "lora" in argument]
    assert rendered(a_share_model(adapters=[])) == rendered(a_share_model())


def test_adapter_that_is_added_replaces_the_pods_and_one_that_is_removed_does_too() -> None:
    plain, adapted = a_share_model(), a_share_model(adapters=[INSIDE])
    assert written(planned(adapted, running(plain))) == [("Deployment", "changed")]
    assert written(planned(plain, running(adapted))) == [("Deployment", "changed")]


# ---------------------------------------------------------------------- who may read the folders


def allowed(adapters: list[Manifest], *folders: str) -> str:
    """ "" where the namespace may read the share for these adapters, else the message."""
    share = AllowedShare.model_validate(
        {"account": "contosomodels", "share": "models", "folders": list(folders), "namespaces": ["*"]}
    )
    snapshot = a_snapshot()
    policy = snapshot.policy.model_copy(update={"shares": [share]})
    verdict = share_is_allowed(spec_of(a_share_model(adapters=adapters)), replace(snapshot, policy=policy))
    return verdict.message if isinstance(verdict, Blocks) else ""


@pytest.mark.parametrize(
    ("adapters", "folders", "accepted"),
    [
        ([], ("llama-3-1-8b",), True),
        ([GERMAN], ("llama-3-1-8b",), True),
        ([INSIDE], (MODEL,), True),
        ([GERMAN], (MODEL,), False),
        ([SQL], (), True),
        ([SQL], ("llama-3-1-8b",), False),
        # Every pod of the namespace may mount the claim: it must not be of the whole share.
        ([SQL], ("llama-3-1-8b", "adapters"), False),
    ],
    ids=str,
)
def test_folder_that_holds_model_and_adapters_must_be_allowed(
    adapters: list[Manifest], folders: tuple[str, ...], accepted: bool
) -> None:
    message = allowed(adapters, *folders)
    assert (message == "") is accepted
    assert accepted or "which holds the model and `adapters`" in message


# ---------------------------------------------------------------------- the ways that stay shut


@pytest.mark.parametrize(
    ("engine", "argument"),
    [
        ("vllm", "--enable-lora"),
        ("vllm", "--enable_lora"),
        ("vllm", "--enable-lor"),
        ("vllm", "--no-enable-lora"),
        ("vllm", "--lora-modules=sql=/weights/adapters/sql"),
        ("vllm", "--lora_modules"),
        ("vllm", "--lora-m=sql=org/sql"),
        ("vllm", "--max-lora-rank=64"),
        ("sglang", "--enable-lora"),
        ("sglang", "--lora-paths"),
        ("sglang", "--lora-p=sql=org/sql"),
        ("sglang", "--max-lora-rank=64"),
    ],
)
def test_flag_of_adapters_is_refused_with_the_field_that_takes_its_place(engine: str, argument: str) -> None:
    model = a_share_model() if engine == "vllm" else an_sglang_model()
    settings = {engine: {**model["spec"]["engine"][engine], "extraArgs": [argument]}}
    with pytest.raises(ValidationError, match=r"set spec\.adapters"):
        spec_of(changed(model, engine=settings))


def test_flag_of_adapters_is_refused_of_a_nim_without_a_field_that_a_nim_does_not_take() -> None:
    nim = {**a_nim_model()["spec"]["engine"]["nim"], "extraArgs": ["--enable-lora"]}
    with pytest.raises(ValidationError, match="a NIM serves no adapters here; engine `vllm` or `sglang` does"):
        spec_of(changed(a_nim_model(), engine={"nim": nim}))


@pytest.mark.parametrize(
    "name", ["VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_LORA_RESOLVER_HF_REPO_LIST", "VLLM_PLUGINS"]
)
def test_adapters_cannot_be_loaded_into_a_running_vllm(name: str) -> None:
    """Its routes /v1/load_lora_adapter exist only with the first; the others resolve names at requests."""
    vllm = {**a_share_model()["spec"]["engine"]["vllm"], "extraEnv": [{"name": name, "value": "1"}]}
    with pytest.raises(ValidationError, match="must not be a reserved variable"):
        spec_of(a_share_model(adapters=[SQL], engine={"vllm": vllm}))
    assert name not in {variable["name"] for variable in launch(spec_of(a_share_model(adapters=[SQL]))).env}


def test_adapters_cannot_be_loaded_into_a_running_sglang_without_the_key_of_the_pod() -> None:
    """/load_lora_adapter needs the admin key, which is the uid of the pod."""
    launched = launch(spec_of(an_sglang_model(adapters=[SQL])))
    assert ("--admin-api-key", "SGLANG_SERVER_ADMIN_KEY") in launched.args_from_env


# ---------------------------------------------------------------------- memory, and the page


def test_plan_tells_the_room_for_adapters() -> None:
    """Llama 3.1 8B: hidden 4096, 32 heads of 128, 8 key-value heads, feed-forward 14336, 32 layers (its config.json).

    By hand: 2 x (4096 + 4096) + 2 x (4096 + 1024) + 3 x (4096 + 14336) = 81920 numbers of a layer and a rank.
    """
    model = facts(LLAMA_8B, LLAMA_8B_BYTES)
    plain, adapted = (
        fit(model, VLLM.serving(spec_of(a_share_model(adapters=adapters))), sizes()["Standard_NC24ads_A100_v4"].gpu)
        for adapters in ([], [SQL, GERMAN])
    )
    assert (plain.adapters, adapted.adapters) == (0, 2 * 2 * 64 * 81_920 * 32)
    assert adapted.overhead - plain.overhead == adapted.adapters


def test_example_of_the_page_is_accepted_and_mounts_the_folder_that_the_page_names() -> None:
    text = (REPOSITORY / "docs" / "adapters.md").read_text()
    example = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])
    manifest = a_share_model(**example)
    assert mounted_share(manifest)["folderName"] == "llama"
    assert weights_mounts(manifest) == {"/weights": "fp8", "/adapters/support-de": "adapters/support-de"}

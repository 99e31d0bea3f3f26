"""The weights block that staging prints is valid as it is, and names the share that the model was copied to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from hermetic.cli.weights.block import share_of
from hermetic.weights.fetched_at_start import VOCABULARY
from tests.commandline import hermetic
from tests.model_configs import LLAMA_8B
from tests.scenarios import a_share_model
from tests.weights_layouts import LAYOUTS

AZURE = (
    "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    "99 25 0:50 / /mnt/models rw shared:1 - nfs4 contosomodels.file.core.windows.net:/contosomodels/models rw\n"
)


def printed(text: str) -> dict[str, object]:
    """The block as it is printed, comments included."""
    begin = text.index("# Write the name") if "# Write the name" in text else text.index("weights:")
    block = yaml.safe_load(text[begin:])["weights"]
    assert isinstance(block, dict)
    return block


def validated(block: object, tmp_path: Path) -> tuple[int, str]:
    manifest = a_share_model()
    manifest["spec"]["weights"] = block
    (tmp_path / "model.yaml").write_text(yaml.safe_dump(manifest))
    ran = hermetic("validate", "-f", tmp_path / "model.yaml")
    return ran.code, ran.err


def test_stage_block_with_facts_and_allowed_files_is_valid(model: Path, share: Path, tmp_path: Path) -> None:
    (model / "config.json").write_text(json.dumps(LLAMA_8B))
    (model / "tool.py").write_text("x")
    ran = hermetic("stage", model, share / "llama-3-1-8b", "--allow", "tool.py", "--allow", "unused.py")
    assert ran.code == 0, ran.err
    block = printed(ran.out)
    assert block["azureFiles"] == {"account": "contosomodels", "share": "models", "folder": "llama-3-1-8b"}
    digest = ran.out.split("digest: ")[1].split()[0]
    assert block["integrity"] == {"digest": digest, "allow": ["tool.py"]}
    assert isinstance(block["facts"], dict)
    assert validated(block, tmp_path) == (0, "")
    allowed = [word for name in ["tool.py"] for word in ("--allow", name)]
    assert hermetic("verify", share / "llama-3-1-8b", "--digest", digest, *allowed).code == 0


@pytest.mark.sampled(6)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_stage_block_of_every_layout_is_valid(layout: Callable[[Path], Path], tmp_path: Path) -> None:
    ran = hermetic("stage", layout(tmp_path / "source"), tmp_path / "staged", "-o", "json")
    block = json.loads(ran.out.splitlines()[-1])["weights"]
    facts = block.pop("facts", None)
    assert validated(block, tmp_path) == (0, "")
    assert facts is None or facts["parameterBytes"] > 0


def test_stage_block_of_an_image_is_valid(model: Path, share: Path, tmp_path: Path) -> None:
    ran = hermetic("stage", model, share / "image", "--format", "oci", "--path-in-image", "models/phi")
    block = printed(ran.out)
    image = ran.out.split("\nimage: ")[1].split()[0]
    block.pop("facts")
    assert block == {"imageVolume": {"reference": f"contoso.azurecr.io/models/model@{image}", "path": "models/phi"}}
    assert validated(block, tmp_path)[0] == 0


def test_stage_folder_that_no_manifest_can_name_is_told(model: Path, share: Path) -> None:
    ran = hermetic("stage", model, share / "llama:3")
    assert ran.code == 0
    assert "weights:" not in ran.out
    assert "no weights block: weights.azureFiles.folder must be a folder that the Azure Files driver takes" in ran.err


@pytest.mark.parametrize(
    ("mounts", "folder", "member"),
    [
        (AZURE, "/mnt/models/llama/fp8", {"account": "contosomodels", "share": "models", "folder": "llama/fp8"}),
        (AZURE, "/mnt/models", {"account": "contosomodels", "share": "models"}),
        (AZURE.replace("contosomodels.file.core.windows.net:", "127.0.0.1:"), "/mnt/models/a",
         {"account": "contosomodels", "share": "models", "folder": "a"}),
        (AZURE.replace("/contosomodels/models rw", "/contosomodels/models/team rw"), "/mnt/models/a",
         {"account": "contosomodels", "share": "models", "folder": "team/a"}),
        (AZURE.replace("windows.net", "usgovcloudapi.net"), "/mnt/models/a",
         {"account": "contosomodels", "server": "contosomodels.file.core.usgovcloudapi.net", "share": "models",
          "folder": "a"}),
    ],
)  # fmt: skip
def test_share_of_folder_on_an_azure_files_mount_is_named(mounts: str, folder: str, member: dict[str, str]) -> None:
    """Mount sources as on "Mount an NFS Azure file share on Linux" of Azure Files."""
    assert share_of(Path(folder), mounts) == {"azureFiles": member}


def test_share_of_folder_on_another_mount() -> None:
    nas = "25 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 25 0:9 / /mnt/my\\040nas rw - nfs nas.contoso.internal:/export rw\n"
    assert share_of(Path("/mnt/my nas/a"), nas) == {
        "nfs": {"server": "nas.contoso.internal", "path": "/export", "folder": "a"}
    }
    assert share_of(Path("/mnt/other"), nas) is None
    assert share_of(Path("/mnt/models/a"), f"{AZURE}40 99 8:2 / /mnt/models/a rw - ext4 /dev/sdb rw\n") is None
    assert share_of(Path("/mnt/x"), "broken\n\n1 2 3\n") is None


@pytest.mark.parametrize(
    ("config", "explanation"),
    [
        ({"model_type": "gpt_oss"}, "openaipublic.blob.core.windows.net"),
        ({"speculators_config": {"verifier": {"name_or_path": "meta/llama"}}}, "vLLM would fetch meta/llama"),
        ({"model_type": "ultravox", "text_model_id": "meta-llama/Llama-3"}, "names the repository meta-llama/Llama-3"),
        ({"mm_vision_tower": "openai/clip-vit-large"}, "openai/clip-vit-large in mm_vision_tower"),
        ({"use_pretrained_backbone": True, "backbone": "resnet50"}, "resnet50 would be fetched"),
    ],
)
def test_stage_what_an_engine_would_fetch_is_told(
    model: Path, share: Path, config: dict[str, object], explanation: str
) -> None:
    (model / "config.json").write_text(json.dumps(config))
    ran = hermetic("stage", model, share / "model")
    assert (ran.code, explanation in " ".join(ran.err.split())) == (0, True), ran.err


def test_stage_gpt_oss_with_another_vocabulary_is_refused(model: Path, share: Path) -> None:
    """openai-harmony compares the vocabulary with the published digest (openai_public.py of tiktoken)."""
    (model / "config.json").write_text('{"model_type": "gpt_oss"}')
    (model / VOCABULARY).write_bytes(b"IQ== 0\nIg== 1\n")
    ran = hermetic("stage", model, share / "model")
    assert (ran.code, f"TokenizerInvalid: {VOCABULARY}" in ran.err) == (1, True)


def test_stage_complete_model_has_nothing_to_fetch(model: Path, share: Path) -> None:
    (model / "config.json").write_text(
        json.dumps(LLAMA_8B | {"_name_or_path": "meta/llama", "vision_tower": "./local"})
    )
    ran = hermetic("stage", model, share / "model", "-o", "json")
    assert json.loads(ran.out.splitlines()[-1])["advice"] == []

"""Weights that are staged, signed and verified by the init container of a real pod, on the mount that is served."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.damaged_files import flip_a_bit
from testbed.demo.estate import Estate
from testbed.images.model import model_files, stage_model
from testbed.installation import REPOSITORY
from testbed.kubectl import Kubectl
from testbed.node.handle import RunningNode
from tests.commandline import hermetic as run
from tests.node.serving import SMALL, Model
from tests.scenarios import Manifest, a_share_model, reporting
from tests.weights import keys

Deploy = Callable[..., Model]
SHARD = "model.safetensors"


@pytest.fixture
def pinned(weights: Path, tmp_path: Path) -> Manifest:
    """A model that was staged and signed as the page about weights says, and is pinned by digest and key."""
    private, public = keys(tmp_path)
    stage_model(tmp_path / "model")
    weights.parent.mkdir(parents=True)
    staged = run("stage", tmp_path / "model", weights)
    assert staged.code == 0, staged.err
    digest = staged.out.split("digest: ")[1].split()[0]
    signed = run("sign", weights, "--key", private, "--digest", digest)
    assert signed.code == 0, signed.err
    manifest = a_share_model()
    manifest["spec"]["weights"]["integrity"] = {"digest": digest, "publicKey": public.read_text()}
    return manifest


def engine_of(model: Model) -> dict[str, Any]:
    return dict(model.pod()["status"]["containerStatuses"][0])


def test_right_weights_are_verified_and_serve(deploy: Deploy, pinned: Manifest) -> None:
    model = deploy(pinned)
    model.until_reason("Serving")
    verified = model.condition("WeightsVerified")
    assert (verified["status"], verified["reason"]) == ("True", "IntegrityVerified")
    assert pinned["spec"]["weights"]["integrity"]["digest"] in verified["message"]


def flipped(weights: Path) -> None:
    flip_a_bit(weights / SHARD)


def cut_short(weights: Path) -> None:
    os.truncate(weights / SHARD, (weights / SHARD).stat().st_size - 1)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("damage", "reason"), [(flipped, "DigestMismatch"), (cut_short, "SizeMismatch")])
def test_no_engine_starts_on_weights_that_do_not_match_and_a_repair_is_enough(
    deploy: Deploy, pinned: Manifest, weights: Path, damage: Callable[[Path], None], reason: str
) -> None:
    damage(weights)
    model = deploy(pinned)
    ready = model.until_reason(reason)
    assert SHARD in ready["message"]
    verified = model.condition("WeightsVerified")
    assert (verified["status"], verified["reason"]) == ("False", reason)
    assert (engine_of(model)["restartCount"], engine_of(model).get("started", False)) == (0, False)
    assert "PodInitializing" in str(engine_of(model)["state"])

    (weights / SHARD).write_bytes(model_files()[SHARD])

    model.until_reason("Serving", timeout=400)
    assert model.condition("WeightsVerified")["status"] == "True"


PAGE = (REPOSITORY / "docs" / "weights.md").read_text(encoding="utf-8")


def test_the_page_leads_from_the_jump_box_to_ready(
    hermetic: Kubectl,  # noqa: ARG001
    estate: Estate,
    node: RunningNode,
    namespace: str,
    tmp_path: Path,
) -> None:
    """The commands of docs/weights.md as they stand there; of its manifest only names and digests are filled in."""
    stage_model(tmp_path / "model")
    share = node.shares / "contosomodels" / "models" / namespace
    share.mkdir(parents=True)
    (tmp_path / "share").symlink_to(share)
    typed = block_of("## In short", "")
    staged = in_a_shell(tmp_path, node, typed)
    manifest = yaml.safe_load(
        block_of("## Verified before serving", "yaml", "ModelDeployment").replace("DIGEST", "3f1c" * 16)
    )
    manifest["metadata"]["namespace"] = namespace
    manifest["spec"]["weights"]["azureFiles"]["folder"] = f"{namespace}/llama-3-1-8b"
    manifest["spec"]["weights"]["integrity"]["digest"] = staged.split("digest: ")[1].split()[0]
    manifest["spec"]["resources"] = SMALL
    placed = estate.with_digests(reporting(manifest))
    (tmp_path / "llama.yaml").write_text(yaml.safe_dump(placed))

    output = in_a_shell(
        tmp_path, node, block_of("## Verified before serving", "", "kubectl").replace("inference", namespace)
    )

    assert "verified before each engine started" in output


def block_of(chapter: str, language: str, having: str = "") -> str:
    text = PAGE.split(chapter)[1].split("\n## ")[0]
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(str(block) for block in blocks if having in block)


def in_a_shell(folder: Path, node: RunningNode, lines: str) -> str:
    """Runs the lines in one shell, which has hermetic and kubectl; returns what they print."""
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), str(Path(node.kubectl.program).parent), os.environ["PATH"]]
    )
    environment = {**os.environ, "PATH": path, "KUBECONFIG": str(node.kubeconfig)}
    command = ["sh", "-euc", lines]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout

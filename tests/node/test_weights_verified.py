"""Weights that are staged, signed and verified by the init container of a real pod, on the mount that is served."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.images.model import model_files, stage_model
from tests.commandline import hermetic
from tests.node.serving import Model
from tests.scenarios import Manifest, a_share_model
from tests.weights import flip_a_bit, keys

Deploy = Callable[..., Model]
SHARD = "model.safetensors"


@pytest.fixture
def pinned(weights: Path, tmp_path: Path) -> Manifest:
    """A model that was staged and signed as the page about weights says, and is pinned by digest and key."""
    private, public = keys(tmp_path)
    stage_model(tmp_path / "model")
    weights.parent.mkdir(parents=True)
    staged = hermetic("stage", tmp_path / "model", weights)
    assert staged.code == 0, staged.err
    digest = staged.out.split("digest: ")[1].split()[0]
    signed = hermetic("sign", weights, "--key", private, "--digest", digest)
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

"""Compile caches that were staged with the weights, on a real kubelet: verified, linked, and writable beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.damaged_files import flip_a_bit
from testbed.images.model import stage_model
from tests.commandline import hermetic as run
from tests.node.serving import Model
from tests.scenarios import Manifest, a_share_model

Deploy = Callable[..., Model]
GPUS = {"instanceTypes": ["Standard_NC96ads_A100_v4"]}
KERNEL, LIBRARY = "triton/ABCDEF/kernel.cubin", "triton/ABCDEF/launcher.so"


@pytest.fixture
def warm(weights: Path, tmp_path: Path) -> Manifest:
    """A model that was staged with the caches of a twin, and is pinned by its digest."""
    manifest = a_share_model(accelerator=GPUS)
    (tmp_path / "llama.yaml").write_text(yaml.safe_dump(manifest))
    stage_model(tmp_path / "model")
    for path in (KERNEL, LIBRARY):
        (tmp_path / "cache" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / path).write_text(f"compiled {path}")
    weights.parent.mkdir(parents=True)
    twin = ("--caches", tmp_path / "cache", "--caches-for", tmp_path / "llama.yaml")
    staged = run("stage", tmp_path / "model", weights, *twin, "-o", "json")
    assert staged.code == 0, staged.err
    document: dict[str, Any] = json.loads(staged.out.splitlines()[-1])
    manifest["spec"]["weights"] |= {"integrity": {"digest": document["digest"]}, "caches": document["caches"]}
    return manifest


def test_the_engine_finds_the_staged_caches_in_its_own_and_writes_beside_them(deploy: Deploy, warm: Manifest) -> None:
    model = deploy(warm)
    model.until_reason("Serving")
    used = model.condition("CachesUsed")
    assert (used["status"], used["reason"]) == ("True", "CachesMatch")
    assert model.condition("WeightsVerified")["reason"] == "IntegrityVerified"
    cache = "/home/hermetic/.cache"
    assert model.shell(f"cat {cache}/{KERNEL}") == f"compiled {KERNEL}"
    assert "/weights/.hermetic/caches/" in model.shell(f"readlink {cache}/{KERNEL}")
    assert model.shell(f"test -L {cache}/{LIBRARY} || cat {cache}/{LIBRARY}") == f"compiled {LIBRARY}"
    replaced = f"echo new > {cache}/triton/tmp && mv {cache}/triton/tmp {cache}/{KERNEL} && cat {cache}/{KERNEL}"
    assert model.shell(replaced).strip() == "new"
    assert "Read-only file system" in model.shell("touch /weights/.hermetic/caches/planted")


def test_no_engine_starts_on_a_cache_with_a_flipped_bit(deploy: Deploy, warm: Manifest, weights: Path) -> None:
    flip_a_bit(next(weights.rglob("kernel.cubin")))
    model = deploy(warm)
    assert KERNEL in model.until_reason("DigestMismatch")["message"]
    engine = model.pod()["status"]["containerStatuses"][0]
    assert (engine["restartCount"], engine.get("started", False)) == (0, False)


def test_files_of_a_group_are_read_by_pods_that_are_given_it(deploy: Deploy, warm: Manifest, weights: Path) -> None:
    for path in (weights, *weights.rglob("*")):
        os.chown(path, 0, 2000)
        path.chmod(0o750 if path.is_dir() else 0o640)
    warm["spec"]["weights"]["supplementalGroups"] = [2000]
    model = deploy(warm)
    model.until_reason("Serving")
    assert "2000" in model.shell("id -G").split()
    del warm["spec"]["weights"]["supplementalGroups"]
    assert deploy(warm).until_reason("ModeUnreadable")["message"]

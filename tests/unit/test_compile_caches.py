"""Staged compile caches reach the engine only where engine, version, GPU model and parallelism are those of the key."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermetic.api.configuration import Configuration
from hermetic.api.engine_caches import EngineCaches
from hermetic.api.staged_folders import CACHES
from hermetic.controller.condition_events import announcements
from hermetic.engines import registry
from hermetic.engines.compile_caches import COPIED, LINKED
from hermetic.objects.children import PlatformSettings, render
from hermetic.plan.planning import plan
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.status import status
from hermetic.plan.weights_integrity import verifier
from tests.corpus.manifests import changed
from tests.renderings import RENDERINGS
from tests.scenarios import (
    DIGEST,
    Manifest,
    a_baked_model,
    a_nim_model,
    a_share_model,
    an_image_volume_model,
    an_sglang_model,
)
from tests.snapshots import NOW, POLICY, a_snapshot, an_a100_node, carried_out, owner_of, spec_of

H100, A100, NVL = "Standard_ND96isr_H100_v5", "Standard_NC24ads_A100_v4", "Standard_NC40ads_H100_v5"
KEY: dict[str, Any] = {"engine": "vllm", "version": "0.32.0", "gpu": "H100-80GB", "tensorParallelSize": 2}


def warm(base: Manifest | None = None, key: dict[str, Any] | None = None, **changes: Any) -> Manifest:
    values = {
        "accelerator": {"count": 2, "instanceTypes": [H100]},
        "weights.caches": [{**KEY, **(key or {})}],
        **changes,
    }
    return changed(base or a_share_model(), {f"spec.{path}": value for path, value in values.items()})


def verifying(**integrity: Any) -> ClusterSnapshot:
    """A snapshot whose operator verifies weights before an engine starts."""
    written = {"verifiers": [f"contoso.azurecr.io/hermetic@sha256:{DIGEST}"], **integrity}
    return a_snapshot(policy=Configuration.model_validate({**POLICY.model_dump(by_alias=True), "integrity": written}))


def conditions(manifest: Manifest, snapshot: ClusterSnapshot | None = None) -> dict[str, Any]:
    spec, snapshot = spec_of(manifest), snapshot or verifying()
    decided = plan(spec, snapshot, NOW)
    model_status = status(spec, carried_out(snapshot, decided), decided, (), NOW)
    return {
        **{condition["type"]: condition for condition in model_status["conditions"]},
        "events": list(announcements({}, model_status)),
    }


def pod(manifest: Manifest, snapshot: ClusterSnapshot | None = None) -> Manifest:
    spec = spec_of(manifest)
    manifests = render(owner_of(manifest), spec, PlatformSettings(verifier(spec, snapshot or verifying())))
    return next(manifest for manifest in manifests if manifest["kind"] == "Deployment")["spec"]["template"]["spec"]


def caching(pod_spec: Manifest) -> list[Manifest]:
    """The init containers for caches."""
    return [
        init_container
        for init_container in pod_spec.get("initContainers", ())
        if init_container["name"] != "verify-weights"
    ]


def test_the_matching_caches_are_linked_and_said():
    assert pod(warm())["initContainers"][0]["name"] == "verify-weights"
    containers = caching(pod(warm()))
    folder = f"/weights/{CACHES}/vllm-0.32.0-H100-80GB-tp2-pp1"
    assert [(container["name"], container["command"]) for container in containers] == [
        ("link-cache", ["cp", "-Rsf", f"{folder}/{LINKED}/.", "/home/hermetic/.cache/"]),
        ("copy-cache", ["cp", "-Rf", f"{folder}/{COPIED}/.", "/home/hermetic/.cache/"]),
    ]
    weights = next(volume_mount for volume_mount in containers[0]["volumeMounts"] if volume_mount["name"] == "weights")
    assert weights["readOnly"]
    condition = conditions(warm())["CachesUsed"]
    assert (condition["status"], condition["reason"]) == ("True", "CachesMatch")
    assert "'vllm-0.32.0-H100-80GB-tp2-pp1'" in condition["message"]


@pytest.mark.parametrize(
    ("manifest", "says"),
    [
        pytest.param(warm(key={"version": "0.32.1"}), "needs 'vllm-0.32.0-H100-80GB-tp2-pp1'", id="version"),
        pytest.param(warm(key={"engine": "sglang"}), "staged are 'sglang-0.32.0-", id="engine"),
        pytest.param(warm(key={"gpu": "H100-NVL"}), "staged are 'vllm-0.32.0-H100-NVL-tp2-pp1'", id="GPU"),
        pytest.param(warm(key={"tensorParallelSize": 1}), "staged are 'vllm-0.32.0-H100-80GB-tp1-pp1'", id="parallel"),
        pytest.param(warm(key={"pipelineParallelSize": 2}), "H100-80GB-tp2-pp2'", id="stages"),
        pytest.param(warm(accelerator={"count": 2}), "`accelerator.instanceTypes` names no VM size", id="no size"),
        pytest.param(
            warm(accelerator={"count": 2, "instanceTypes": [H100, A100]}),
            "several GPU models: A100-80GB, H100-80GB",
            id="two GPU models",
        ),
        pytest.param(
            warm(accelerator={"count": 2, "instanceTypes": ["Standard_NV6"]}),
            "GPU model of VM size Standard_NV6 is not known",
            id="a size not listed",
        ),
        pytest.param(
            warm(accelerator={"count": 1, "instanceTypes": [H100], "resource": "nvidia.com/mig-1g.10gb"}),
            "'nvidia.com/mig-1g.10gb'",
            id="a slice",
        ),
        pytest.param(warm(a_nim_model()), "compile caches of a NIM", id="a NIM"),
    ],
)
def test_caches_of_another_key_are_ignored_and_said(manifest: Manifest, says: str):
    without = changed(manifest, {"spec.weights.caches": []})
    assert pod(manifest) == pod(without)
    condition_of = conditions(manifest)
    assert (condition_of["CachesUsed"]["status"], condition_of["CachesUsed"]["reason"]) == ("False", "CachesIgnored")
    assert says in condition_of["CachesUsed"]["message"]
    assert ("Warning", "CachesIgnored") in [(event.severity, event.reason) for event in condition_of["events"]]
    assert condition_of["Ready"]["reason"] != "CachesIgnored"


def test_sizes_of_one_gpu_model_are_as_good_as_one():
    sizes = {"count": 2, "instanceTypes": ["Standard_NC80adis_H100_v5", NVL]}
    assert conditions(warm(key={"gpu": "H100-NVL"}, accelerator=sizes))["CachesUsed"]["status"] == "True"


def test_pods_depend_on_the_spec_and_not_on_the_nodes_of_the_moment():
    manifest = warm(accelerator={"count": 2}, key={"gpu": "A100-80GB"})
    spec = spec_of(manifest)
    for nodes in ((), (an_a100_node(),)):
        snapshot = replace(verifying(), nodes=nodes)
        decided = plan(spec, snapshot, NOW)
        model_status = status(spec, carried_out(snapshot, decided), decided, (), NOW)
        assert (
            next(condition for condition in model_status["conditions"] if condition["type"] == "CachesUsed")["status"]
            == "False"
        )


def test_the_first_matching_entry_of_many_is_used():
    many = [{**KEY, "gpu": "A100-80GB"}, KEY, {**KEY, "version": "0.33.0"}]
    assert conditions(warm(**{"weights.caches": many}))["CachesUsed"]["status"] == "True"


def test_sglang_gets_its_own():
    sglang = an_sglang_model()
    version = sglang["spec"]["engine"]["sglang"]["version"]
    containers = caching(pod(warm(sglang, key={"engine": "sglang", "version": version})))
    assert f"sglang-{version}-H100-80GB-tp2-pp1" in containers[0]["command"][2]


def test_without_caches_there_is_no_condition_and_no_other_pod():
    for name, manifest in RENDERINGS.items():
        if name != "compile-caches":
            assert "CachesUsed" not in conditions(manifest)


@pytest.mark.parametrize(
    ("snapshot", "integrity"),
    [
        pytest.param(a_snapshot(), {}, id="no verifier"),
        pytest.param(verifying(minimumPolicy="Off"), {"policy": "Off"}, id="not verified"),
        pytest.param(verifying(minimumPolicy="Warn"), {"policy": "Warn"}, id="mismatches are only said"),
    ],
)
def test_code_is_not_taken_from_weights_that_need_not_match(snapshot: ClusterSnapshot, integrity: dict[str, Any]):
    manifest = warm(**({"weights.integrity": integrity} if integrity else {}))
    assert caching(pod(manifest, snapshot)) == []
    condition = conditions(manifest, snapshot)["CachesUsed"]
    assert (condition["reason"], "not verified" in condition["message"]) == ("CachesIgnored", True)


@pytest.mark.parametrize("base", [a_baked_model(), an_image_volume_model()], ids=["baked", "image volume"])
def test_weights_in_an_image_are_pinned_by_its_digest(base: Manifest):
    containers = caching(pod(warm(base), a_snapshot()))
    assert [container["name"] for container in containers] == ["link-cache", "copy-cache"]
    assert conditions(warm(base), a_snapshot())["CachesUsed"]["reason"] == "CachesMatch"


@pytest.mark.parametrize("times", [1, 2])
def test_the_commands_make_a_writable_cache_of_links_and_copies(tmp_path: Path, times: int):
    """Run as rendered, with the paths of the container moved; the second run is that after a restart of the node."""
    key = EngineCaches.model_validate(KEY)
    staged, home = tmp_path / "weights" / CACHES / key.folder, tmp_path / "home"
    index = "vllm/torch_compile_cache/a1/rank_0_0/vllm_compile_cache.py"
    for path in (f"{LINKED}/triton/ABC/kernel.cubin", f"{COPIED}/{index}"):
        (staged / path).parent.mkdir(parents=True)
        (staged / path).write_text("staged")
        (staged / path).chmod(0o444)
    home.mkdir()
    for _ in range(times):
        for container in caching(pod(warm())):
            moved = [
                word.replace("/weights", f"{tmp_path}/weights").replace("/home/hermetic", str(home))
                for word in container["command"]
            ]
            subprocess.run(moved, check=True)
    linked = home / ".cache/triton/ABC/kernel.cubin"
    assert linked.readlink() == staged / LINKED / "." / "triton/ABC/kernel.cubin"
    assert linked.read_text() == "staged"
    assert not (home / ".cache" / index).is_symlink()
    # As Triton, Inductor and DeepGEMM write: beside the others, and in place of one by a rename.
    (home / ".cache/triton/NEW").mkdir()
    (linked.parent / "tmp").write_text("new")
    (linked.parent / "tmp").replace(linked)
    assert (staged / LINKED / "triton/ABC/kernel.cubin").read_text() == "staged"


def test_the_key_of_every_rendering_is_a_key_or_a_clause():
    for manifest in RENDERINGS.values():
        spec = spec_of(manifest)
        key = registry.engine_of(spec).cache_key(spec)
        assert key if isinstance(key, str) else key.tensor_parallel_size * key.pipeline_parallel_size > 0

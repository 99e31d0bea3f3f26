"""`hermetic stage --caches`: caches of a twin are staged for one key, and verified like the weights beside them."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermetic.api.staged_folders import CACHES
from hermetic.engines.registry import launch
from hermetic.weights.caches import KEY_FILE
from testbed.damaged_files import flip_a_bit
from tests.commandline import Ran, hermetic
from tests.corpus.manifests import changed
from tests.scenarios import a_nim_model, a_share_model
from tests.snapshots import spec_of
from tests.weights import contents, keys

KEY = "vllm-0.32.0-H100-80GB-tp1-pp1"
SIZES = {"instanceTypes": ["Standard_ND96isr_H100_v5"]}
COMPILED = "vllm/torch_compile_cache/3f/rank_0_0/backbone"
# What a pod has in its `.cache` after it served: what is staged, then what is not.
STAGED = {
    f"{COMPILED}/inductor_cache/ab/cab.py": "linked",
    f"{COMPILED}/vllm_compile_cache.py": "copied",
    "vllm/torch_compile_cache/torch_aot_compile/3f/rank_0_0/model": "linked",
    "vllm/modelinfos/vllm-model_executor-models-llama.json": "linked",
    "vllm/flashinfer_autotune_cache/0.7.0/90a/3f/autotune_configs.json": "linked",
    "triton/ABCDEF/__grp__kernel.json": "linked",
    "triton/ABCDEF/kernel.cubin": "linked",
    "triton/ABCDEF/__triton_launcher.so": "copied",
    "deep_gemm/cache/kernel.x.0/kernel.cubin": "linked",
}
LEFT = (
    f"{COMPILED}/inductor_cache/locks/cab.lock",
    f"{COMPILED}/cache_key_factors.json",
    "vllm/gpu_p2p_access_cache_for_0,1.json",
    "deep_gemm/tmp/x/kernel.cu",
    "flashinfer/0.7.2/90/cached_ops/x/x.so",
    "cuda/0/index",
)


@pytest.fixture
def share(share: Path) -> Path:
    """Where the model is staged to."""
    return share / "llama"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    for path in (*STAGED, *LEFT):
        (tmp_path / "cache" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cache" / path).write_text(f"content of {path}")
    return tmp_path / "cache"


def manifest(tmp_path: Path, **changes: Any) -> Path:
    file = tmp_path / "llama.yaml"
    file.write_text(yaml.safe_dump(a_share_model(**{"accelerator": SIZES, **changes})))
    return file


def staged(model: Path, share: Path, cache: Path, tmp_path: Path, *more: str) -> Ran:
    return hermetic("stage", model, share, "--caches", cache, "--caches-for", manifest(tmp_path), *more)


def test_caches_are_staged_for_their_key_and_nothing_else_of_the_twin(model, share, cache, tmp_path):
    ran = staged(model, share, cache, tmp_path, "-o", "json")
    assert ran.code == 0, ran.err
    cache_files = {path: content for path, content in contents(share).items() if path.startswith(f"{CACHES}/")}
    expected = {f"{CACHES}/{KEY}/{part}/{path}": f"content of {path}".encode() for path, part in STAGED.items()}
    written = cache_files.pop(f"{CACHES}/{KEY}/copied/{KEY_FILE}")
    assert cache_files == expected
    assert json.loads(written)["key"]["gpu"] == "H100-80GB"
    for path in share.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644), path
    document = json.loads(ran.out.splitlines()[-1])
    assert document["caches"] == [{"engine": "vllm", "version": "0.32.0", "gpu": "H100-80GB", "tensorParallelSize": 1}]
    assert hermetic("verify", share, "--digest", document["digest"]).code == 0


def test_what_stage_prints_is_what_the_deployment_needs(model, share, cache, tmp_path):
    ran = staged(model, share, cache, tmp_path)
    caches = yaml.safe_load(ran.out[ran.out.index("\nweights:") :])["weights"]["caches"]
    deployment = changed(a_share_model(accelerator=SIZES), {"spec.weights.caches": caches})
    containers = launch(spec_of(deployment)).init_containers
    assert [container.name for container in containers] == ["link-cache", "copy-cache"]
    for container in containers:
        source = container.command[2].replace("/weights", str(share), 1)
        assert Path(source).is_dir(), source


@pytest.mark.parametrize("path", [f"linked/{COMPILED}/inductor_cache/ab/cab.py", f"copied/{KEY_FILE}"])
def test_a_flipped_bit_in_a_cache_is_refused_as_in_the_weights(model, share, cache, tmp_path, path):
    digest = json.loads(staged(model, share, cache, tmp_path, "-o", "json").out.splitlines()[-1])["digest"]
    private, public = keys(tmp_path)
    assert hermetic("sign", share, "--key", private, "--digest", digest).code == 0
    assert hermetic("verify", share, "--public-key", public).code == 0
    flip_a_bit(share / CACHES / KEY / path)
    ran = hermetic("verify", share, "--public-key", public)
    assert (ran.code, f"DigestMismatch: {CACHES}/{KEY}/{path}" in ran.out) == (1, True)


def test_a_cache_that_was_added_later_is_refused(model, share, cache, tmp_path):
    digest = json.loads(staged(model, share, cache, tmp_path, "-o", "json").out.splitlines()[-1])["digest"]
    (share / CACHES / KEY / "linked/triton/EVIL").mkdir()
    (share / CACHES / KEY / "linked/triton/EVIL/kernel.so").write_text("code")
    ran = hermetic("verify", share, "--digest", digest)
    assert (ran.code, "FileNotListed" in ran.out) == (1, True)


def test_verify_says_for_what_key_there_are_caches(model, share, cache, tmp_path):
    digest = json.loads(staged(model, share, cache, tmp_path, "-o", "json").out.splitlines()[-1])["digest"]
    assert f"compile caches for {KEY}" in hermetic("verify", share, "--digest", digest).err
    assert json.loads(hermetic("verify", share, "-o", "json").out)["caches"] == [KEY]
    assert json.loads(hermetic("verify", model, "-o", "json").out)["caches"] == []


def test_caches_of_another_gpu_are_added_to_a_staged_model(model, share, cache, tmp_path):
    """The staged model is the source of the next one, and keeps the caches that it has."""
    assert staged(model, share, cache, tmp_path).code == 0
    sizes = {"instanceTypes": ["Standard_NC24ads_A100_v4"]}
    other = share.with_name("both")
    ran = hermetic("stage", share, other, "--caches", cache, "--caches-for", manifest(tmp_path, accelerator=sizes))
    assert ran.code == 0, ran.err
    assert json.loads(hermetic("verify", other, "-o", "json").out)["caches"] == [
        "vllm-0.32.0-A100-80GB-tp1-pp1",
        KEY,
    ]


def test_caches_of_the_same_key_take_the_place_of_older_ones(model, share, cache, tmp_path):
    assert staged(model, share, cache, tmp_path).code == 0
    (cache / "triton/ABCDEF/kernel.cubin").write_text("newer")
    (cache / "deep_gemm/cache/kernel.x.0/kernel.cubin").unlink()
    other = share.with_name("newer")
    assert staged(share, other, cache, tmp_path).code == 0
    assert (other / CACHES / KEY / "linked/triton/ABCDEF/kernel.cubin").read_text() == "newer"
    assert not (other / CACHES / KEY / "linked/deep_gemm").exists()


def test_a_link_in_a_cache_is_refused_before_anything_is_copied(model, share, cache, tmp_path):
    (cache / "triton/ABCDEF/link").symlink_to("/etc/hostname")
    ran = staged(model, share, cache, tmp_path)
    assert (ran.code, "NameRefused" in ran.err, "cp -RL" in ran.err) == (1, True, True)
    assert not share.exists()


def test_code_beside_the_caches_is_refused_as_ever(model, share, cache, tmp_path):
    (model / ".hermetic").mkdir()
    (model / ".hermetic" / "x.py").write_text("code")
    ran = staged(model, share, cache, tmp_path)
    assert (ran.code, "ExecutableContent: .hermetic/x.py" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("deployment", "says"),
    [
        (a_share_model(), "`accelerator.instanceTypes` names no VM size"),
        (a_nim_model(), "compile caches of a NIM"),
    ],
    ids=["no GPU model", "a NIM"],
)
def test_caches_without_a_key_are_refused(model, share, cache, tmp_path, deployment, says):
    file = tmp_path / "one.yaml"
    file.write_text(yaml.safe_dump(deployment))
    ran = hermetic("stage", model, share, "--caches", cache, "--caches-for", file)
    assert (ran.code, says in ran.err) == (2, True)


def test_a_folder_without_caches_is_refused_with_where_they_are(model, share, tmp_path):
    (tmp_path / "cache").mkdir()
    ran = staged(model, share, tmp_path / "cache", tmp_path)
    assert (ran.code, "vllm/torch_compile_cache" in ran.err, "kubectl cp" in ran.err) == (2, True, True)


def test_one_option_without_the_other_is_refused(model, share, cache):
    assert hermetic("stage", model, share, "--caches", cache).code == 2


def names_in(blob: Path) -> list[str]:
    """The names in a layer; none in a blob that is no tar."""
    try:
        with tarfile.open(blob) as layer:
            return [name.removeprefix("./") for name in layer.getnames()]
    except tarfile.ReadError:
        return []


def test_an_image_of_the_weights_holds_the_caches_too(model, share, cache, tmp_path):
    ran = staged(model, share, cache, tmp_path, "--format", "oci", "-o", "json")
    assert ran.code == 0, ran.err
    blob_names = {name for blob in (share / "blobs" / "sha256").iterdir() for name in names_in(blob)}
    assert {f"{CACHES}/{KEY}/{part}/{path}" for path, part in STAGED.items()} <= blob_names


def test_caches_that_the_source_brings_are_told(model, share, cache, tmp_path):
    """An engine executes them, and the command line did not ask for them."""
    cache_warning = "the source has compile caches, which engines execute: "
    assert cache_warning not in staged(model, share, cache, tmp_path).err
    again = tmp_path / "again"
    assert f"{cache_warning}{KEY}" in hermetic("stage", share, again).err
    event = json.loads(hermetic("stage", share, tmp_path / "third", "-o", "json").out.splitlines()[-1])
    assert f"{cache_warning}{KEY}" in event["advice"]
    other = {"accelerator": {"instanceTypes": ["Standard_NC24ads_A100_v4"]}}
    caches = ("--caches", cache, "--caches-for", manifest(tmp_path, **other))
    ran = hermetic("stage", share, tmp_path / "fourth", *caches)
    assert f"{cache_warning}{KEY}" in ran.err
    assert ran.err.count(cache_warning) == 1

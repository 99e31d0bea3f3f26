"""Images of weights, taken by the real skopeo, oras, registry and containerd, and verified as they are unpacked."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.containerd import Containerd
from testbed.installation import REPOSITORY
from testbed.programs import programs
from testbed.registry import Registry
from testbed.skopeo import skopeo
from tests.commandline import hermetic, hermetic_process
from tests.install_page import commands
from tests.weights import a_model, keys

PAGE = REPOSITORY / "docs" / "weights.md"
REGISTRY = "contoso.azurecr.io"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its keys, and the image that the page makes of it; `told` is what was printed."""
    folder = tmp_path_factory.mktemp("images")
    a_model(folder / "model", size=5 * 2**20)
    keys(folder)
    (stage,) = (line for line in commands("As an image", PAGE) if "--format oci " in line)
    with contextlib.chdir(folder):
        ran = hermetic(*shlex.split(stage)[1:], "-o", "json")
    assert ran.code == 0, ran.err
    (folder / "told").write_text(ran.out.splitlines()[-1])
    return folder


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


def image_digests(folder: Path) -> dict[str, str]:
    return json.loads((folder / "told").read_text())


def test_skopeo_pushes_it_under_its_digest_as_the_page_says(
    folder: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (line,) = (line for line in commands("As an image", PAGE) if line.startswith("skopeo copy "))
    *arguments, target = shlex.split(line.replace(REGISTRY, registry.host))[2:]
    skopeo("copy", "--dest-tls-verify=false", *arguments, target)
    inspected = skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", target)
    assert inspected.strip() == image_digests(folder)["image"]
    back = f"oci:{folder}/back:latest"
    skopeo("copy", "--src-tls-verify=false", "--preserve-digests", target, back)
    assert skopeo("inspect", "--format", "{{.Digest}}", back).strip() == image_digests(folder)["image"]


def test_oras_copies_it_under_its_digest(folder: Path, registry: Registry) -> None:
    target = f"{registry.host}/by-oras/llama:staged"
    name = image_digests(folder)["digest"].removeprefix("sha256:")[:12]
    command = [programs("oras")["oras"], "cp", "--to-plain-http", "--from-oci-layout", f"image:{name}", target]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    shown = skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", f"docker://{target}")
    assert shown.strip() == image_digests(folder)["image"]


def test_containerd_unpacks_it_and_the_weights_verify(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("containerd needs root")
    archive = folder / "image.tar"
    ran = hermetic(
        "stage", folder / "model", archive, "--format", "oci-archive", "--key", folder / "platform.pem",
        "--path-in-image", "models/llama",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    digest = re.search(r"image: (sha256:[0-9a-f]{64})", ran.out)
    assert digest is not None
    with tempfile.TemporaryDirectory(prefix="hermetic-") as directory, Containerd(Path(directory)) as containerd:
        # the snapshotter that copies: its last snapshot is a folder with the whole tree
        containerd.ctr(
            "images",
            "import",
            "--local",
            "--snapshotter",
            "native",
            "--base-name",
            f"{REGISTRY}/llama",
            "--digests",
            str(archive),
        )
        name = f"{REGISTRY}/llama@{digest[1]}"
        assert name in containerd.ctr("images", "list", "--quiet").split()
        snapshots = Path(directory, "root", "io.containerd.snapshotter.v1.native", "snapshots")
        (unpacked,) = (path.parent for path in snapshots.glob("*/models/llama/.hermetic"))
        verified = hermetic_process("verify", unpacked, "--public-key", folder / "platform.pub")
        modes = {oct(path.stat().st_mode & 0o777) for path in unpacked.rglob("*") if path.is_file()}
    assert verified.code == 0, verified.err
    assert modes == {"0o644"}

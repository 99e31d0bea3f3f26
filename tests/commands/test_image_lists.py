"""The lists of `hermetic images`, run by the real skopeo and oras between two registries, and parsed by the real az."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from shipping.layout import layout_files, write_tar
from testbed.azure_cli.installing import parsed
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image, as_json, digest_of
from testbed.programs import programs
from testbed.registry import Registry
from testbed.skopeo import skopeo
from tests.commandline import hermetic
from tests.scenarios import a_nim_model, a_share_model, changed

INDEX = "application/vnd.oci.image.index.v1+json"
PATH = "vllm/vllm-openai"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("source")) as registry:
        yield registry


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Registry]:
    with Registry(tmp_path) as registry:
        yield registry


@pytest.fixture(scope="module")
def index(source: Registry, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Digest of an image of two architectures in the source."""
    folder, entries = tmp_path_factory.mktemp("layouts"), []
    for architecture in ("amd64", "arm64"):
        image = Image("vllm", architecture, (layer_of_files({"a": architecture}),), architecture=architecture)
        write_tar(folder / f"{architecture}.tar", layout_files(image))
        source_reference = f"docker://{source.host}/{PATH}:{architecture}"
        skopeo(
            "copy",
            "--dest-tls-verify=false",
            "--preserve-digests",
            f"oci-archive:{folder}/{architecture}.tar",
            source_reference,
        )
        manifest = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": image.digest}
        platform = {"os": "linux", "architecture": architecture}
        entries.append({**manifest, "size": len(image.manifest), "platform": platform})
    content = as_json({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
    (folder / "index.json").write_bytes(content)
    push = ["manifest", "push", "--plain-http", "--media-type", INDEX, f"{source.host}/{PATH}:both"]
    subprocess.run([programs("oras")["oras"], *push, folder / "index.json"], capture_output=True, check=True)
    return digest_of(content)


def words_of(form: str, target: Registry, source: Registry, digest: str) -> list[str]:
    """The words of the one line of a list."""
    model = a_share_model()
    image = f"localhost:{target.host.partition(':')[2]}/mirror/{PATH}:v1@{digest}"
    manifest = changed(model, engine={"vllm": {**model["spec"]["engine"]["vllm"], "image": image}})
    options = ("--from", f"{image.partition('/')[0]}/mirror={source.host}")
    ran = hermetic("images", "-f", "-", "-o", form, *options, stdin=yaml.safe_dump(manifest))
    assert ran.code == 0, ran.err
    return shlex.split(ran.out)


def digest_at(target: Registry) -> str:
    target_reference = f"{target.host}/mirror/{PATH}:v1"
    resolved = subprocess.run(
        [programs("oras")["oras"], "resolve", "--plain-http", target_reference],
        capture_output=True,
        text=True,
        check=True,
    )
    return resolved.stdout.strip()


def test_the_line_of_skopeo_copies_every_architecture_under_the_digest(
    source: Registry, target: Registry, index: str
) -> None:
    program, verb, *arguments = words_of("skopeo", target, source, index)
    assert program == "skopeo"
    skopeo(verb, "--src-tls-verify=false", "--dest-tls-verify=false", *arguments)
    assert digest_at(target) == index


def test_the_line_of_oras_copies_every_architecture_under_the_digest(
    source: Registry, target: Registry, index: str
) -> None:
    program, verb, *arguments = words_of("oras", target, source, index)
    command = [programs("oras")[program], verb, "--from-plain-http", "--to-plain-http", *arguments]
    subprocess.run(command, capture_output=True, check=True)
    assert digest_at(target) == index


@pytest.mark.sampled(0)
def test_the_lines_of_acr_import_are_understood_by_the_real_az() -> None:
    manifests = yaml.safe_dump_all([a_share_model(), a_nim_model()])
    ran = hermetic("images", "-f", "-", "-o", "acr-import", stdin=manifests)
    lines = ran.out.splitlines()
    assert len(lines) == 2
    assert [answer.problem for answer in parsed([shlex.split(line)[1:] for line in lines])] == ["", ""]

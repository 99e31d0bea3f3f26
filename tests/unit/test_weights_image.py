"""`hermetic stage --format oci`: an image of the weights, the same from every run, after every kill."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from hermetic.errors import InputError, WeightsRefused
from hermetic.weights import layers, oci
from hermetic.weights.copying import Staged
from hermetic.weights.entries import Serialization
from hermetic.weights.images import ImageOptions
from hermetic.weights.sources import source_tree
from hermetic.weights.staging import Options, stage
from hermetic.weights.tree import Tree
from hermetic.weights.workers import Limits, Progress
from shipping.layout import layout_files
from testbed.damaged_files import flip_a_bit
from testbed.images.layers import layer_of_files
from testbed.images.oci import Image
from tests.commandline import hermetic
from tests.oci_images import LayoutOnDisk, unpacked_archive, write_layout
from tests.weights import a_model, contents, keys
from tests.weights_trees import KilledError, copied_until

SMALL = Serialization("shards", 2**15)
SHARDS = [f"model-{number:05d}-of-00003.safetensors" for number in (1, 2, 3)]


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model whose shards count as large."""
    monkeypatch.setattr(layers, "LARGE", 2**17)
    return a_model(tmp_path / "source")


def staged(source: Path, destination: Path, image: ImageOptions = ImageOptions(), *, read_back: bool = False) -> Staged:  # noqa: B008 - frozen
    with source_tree(source) as tree:
        watched = (Progress(), Limits(threads=4), lambda _progress: None)
        return stage(tree, destination, Options(SMALL, read_back=read_back, image=image), watched)


def of_the_model(folder: Path) -> dict[str, bytes]:
    return {path: content for path, content in contents(folder).items() if not path.startswith(".hermetic/")}


def test_a_signed_image_unpacks_to_weights_that_verify(tmp_path: Path) -> None:
    model = a_model(tmp_path / "source", size=5 * 2**20)
    private, public = keys(tmp_path)
    ran = hermetic("stage", model, tmp_path / "image", "--format", "oci", "--key", private, "--read-back", "-o", "json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out.splitlines()[-1])
    image = LayoutOnDisk(tmp_path / "image")
    assert image.digest == document["image"]
    assert image.manifest["annotations"] == {oci.ROOT_DIGEST: document["digest"]}
    assert image.members()[:-1] == [[name] for name in SHARDS]
    assert {".hermetic/manifest.json", ".hermetic/model.sig", "config.json"} <= set(image.members()[-1])
    root = image.unpack(tmp_path / "root")
    assert of_the_model(root) == contents(model)
    assert hermetic("verify", root, "--public-key", public, "--digest", document["digest"]).code == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_the_same_model_gives_the_same_image_as_a_folder_and_as_a_tar(model: Path, tmp_path: Path) -> None:
    first_image = staged(model, tmp_path / "one", read_back=True)
    other = staged(model, tmp_path / "other")
    archived = staged(model, tmp_path / "image.tar", ImageOptions(archive=True), read_back=True)
    assert first_image.image == other.image == archived.image
    unpacked = unpacked_archive(tmp_path / "image.tar", tmp_path / "unpacked")
    assert contents(tmp_path / "one") == contents(tmp_path / "other") == contents(unpacked)
    (model / "config.json").chmod(0o600)
    assert staged(model, tmp_path / "third").image == first_image.image


def test_a_change_of_one_shard_changes_its_layer_and_that_of_the_manifest(model: Path, tmp_path: Path) -> None:
    staged(model, tmp_path / "one")
    flip_a_bit(model / SHARDS[1])
    staged(model, tmp_path / "other")
    digests = [
        [layer["digest"] for layer in LayoutOnDisk(tmp_path / name).manifest["layers"]] for name in ("one", "other")
    ]
    assert [first_digest == other for first_digest, other in zip(*digests, strict=True)] == [True, False, True, False]


@pytest.mark.parametrize("archive", [False, True])
def test_after_a_kill_the_image_is_the_same_and_nothing_is_read_twice(
    model: Path, tmp_path: Path, archive: bool
) -> None:
    options = ImageOptions(archive=archive)
    expected = staged(model, tmp_path / "expected", options)
    total = copied_until(model, tmp_path / "counted", Options(SMALL, image=options), 10**9)
    for tenth in range(20):
        destination = tmp_path / f"at-{tenth}"
        copied_until(model, destination, Options(SMALL, image=options), total * tenth // 20)
        assert not destination.exists()
        after = copied_until(model, destination, Options(SMALL, image=options), 10**9)
        assert after <= total - total * tenth // 20 + SMALL.shard_size // 2**13 + 70
        if archive:
            assert destination.read_bytes() == (tmp_path / "expected").read_bytes()
            destination.unlink()
        else:
            assert contents(destination) == contents(tmp_path / "expected")
            shutil.rmtree(destination)
    assert expected.image


@pytest.mark.parametrize("archive", [False, True])
@pytest.mark.parametrize("step", ["add_layer", "add_file", "finish"])
def test_a_kill_while_the_image_is_completed_costs_no_copy(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, archive: bool, step: str
) -> None:
    options = ImageOptions(archive=archive)
    expected = staged(model, tmp_path / "expected", options)
    from hermetic.weights import layouts

    layout = layouts.ArchiveLayout if archive else layouts.FolderLayout
    original = getattr(layout, step)
    calls = []

    def dying(*arguments: object) -> None:
        original(*arguments)
        calls.append(arguments)
        if len(calls) == 2 or step == "finish":
            raise KilledError

    monkeypatch.setattr(layout, step, dying)
    with pytest.raises(KilledError):
        staged(model, tmp_path / "image", options)
    monkeypatch.setattr(layout, step, original)
    again = staged(model, tmp_path / "image", options)
    assert (again.image, again.bytes_kept) == (expected.image, again.names.size)


def test_the_model_is_put_on_a_base(model: Path, tmp_path: Path) -> None:
    base = Image(
        "contoso.azurecr.io/vllm/vllm-openai", "v1", (layer_of_files({"bin/vllm": "x"}), layer_of_files({"a": "b"})),
        entrypoint=("vllm", "serve"), user="1000",
    )  # fmt: skip
    layout = write_layout(tmp_path / "base", layout_files(base))
    ran = hermetic(
        "stage", model, tmp_path / "image", "--format", "oci", "--base", layout, "--path-in-image", "/models/phi-4",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    image = LayoutOnDisk(tmp_path / "image")
    assert f"image: {image.digest}" in ran.out
    assert image.members()[:2] == [["bin/vllm"], ["a"]]
    assert image.config["config"] == json.loads(base.config)["config"]
    assert image.config["rootfs"]["diff_ids"][:2] == [layer.digest for layer in base.layers]
    root = image.unpack(tmp_path / "root")
    assert (root / "bin" / "vllm").read_text() == "x"
    assert of_the_model(root / "models" / "phi-4") == contents(model)
    assert hermetic("verify", root / "models" / "phi-4").code == 0


def test_a_base_that_is_damaged_is_refused(model: Path, tmp_path: Path) -> None:
    base = Image("contoso.azurecr.io/vllm", "v1", (layer_of_files({"a": "b"}),))
    files = layout_files(base)
    options = ImageOptions(base=tmp_path / "base")
    write_layout(tmp_path / "base", files)
    flip_a_bit(tmp_path / "base" / "blobs" / base.layers[0].digest.replace(":", "/"))
    with pytest.raises(InputError, match="has other content than its digest"):
        staged(model, tmp_path / "image", options)
    write_layout(tmp_path / "base", files | {"index.json": b'{"manifests": []}'})
    with pytest.raises(InputError, match="not the layout of exactly one image"):
        staged(model, tmp_path / "image", options)
    assert hermetic("stage", model, tmp_path / "x", "--format", "oci", "--base", tmp_path / "nothing").code == 2
    assert not (tmp_path / "image").exists()


def test_more_large_files_than_layers_share_layers(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermetic.weights.images.MOST_LAYERS", 3)
    staged(model, tmp_path / "image", read_back=True)
    image = LayoutOnDisk(tmp_path / "image")
    assert image.members()[:-1] == [SHARDS[:2], SHARDS[2:]]
    assert of_the_model(image.unpack(tmp_path / "root")) == contents(model)


def test_links_of_a_nim_cache_stay_links(model: Path, tmp_path: Path) -> None:
    hub = tmp_path / "cache" / "ngc" / "hub"
    (hub / "blobs").mkdir(parents=True)
    (hub / "snapshots").mkdir()
    (model / SHARDS[0]).rename(hub / "blobs" / "abc")
    (hub / "snapshots" / "model.safetensors").symlink_to("../blobs/abc")
    staged(tmp_path / "cache", tmp_path / "image", read_back=True)
    root = LayoutOnDisk(tmp_path / "image").unpack(tmp_path / "root")
    assert of_the_model(root) == contents(tmp_path / "cache")
    assert hermetic("verify", root).code == 0


def test_a_name_that_an_image_takes_for_a_deletion_is_refused(model: Path, tmp_path: Path) -> None:
    (model / "extra" / ".wh.config.json").write_text("{}")
    with pytest.raises(WeightsRefused, match=r"NameRefused: extra/\.wh\.config\.json"):
        staged(model, tmp_path / "image")
    assert not (tmp_path / "image").exists()


def test_a_file_of_more_than_eight_gib_and_a_long_name_have_headers_that_tar_reads(tmp_path: Path) -> None:
    for path, size in (("a", 2**33 + 1), ("ä" * 120 + "/b", 5)):
        content = layers.header(path, size=size)
        (tmp_path / "tar").write_bytes(content)
        with tarfile.open(tmp_path / "tar") as archive:
            member = archive.next()
            assert member is not None
            assert (member.name, member.size, len(content) % 512) == (path, size, 0)


def test_what_was_written_wrongly_is_found_by_reading_it_back(model: Path, tmp_path: Path) -> None:
    class Damaging(Tree):
        def read_into(self, descriptor: int, view: memoryview, offset: int) -> int:
            for second in tmp_path.glob(".image.hermetic-partial/image-*/layers/00001.tar"):
                if not done:
                    done.append(second)
                    flip_a_bit(second.with_name("00000.tar"), 600)
            return super().read_into(descriptor, view, offset)

    done: list[Path] = []
    watched = (Progress(), Limits(threads=1), lambda _progress: None)
    options = Options(SMALL, read_back=True, image=ImageOptions())
    with Damaging(model) as tree, pytest.raises(WeightsRefused, match=f"DigestMismatch: {SHARDS[0]}"):
        stage(tree, tmp_path / "image", options, watched)
    assert done


def test_options_of_images_are_refused_where_none_is_made(model: Path, tmp_path: Path) -> None:
    assert hermetic("stage", model, tmp_path / "x", "--path-in-image", "models").code == 2
    assert hermetic("stage", model, tmp_path / "x", "--format", "oci", "--path-in-image", "a/../b").code == 2
    assert hermetic("stage", model, tmp_path / "x", "--certificate", tmp_path / "y").code == 2
    (tmp_path / "there").write_text("x")
    assert hermetic("stage", model, tmp_path / "there", "--format", "oci-archive").code == 2
    assert (tmp_path / "there").read_text() == "x"

"""A destination where others may write: no link of theirs is followed, and no digest of theirs is the source's."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path

import pytest

from hermetic.weights.copying import Staged
from hermetic.weights.entries import Serialization
from hermetic.weights.images import ImageOptions
from hermetic.weights.staging import Options, stage
from hermetic.weights.tree import Tree
from hermetic.weights.workers import Limits, Progress
from tests.commandline import Ran, hermetic
from tests.weights import keys
from tests.weights_trees import copied_until

SMALL = Serialization("shards", 2**15)
PRECIOUS = "of this machine"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of the machine that stages, outside of the share."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text(PRECIOUS)
    return tmp_path / "elsewhere"


def planted(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def must_be_untouched(elsewhere: Path) -> None:
    assert [path.name for path in elsewhere.iterdir()] == ["file"]
    assert (elsewhere / "file").read_text() == PRECIOUS


def refused(ran: Ran, link: Path) -> None:
    assert (ran.code, "HRM-WGT-004" in ran.err) == (1, True), ran.err
    assert f"{link}: is a symbolic link, which is not followed" in ran.err


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("", "."),
        ("lock", "file"),
        ("lock", "new"),
        ("journal", "file"),
        ("files", "."),
        ("files/.hermetic", "."),
        ("files/extra", "."),
    ],
)
def test_a_link_in_the_folder_of_a_staging_is_not_followed(
    model: Path, share: Path, elsewhere: Path, location: str, target: str
) -> None:
    link = share / ".llama.hermetic-partial" / location
    planted(link, elsewhere / target)
    refused(hermetic("stage", model, share / "llama"), link)
    must_be_untouched(elsewhere)
    link.unlink()
    assert hermetic("stage", model, share / "llama").code == 0


@pytest.mark.parametrize("name", ["names.json", "manifest.json", "model-facts.json", "model.sig"])
def test_a_link_in_place_of_a_temporary_file_is_replaced(
    model: Path, share: Path, elsewhere: Path, tmp_path: Path, name: str
) -> None:
    private, _ = keys(tmp_path)
    planted(share / ".llama.hermetic-partial" / "files" / ".hermetic" / f"{name}.partial", elsewhere / "file")
    assert hermetic("stage", model, share / "llama", "--key", private).code == 0
    must_be_untouched(elsewhere)
    for command in (["manifest"], ["sign", "--key", private]):
        planted(share / "llama" / ".hermetic" / f"{name}.partial", elsewhere / "file")
        hermetic(*command[:1], share / "llama", *command[1:])
        must_be_untouched(elsewhere)
        (share / "llama" / ".hermetic" / f"{name}.partial").unlink(missing_ok=True)


def test_neither_manifest_nor_signature_is_written_behind_a_link(model: Path, elsewhere: Path, tmp_path: Path) -> None:
    private, _ = keys(tmp_path)
    planted(model / ".hermetic", elsewhere)
    refused(hermetic("manifest", model), model / ".hermetic")
    assert hermetic("sign", model, "--key", private).code != 0
    must_be_untouched(elsewhere)


@pytest.mark.parametrize("form", ["oci", "oci-archive"])
@pytest.mark.parametrize("location", ["file", "journal", "files", "layout", "layers", "layout/blobs", "image.tar"])
def test_an_image_is_not_written_behind_a_link(
    model: Path, share: Path, elsewhere: Path, form: str, location: str
) -> None:
    copied = share / ".image.hermetic-partial"
    copied_until(model, share / "image", Options(SMALL, image=ImageOptions(archive=form == "oci-archive")), 20)
    work = next(path for path in copied.iterdir() if path.name.startswith("image-"))
    target = work / location
    if target.is_dir():
        target.rename(share / "aside")
    target.unlink(missing_ok=True)
    planted(target, elsewhere / ("file" if location in {"file", "journal", "image.tar"} else "."))
    hermetic("stage", model, share / "image", "--format", form)
    must_be_untouched(elsewhere)


def staged(model: Path, destination: Path) -> Staged:
    with Tree(model) as tree:
        return stage(tree, destination, Options(SMALL), (Progress(), Limits(), lambda _progress: None))


def test_a_digest_that_others_wrote_into_the_journal_is_not_the_source_s(model: Path, share: Path) -> None:
    """Else they would have other weights listed, and signed by who stages."""
    right = staged(model, share / "right").root
    copied_until(model, share / "llama", Options(SMALL), 60)
    partial = share / ".llama.hermetic-partial"
    lines = (partial / "journal").read_bytes().splitlines()
    assert len(lines) > 3
    forged = []
    for line in lines:
        check, _, text = line.partition(b" ")
        name, start, end, identity, _ = json.loads(text)
        content = b"\x66" * (end - start)
        with (partial / "files" / name).open("r+b") as file:
            file.seek(start)
            file.write(content)
        text = json.dumps([name, start, end, identity, hashlib.sha256(content).hexdigest()]).encode()
        forged += [check + b" " + text, b"%08x %s" % (zlib.crc32(text), text)]
    (partial / "journal").write_bytes(b"\n".join(forged) + b"\n")
    assert staged(model, share / "llama").root == right
    assert hermetic("verify", share / "llama", "--digest", right).code == 0


def test_a_staging_of_another_account_is_not_taken_up(
    model: Path, share: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_until(model, share / "llama", Options(SMALL), 60)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert staged(model, share / "llama").bytes_kept == 0
    assert (tmp_path / "other" / "hermetic" / "staging.key").stat().st_mode & 0o777 == 0o600


def test_where_no_key_can_be_kept_a_model_is_staged_all_the_same(
    model: Path, share: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/state")
    copied_until(model, share / "llama", Options(SMALL), 60)
    assert staged(model, share / "llama").bytes_kept == 0

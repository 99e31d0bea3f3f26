"""What a root digest alone fixes: which file has which content, whatever else of the manifest others rewrite."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermetic.weights import sealing
from hermetic.weights.entries import MANIFEST, NAMES, SIGNATURE
from hermetic.weights.names import NamesSummary, names_from
from hermetic.weights.sealing import Trust
from hermetic.weights.statement import read_header
from hermetic.weights.streamed_json import NotJsonError
from hermetic.weights.tree import Tree
from hermetic.weights.verification import verify
from hermetic.weights.workers import Limits
from tests.commandline import hermetic
from tests.unit.test_weights_links import signed_statement
from tests.weights import a_model, keys

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
Resources = list[dict[str, str]]


@pytest.fixture(params=["shards", "files"])
def model(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A listed folder and its root digest: two shards of one size, each of two ranges."""
    folder = a_model(tmp_path / "model", shards=2, size=300 * 2**10)
    ran = hermetic("manifest", folder, "--method", request.param, "--shard-size", str(2**20), "-o", "json")
    return folder, str(json.loads(ran.out)["digest"])


def rewrite(folder: Path, change: Callable[[Resources], Any], **serialization: object) -> None:
    """Changes the manifest, but for the order of its digests: the root digest stays."""
    statement = json.loads((folder / MANIFEST).read_text())
    before = [resource["digest"] for resource in statement["predicate"]["resources"]]
    change(statement["predicate"]["resources"])
    statement["predicate"]["serialization"].update(serialization)
    assert [resource["digest"] for resource in statement["predicate"]["resources"]] == before
    (folder / MANIFEST).write_text(json.dumps(statement))


def exchange(folder: Path, first: str, other: str) -> None:
    (folder / first).rename(folder / "kept")
    (folder / other).rename(folder / first)
    (folder / "kept").rename(folder / other)


def exchange_names(resources: Resources) -> None:
    names = {ONE: TWO, TWO: ONE}
    for resource in resources:
        name, *span = resource["name"].split(":")
        resource["name"] = ":".join((names.get(name, name), *span))


def found(folder: Path, *options: str | Path) -> tuple[int, list[tuple[str, str]]]:
    ran = hermetic("verify", folder, *options, "-o", "json")
    findings = json.loads(ran.out)["findings"] if ran.out else []
    return ran.code, [(finding["reason"], finding["file"]) for finding in findings]


def refused_to_sign(folder: Path, digest: str, reason: str) -> None:
    private, _ = keys(folder.parent)
    ran = hermetic("sign", folder, "--key", private, "--digest", digest)
    assert (ran.code, f"{reason}: " in ran.err) == (1, True), ran.err
    assert not (folder / SIGNATURE).exists()


def test_files_of_one_size_cannot_be_exchanged(model: tuple[Path, str]) -> None:
    folder, digest = model
    exchange(folder, ONE, TWO)
    rewrite(folder, exchange_names)
    assert found(folder, "--digest", digest) == (1, [("RootDigestMismatch", MANIFEST)])
    refused_to_sign(folder, digest, "RootDigestMismatch")


def test_ranges_of_one_file_cannot_be_exchanged(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    half = 2**20
    (folder / "two.txt").write_bytes(b"1" * half + b"2" * half)
    ran = hermetic("manifest", folder, "--shard-size", str(half), "-o", "json")
    digest = json.loads(ran.out)["digest"]
    (folder / "two.txt").write_bytes(b"2" * half + b"1" * half)

    def change(resources: Resources) -> None:
        first_shard, two = (resource for resource in resources if resource["name"].startswith("two.txt"))
        first_shard["name"], two["name"] = two["name"], first_shard["name"]

    rewrite(folder, change)
    assert found(folder, "--digest", digest) == (1, [("RootDigestMismatch", MANIFEST)])
    refused_to_sign(folder, digest, "RootDigestMismatch")


def rename(old: str, new: str) -> Callable[[Resources], None]:
    def change(resources: Resources) -> None:
        for resource in resources:
            name, *span = resource["name"].split(":")
            resource["name"] = ":".join((new if name == old else name, *span))

    return change


RENAMED = {
    "a file": ("tokenizer.json", "tokenizes.json"),
    "to the end": ("tokenizer.json", "z.json"),
    "a shard": (ONE, ONE.replace("1-of", "0-of")),
    "the facts": (".hermetic/model-facts.json", ".hermetic/model-facts.jsom"),
}


@pytest.mark.parametrize("change", RENAMED)
def test_names_in_order_are_those_of_names_json(model: tuple[Path, str], change: str) -> None:
    """The order alone does not fix them: they are free text in a manifest."""
    folder, digest = model
    old, new = RENAMED[change]
    if not (folder / old).exists():
        old, new = "config.json", "configs.json"
    (folder / old).rename(folder / new)
    rewrite(folder, rename(old, new))
    code, findings = found(folder, "--digest", digest)
    assert (code, findings[0][1]) == (1, NAMES), findings
    refused_to_sign(folder, digest, "FileNotListed")


def test_what_the_root_digest_does_not_cover_is_not_signed_by_it(model: tuple[Path, str]) -> None:
    folder, digest = model
    rewrite(folder, len, ignore_paths=[".git"])
    refused_to_sign(folder, digest, "ManifestInvalid")
    rewrite(folder, len, ignore_paths=[])
    (folder / NAMES).write_text((folder / NAMES).read_text() + " ")
    refused_to_sign(folder, digest, "DigestMismatch")
    (folder / NAMES).unlink()
    refused_to_sign(folder, digest, "FileMissing")


def test_a_second_file_of_names_is_refused(model: tuple[Path, str]) -> None:
    """An author of the model could list it as names.json: the order of the digests allows it at some places."""
    folder, _ = model
    (folder / "0.json").write_bytes(NamesSummary(3, 5, f"sha256:{'0' * 64}").as_bytes())
    staged = hermetic("stage", folder, folder.parent / "staged")
    assert (staged.code, "NameRefused: 0.json" in staged.err) == (1, True)
    digest = json.loads(hermetic("manifest", folder, "-o", "json").out)["digest"]
    assert found(folder, "--digest", digest) == (1, [("NameRefused", "0.json")])
    private, public = keys(folder.parent)
    assert hermetic("sign", folder, "--key", private).code == 0
    assert found(folder, "--public-key", public) == (0, [])


def test_names_have_one_form() -> None:
    names = NamesSummary(3, 5, f"sha256:{'0' * 64}", ("ä", "b"))
    assert names_from(names.as_bytes()) == names
    for other in (b" " + names.as_bytes(), names.as_bytes().replace(b"3,", b"3 ,"), names.as_bytes()[:-1]):
        with pytest.raises(NotJsonError):
            names_from(other)


@pytest.mark.parametrize("last", ["serialization", "resources"])
def test_a_name_that_looks_like_a_range_is_in_order_by_files(tmp_path: Path, last: str) -> None:
    """Whatever comes last in the manifest: method or entries."""
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    for name in ("a", "a-b", "a:0:5"):
        (folder / name).write_text(name)
    digest = json.loads(hermetic("manifest", folder, "--method", "files", "-o", "json").out)["digest"]
    statement = json.loads((folder / MANIFEST).read_text())
    statement["predicate"][last] = statement["predicate"].pop(last)
    (folder / MANIFEST).write_text(json.dumps(statement))
    assert found(folder, "--digest", digest) == (0, [])
    assert hermetic("sign", folder, "--key", private, "--digest", digest).code == 0
    assert found(folder, "--public-key", public, "--digest", digest) == (0, [])


def test_a_file_whose_name_looks_like_a_range_of_names_json_is_not_names_json(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    assert hermetic("manifest", folder, "--method", "files").code == 0
    rewrite(folder, rename(NAMES, f"{NAMES}:0:9"))
    with (folder / MANIFEST).open("rb") as file:
        assert read_header([file.read()]).names_entry is None


def test_a_manifest_of_another_tool_in_another_order_counts_by_its_key(tmp_path: Path) -> None:
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    assert hermetic("manifest", folder).code == 0
    assert hermetic("sign", folder, "--key", private).code == 0
    statement = json.loads((folder / MANIFEST).read_text())
    resources = statement["predicate"]["resources"]
    resources.reverse()
    (folder / MANIFEST).write_text(json.dumps(statement))
    digest = signed_statement(folder, statement, private)
    assert found(folder, "--public-key", public) == (0, [])
    assert found(folder, "--public-key", public, "--digest", digest) == (1, [("RootDigestMismatch", SIGNATURE)])


def test_a_manifest_that_is_rewritten_between_two_readings_is_invalid(
    model: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, digest = model
    real = sealing.ManifestFile.chunks
    readings = []

    def chunks(self: sealing.ManifestFile) -> Any:
        readings.append(self)
        if len(readings) == 2:
            exchange(folder, ONE, TWO)
            rewrite(folder, exchange_names)
            yield (folder / MANIFEST).read_bytes()
        else:
            yield from real(self)

    monkeypatch.setattr(sealing.ManifestFile, "chunks", chunks)
    with Tree(folder) as tree:
        reasons = {finding.reason.value for finding in verify(tree, Trust(digest=digest), Limits(threads=1)).findings}
    assert "ManifestInvalid" in reasons


def test_what_is_signed_is_what_was_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, (private, _) = a_model(tmp_path / "model", shards=2), keys(tmp_path)
    digest = json.loads(hermetic("manifest", folder, "-o", "json").out)["digest"]
    real = sealing.ManifestFile.chunks
    readings = []

    def chunks(self: sealing.ManifestFile) -> Any:
        readings.append(self)
        content = b"".join(real(self))
        yield content.replace(b"tokenizer.json", b"tokenizes.json") if len(readings) > 2 else content

    monkeypatch.setattr(sealing.ManifestFile, "chunks", chunks)
    assert "ManifestInvalid" in hermetic("sign", folder, "--key", private, "--digest", digest).err
    assert not (folder / SIGNATURE).exists()

"""Links in a folder of weights: what an engine opens is what was hashed, and nothing that is left out leads elsewhere.

The attacker of these tests writes to the share and has no key. Where only a root digest is pinned, the manifest is
theirs but for the digests in it: what it leaves out, and whether links are allowed.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermetic.weights.entries import MANIFEST, NOT_LISTED, SIGNATURE
from hermetic.weights.signatures import private_key
from hermetic.weights.signing import sealed
from hermetic.weights.tree import EntryKind, Tree
from tests.commandline import Ran, hermetic
from tests.weights import a_model, keys

METHODS = ("files", "shards")


def listed(folder: Path, method: str = "shards") -> str:
    """Writes the manifest; returns the root digest."""
    ran = hermetic("manifest", folder, "--method", method, "--links", "-o", "json")
    assert ran.code == 0, ran.err
    return str(json.loads(ran.out)["digest"])


def found(folder: Path, *options: str | Path) -> tuple[int, list[tuple[str, str]]]:
    ran: Ran = hermetic("verify", folder, *options, "-o", "json")
    findings = json.loads(ran.out)["findings"] if ran.out else []
    return ran.code, [(finding["reason"], finding["file"]) for finding in findings]


def leave_out(folder: Path, *paths: str) -> None:
    """Rewrites the manifest: it allows links and leaves out these paths. The root digest stays."""
    statement = json.loads((folder / MANIFEST).read_text())
    statement["predicate"]["serialization"].update(ignore_paths=list(paths), allow_symlinks=True)
    (folder / MANIFEST).write_text(json.dumps(statement))


def signed_by_another_tool(folder: Path, private: Path, *ignored: str) -> None:
    """A signed manifest by files that allows links, leaves out these paths, and lists nothing of `.hermetic`."""
    resources = []
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).parts):
        name = str(path.relative_to(folder))
        if path.is_file() and not any(
            f"{name}/".startswith(f"{ignored_name}/") for ignored_name in (*ignored, ".hermetic")
        ):
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            resources.append({"name": name, "algorithm": "sha256", "digest": digest})
    serialization = {
        "method": "files", "hash_type": "sha256", "allow_symlinks": True, "ignore_paths": [*ignored, ".hermetic"],
    }  # fmt: skip
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "model", "digest": {}}],
        "predicateType": "https://model_signing/signature/v1.0",
        "predicate": {"serialization": serialization, "resources": resources},
    }
    (folder / ".hermetic").mkdir(exist_ok=True)
    signed_statement(folder, statement, private)


def signed_statement(folder: Path, statement: dict[str, Any], private: Path) -> str:
    """Signs a statement, with the root digest of its entries as they stand; returns that."""
    digests = b"".join(bytes.fromhex(resource["digest"]) for resource in statement["predicate"]["resources"])
    root = hashlib.sha256(digests).hexdigest()
    statement["subject"][0]["digest"]["sha256"] = root
    content = json.dumps(statement).encode()
    key = private_key("key", private.read_bytes(), None)
    (folder / SIGNATURE).write_bytes(b"".join(sealed(lambda: [content], len(content), key)))
    return f"sha256:{root}"


def through_git(folder: Path) -> None:
    """The text of the link of config.json comes to a good copy; the kernel comes to `.git/a/names.json.partial`."""
    (folder / ".git/a/b").mkdir(parents=True)
    (folder / ".git/a/names.json.partial").write_text('{"model_type": "other"}')
    (folder / ".hermetic/manifest.json.partial").symlink_to("../.git/a/b")


def through_elsewhere(folder: Path) -> None:
    """The same with a target outside of the folder."""
    (folder.parent / "elsewhere/b").mkdir(parents=True)
    (folder.parent / "elsewhere/names.json.partial").write_text('{"model_type": "other"}')
    (folder / ".hermetic/manifest.json.partial").symlink_to("../../elsewhere/b")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("plant", [through_git, through_elsewhere])
def test_a_link_that_leads_through_a_link_is_refused(
    tmp_path: Path, plant: Callable[[Path], None], method: str
) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    digest = listed(folder, method)
    (folder / "config.json").rename(folder / ".hermetic/names.json.partial")
    plant(folder)
    (folder / "config.json").symlink_to(".hermetic/manifest.json.partial/../names.json.partial")
    assert json.loads((folder / "config.json").read_text()) == {"model_type": "other"}
    for ignored in ((), (".git",), (".git", ".hermetic"), tuple(NOT_LISTED)):
        leave_out(folder, *ignored)
        code, findings = found(folder, "--digest", digest)
        assert code == 1
        assert ("LinkRefused", "config.json") in findings
        assert ("LinkRefused", ".hermetic/manifest.json.partial") in findings


@pytest.mark.parametrize("target", [".git/copy.json", ".hermetic/names.json.partial", "a/../.git/copy.json"])
def test_a_link_to_what_is_not_listed_is_refused(tmp_path: Path, target: str) -> None:
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    for path in (folder / ".git/copy.json", folder / ".hermetic/names.json.partial", folder / "a/listed"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes((folder / "config.json").read_bytes())
    signed_by_another_tool(folder, private, ".git")
    assert found(folder, "--public-key", public) == (0, [])
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(target)
    assert found(folder, "--public-key", public) == (1, [("LinkRefused", "config.json")])
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to("./a//../a/listed")
    assert found(folder, "--public-key", public) == (0, [])


@pytest.mark.parametrize("slot", [".git", ".github", ".gitignore", "model.sig", *sorted(NOT_LISTED - {SIGNATURE})])
@pytest.mark.parametrize("kind", ["link to a folder", "link to a file", "link to nothing", "pipe"])
def test_what_is_left_out_must_be_a_file(tmp_path: Path, slot: str, kind: str) -> None:
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    signed_by_another_tool(folder, private, ".git", ".github", ".gitattributes", ".gitignore", "model.sig")
    at = folder / slot
    up = "../" * slot.count("/")
    if kind == "pipe":
        os.mkfifo(at)
    else:
        at.symlink_to(up + {"link to a folder": "extra", "link to a file": "config.json"}.get(kind, "nowhere"))
    reason = "SpecialFile" if kind == "pipe" else "LinkRefused"
    assert found(folder, "--public-key", public) == (1, [(reason, slot)])
    at.unlink()
    at.write_text("x")
    assert found(folder, "--public-key", public) == (0, [])


@pytest.mark.parametrize(
    "location", [".hermetic", ".hermetic/caches", ".hermetic/caches/vllm-0.32.0-H100-80GB-tp1-pp1"]
)
def test_a_link_in_place_of_the_caches_is_refused(tmp_path: Path, location: str) -> None:
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    signed_by_another_tool(folder, private, ".git")
    hidden = folder / ".git" / "x"
    hidden.mkdir(parents=True)
    (folder / SIGNATURE).rename(folder / "model.sig")
    (folder / ".hermetic").rmdir()
    signature = ("--signature", "model.sig")
    assert found(folder, "--public-key", public, *signature) == (0, [])
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    (folder / location).symlink_to(hidden)
    assert found(folder, "--public-key", public, *signature) == (1, [("LinkRefused", location)])


@pytest.mark.parametrize("planted", [".hermetic/Caches/x/kernel.so", ".hermetic/other/x", "model.sig/x.safetensors"])
def test_of_the_own_folder_only_the_own_files_can_be_left_out(tmp_path: Path, planted: str) -> None:
    """A share that ignores case takes `Caches` for `caches`."""
    folder, (private, public) = a_model(tmp_path / "model", shards=1), keys(tmp_path)
    signed_by_another_tool(folder, private, ".git", "model.sig")
    (folder / ".hermetic/model-facts.json").write_text("{}")
    assert found(folder, "--public-key", public) == (0, [])
    (folder / planted).parent.mkdir(parents=True)
    (folder / planted).write_text("x")
    assert found(folder, "--public-key", public) == (1, [("FileNotListed", planted)])


@pytest.mark.parametrize("planted", [".git/x", ".gitattributes", ".gitignore", "model.sig", ".github/x"])
def test_a_digest_alone_lets_nothing_be_left_out(tmp_path: Path, planted: str) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    digest = listed(folder)
    leave_out(folder, ".git", ".github", ".gitattributes", ".gitignore", "model.sig", ".hermetic")
    assert found(folder, "--digest", digest) == (0, [])
    (folder / planted).parent.mkdir(exist_ok=True)
    (folder / planted).write_text("x")
    assert found(folder, "--digest", digest) == (1, [("FileNotListed", planted)])


def test_a_link_to_a_file_that_is_written_anew_is_not_listed(tmp_path: Path) -> None:
    folder = a_model(tmp_path / "model", shards=1)
    listed(folder)
    (folder / "copy.json").symlink_to(MANIFEST)
    assert "LinkRefused: copy.json" in hermetic("manifest", folder, "--links").err
    (folder / "copy.json").unlink()
    (folder / "copy.json").symlink_to(".hermetic/names.json")
    assert "LinkRefused: copy.json" in hermetic("stage", folder, tmp_path / "staged").err


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", ".", ""]), min_size=1, max_size=5).map("/".join)
TREES = st.lists(st.tuples(PATHS, st.one_of(st.none(), TARGETS)), min_size=2, max_size=9)


@settings(max_examples=300, deadline=None)
@given(TREES)
def test_the_target_of_a_link_is_the_one_that_the_kernel_finds(tree: list[tuple[str, str | None]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "model"
        root.mkdir()
        for path, target in tree:
            at = root / path
            if any((root / part).is_symlink() or (root / part).is_file() for part in Path(path).parents):
                continue
            at.parent.mkdir(parents=True, exist_ok=True)
            if not at.exists() and not at.is_symlink():
                at.symlink_to(target) if target else at.write_text(path)
        with Tree(root) as opened:
            for item in opened.walk():
                if item.kind is EntryKind.LINK and (target_path := opened.target(item)) is not None:
                    assert (root / item.path).samefile(root / target_path)
                    assert os.path.realpath(root / item.path) == str(root / target_path)

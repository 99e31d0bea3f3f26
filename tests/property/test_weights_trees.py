"""Random folders: what is listed verifies, and any one change of a random folder is found."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from hermetic.weights.entries import FILES, SHARDS, Serialization, key_of
from hermetic.weights.manifests import write_manifest
from hermetic.weights.sealing import Trust
from hermetic.weights.tree import Tree
from hermetic.weights.verification import Verified, verify
from hermetic.weights.workers import Limits

LIMITS = Limits(threads=2)
# no colon, for a manifest by shards cannot list it; letters that sort around "/" and beyond ASCII
PARTS = st.text(alphabet="ab-.A_ äß😀!", min_size=1, max_size=6).filter(lambda part: part not in {".", ".."})
PATHS = st.lists(PARTS, min_size=1, max_size=3).map("/".join).filter(lambda path: not path.startswith("."))
TREES = st.dictionaries(PATHS, st.binary(max_size=200), min_size=1, max_size=8)
METHODS = st.sampled_from([Serialization(SHARDS, 64), Serialization(SHARDS, 2**20), Serialization(FILES, 0)])


def made(folder: Path, tree: dict[str, bytes]) -> dict[str, bytes]:
    """Writes what can stand beside each other: no file where another path has a folder."""
    files = {}
    for path, content in sorted(tree.items()):
        if any(f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/") for other in files):
            continue
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        files[path] = content
    return files


def verified(folder: Path) -> Verified:
    with Tree(folder) as tree:
        return verify(tree, Trust(), LIMITS)


@settings(max_examples=60, deadline=None)
@given(TREES, METHODS, st.data())
def test_what_is_listed_verifies_and_each_change_is_found(
    tree: dict[str, bytes], serialization: Serialization, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "model"
        folder.mkdir()
        files = made(folder, tree)
        with Tree(folder) as opened:
            write_manifest(opened, serialization, LIMITS, lambda _progress: None)
        assert verified(folder).findings == []
        path = data.draw(st.sampled_from(sorted(files)))
        change = data.draw(st.sampled_from(["flip", "cut", "longer", "gone", "another", "renamed"]))
        changed(folder, path, files[path], change)
        report = verified(folder)
        expected = f"{path}.new" if change == "another" else path
        assert expected in {finding.file for finding in report.findings}, (change, path, report.findings)


def changed(folder: Path, path: str, content: bytes, change: str) -> None:
    file = folder / path
    if change == "gone" or (change in {"flip", "cut"} and not content):
        file.unlink()
    elif change == "flip":
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif change == "cut":
        file.write_bytes(content[:-1])
    elif change == "longer":
        file.write_bytes(content + b"\0")
    elif change == "renamed":
        shutil.move(file, folder / f"{path}.moved")
    else:
        (folder / f"{path}.new").write_bytes(b"")


@given(st.lists(PATHS, min_size=2, max_size=10, unique=True))
def test_paths_are_in_the_order_of_pathlib(paths: list[str]) -> None:
    """The order of the library's manifests, which decides the root digest."""
    from pathlib import PurePosixPath

    canonical_paths = [path for path in paths if str(PurePosixPath(path)) == path]
    assert sorted(canonical_paths, key=key_of) == [str(path) for path in sorted(map(PurePosixPath, canonical_paths))]

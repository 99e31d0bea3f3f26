"""`python -m shipping verify-release BUNDLE`: builds a bundle again from the commit that it names, and compares bytes.

The commit is checked out in a folder of its own from this clone. Every file of the bundle must be in the new one with
the same bytes. Only what a key adds cannot be built again: the signatures, and the index and checksums that list them.
Exit 0 where the bytes are the same, 1 with the names of the files that differ. One JSON object on stdout.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hermetic.cli.bundle.description import Description
from hermetic.cli.bundle.layout import ARTIFACTS, BLOBS, CHECKSUMS, INDEX, PLAIN_SIGNATURE, SIGNATURE
from hermetic.cli.bundle.verification import verify
from hermetic.errors import BundleRefused
from shipping.cosign import ATTESTATION_TYPE, SIGNATURE_TYPE
from shipping.notation import KIND as NOTATION_TYPE
from shipping.provenance import is_commit
from shipping.revision import EPOCH, REPOSITORY, SOURCE_VARIABLE, builder, git
from testbed.console import say
from testbed.errors import BuildError
from testbed.programs import run_logged

SIGNED_KINDS = frozenset({SIGNATURE_TYPE, ATTESTATION_TYPE, NOTATION_TYPE})
OF_THE_KEY = frozenset({SIGNATURE, PLAIN_SIGNATURE})
LISTS_FILES = frozenset({CHECKSUMS, ARTIFACTS + INDEX})
DEVELOPMENT_LOCK = "requirements-dev.lock"


@dataclass(frozen=True)
class Comparison:
    """Names of files: with the same bytes, with other bytes or on one side alone, and made by the key alone."""

    same: tuple[str, ...]
    different: tuple[str, ...]
    of_the_key: tuple[str, ...]


def compare(delivered: Mapping[str, bytes], rebuilt: Mapping[str, bytes]) -> Comparison:
    """The given bundle with the one that was built without a key."""
    signatures = OF_THE_KEY & delivered.keys() | _signature_blobs(delivered)
    names = sorted((delivered.keys() | rebuilt.keys()) - signatures - LISTS_FILES)
    same = [name for name in names if delivered.get(name) == rebuilt.get(name)]
    different = [name for name in names if delivered.get(name) != rebuilt.get(name)]
    if _plain_entries(delivered) != _plain_entries(rebuilt):
        different.append(ARTIFACTS + INDEX)
    return Comparison(tuple(same), tuple(different), tuple(sorted(signatures)))


def _entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return list(json.loads(files.get(ARTIFACTS + INDEX, b'{"manifests": []}'))["manifests"])


def _plain_entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    return [entry for entry in _entries(files) if entry.get("artifactType") not in SIGNED_KINDS]


def _signature_blobs(files: Mapping[str, bytes]) -> set[str]:
    """The manifests of signatures and what they alone name."""
    signed, plain = set[str](), set[str]()
    for entry in _entries(files):
        names = signed if entry.get("artifactType") in SIGNED_KINDS else plain
        manifest = ARTIFACTS + BLOBS + entry["digest"].removeprefix("sha256:")
        names.add(manifest)
        if manifest in files:
            content = json.loads(files[manifest])
            parts = (content["config"], *content["layers"])
            names |= {ARTIFACTS + BLOBS + part["digest"].removeprefix("sha256:") for part in parts}
    return (signed - plain) & files.keys()


def rebuilt_bundle(description: Description, folder: Path) -> Path:
    """The bundle of the commit, built from a clone of this one in the folder. Raises BuildError."""
    if not is_commit(description.revision):
        named = description.revision or "no commit"
        raise BuildError(f"the bundle names {named}: only a bundle of a commit without changes can be built again")
    clone = folder / "clone"
    git("clone", "--quiet", "--no-checkout", str(REPOSITORY), str(clone))
    try:
        git("checkout", "--quiet", "--detach", description.revision, source=clone)
    except BuildError as error:
        raise BuildError(f"this clone has no commit {description.revision}: git fetch; {error}") from error
    for name, sha256 in description.locks.items():
        if hashlib.sha256((clone / name).read_bytes()).hexdigest() != sha256:
            raise BuildError(f"{name} of the commit has not the SHA-256 {sha256} that the bundle names")
    bundle = folder / "rebuilt.tar"
    command = [_python(clone), "-P", "-m", "shipping", "bundle", str(bundle)]
    run_logged("verify-release", "building", command, folder / "build.log", _environment(description, clone))
    return bundle


def _python(clone: Path) -> str:
    """This Python where the commit locks the same packages, else one of its own. Its folder is not searched (-P)."""
    if (clone / DEVELOPMENT_LOCK).read_bytes() == (REPOSITORY / DEVELOPMENT_LOCK).read_bytes():
        return sys.executable
    subprocess.run(["make", "-C", clone, "install", f"PYTHON={sys.executable}"], check=True, stdout=sys.stderr)
    return str(clone / ".venv" / "bin" / "python")


def _environment(description: Description, clone: Path) -> dict[str, str]:
    """Of the variables that change the bytes, only the repository's address; the code is that of the clone."""
    settings = {name: value for name, value in os.environ.items() if name not in {EPOCH, SOURCE_VARIABLE}}
    code = os.pathsep.join(map(str, (clone, clone / "operator")))
    return {**settings, "PYTHONPATH": code, SOURCE_VARIABLE: description.source}


def files_of(bundle: Path) -> dict[str, bytes]:
    """The files of a bundle that was verified."""
    with tarfile.open(bundle) as archive:
        members = [member for member in archive if member.isfile()]
        return {member.name: _content(archive, member) for member in members}


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = archive.extractfile(member)
    assert opened is not None
    return opened.read()


def main(arguments: list[str]) -> int:
    """Verifies one bundle."""
    parser = argparse.ArgumentParser(
        prog="python -m shipping verify-release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", type=Path, metavar="BUNDLE")
    bundle: Path = parser.parse_args(arguments).bundle
    try:
        description = verify(bundle, {}).description
    except BundleRefused as refusal:
        raise BuildError(f"{bundle}: {refusal.message}") from refusal
    with tempfile.TemporaryDirectory(prefix="hermetic-rebuild-") as work:
        comparison = compare(files_of(bundle), files_of(rebuilt_bundle(description, Path(work))))
    report = {
        "revision": description.revision,
        "identical": not comparison.different,
        "files": len(comparison.same),
        "different": comparison.different,
        "notCompared": [*sorted(LISTS_FILES), *comparison.of_the_key],
        "builder": {"bundle": dict(description.builder), "here": builder()},
    }
    print(json.dumps(report, indent=1))
    if comparison.different and dict(description.builder) != builder():
        say("the bundle was built with another Python or zlib, and another zlib compresses to other bytes")
    return 1 if comparison.different else 0

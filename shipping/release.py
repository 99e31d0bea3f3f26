"""`python -m shipping release FOLDER --sign KEY`: every file of a release, from a clean checkout of its tag.

The folder gets the bundle, the image, the chart and the command lines as single files, the inventory, the provenance,
SHA256SUMS with its signature, the public key, and REBUILD.md with the commands that build the same bytes again. Without
--sign nothing is signed. One JSON object on stdout: the digests of image and chart, and the SHA-256 of SHA256SUMS.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from hermetic import __version__
from hermetic.cli.bundle.layout import CHECKSUMS, DESCRIPTION, PLAIN_SIGNATURE, checksums
from hermetic.signing.canonical_json import canonical
from hermetic.signing.signatures import sign
from shipping.bundle import COMMAND_LINES, NAME, Parts, bundle_files, collect_parts, lock_hashes
from shipping.cosign import signed_statement
from shipping.layout import layout_files, write_tar
from shipping.operator_image import operator_image
from shipping.provenance import is_commit, provenance
from shipping.revision import REPOSITORY, Revision, builder, git, revision_of
from shipping.signer import Signer, load_signer
from testbed.console import say
from testbed.errors import BuildError
from testbed.images.layers import PROGRAM

BUNDLE, IMAGE = f"{NAME}-{__version__}.tar", f"{NAME}-image-{__version__}.tar"
PYTHONS = tuple(COMMAND_LINES)
PUBLIC_KEY, PROVENANCE = f"{NAME}-release.pub", "provenance.intoto.json"


def write_release(folder: Path, signer: Signer | None, pythons: tuple[str, ...] = PYTHONS) -> dict[str, str]:
    """Writes the files of a release of the commit that is checked out. Returns what `main` prints."""
    revision = revision_of()
    parts = collect_parts(operator_image(NAME, revision=revision), revision)
    files = bundle_files(parts, signer)
    folder.mkdir(parents=True)
    write_tar(folder / BUNDLE, files)
    write_tar(folder / IMAGE, layout_files(parts.image))
    for python in pythons:
        program = folder / f"{NAME}-cp{python.replace('.', '')}.pyz"
        program.write_bytes(parts.command_lines[python])
        program.chmod(PROGRAM)
    for name in (f"chart/{NAME}-{__version__}.tgz", *parts.inventory.files):
        (folder / Path(name).name).write_bytes(files[name])
    description = json.loads(files[DESCRIPTION])
    texts = {
        "crds.yaml": _custom_resource_definitions(),
        "digests.txt": f"{description['image']}\n{description['chart']}\n",
        "REBUILD.md": _rebuild(revision),
        "RELEASE_NOTES.md": _notes(),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    _seal(folder, parts, signer)
    sums = hashlib.sha256((folder / CHECKSUMS).read_bytes()).hexdigest()
    return {"image": description["image"], "chart": description["chart"], "checksumsSha256": sums}


def _seal(folder: Path, parts: Parts, signer: Signer | None) -> None:
    """Provenance, checksums and signature; in this order, because each is about the files before it."""
    components = parts.inventory.components
    statement = provenance(_sha256_by_name(folder), "release", parts.revision, components, lock_hashes())
    signed = signed_statement(signer, statement).as_bytes() if signer is not None else canonical(statement) + b"\n"
    (folder / PROVENANCE).write_bytes(signed)
    if signer is not None:
        public = signer.key.public.key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / PUBLIC_KEY).write_bytes(public)
    sums = checksums(_sha256_by_name(folder))
    (folder / CHECKSUMS).write_bytes(sums)
    if signer is not None:
        (folder / PLAIN_SIGNATURE).write_bytes(sign(signer.key, sums))


def _sha256_by_name(folder: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.iterdir())}


def _custom_resource_definitions() -> str:
    names = git("ls-files", "--", "crds").splitlines()
    return "---\n".join((REPOSITORY / name).read_text() for name in names if name.endswith(".yaml"))


def _rebuild(revision: Revision) -> str:
    machine = builder()
    return f"""\
# Build this release again

The files of this release follow from one commit. The same commit with the same versions below gives the same bytes.

| | |
|---|---|
| commit | `{revision.commit}` |
| repository | {revision.source} |
| Python | {machine["python"]} |
| zlib | {machine["zlib"]} |
{"".join(f"| SHA-256 of `{name}` | `{sha256}` |" + chr(10) for name, sha256 in lock_hashes().items())}
In a clone of the repository, with this folder beside it:

```
make verify-release BUNDLE=../{BUNDLE}
```

It checks out the commit in a folder of its own, builds the bundle, and compares every file. Signatures are not
compared: only the owner of the key can make them.
"""


def _notes() -> str:
    """The section of CHANGELOG.md about this version, or about what is not released where there is none yet."""
    sections = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1:]
    named = {section.partition("\n")[0].strip(): section for section in sections}
    chosen = next((text for title, text in named.items() if __version__ in title), named.get("Unreleased", ""))
    return f"# Hermetic {__version__}\n\n{chosen.partition(chr(10))[2].strip()}\n"


def refusals(revision: Revision) -> Iterator[str]:
    """Why no release can be made of what is checked out."""
    if not is_commit(revision.commit):
        yield "tracked files differ from the commit, so the release could not be built again: commit or restore them"
    elif f"v{__version__}" not in git("tag", "--points-at", "HEAD").split():
        yield f"the commit has no tag v{__version__}: git tag v{__version__}"


def main(arguments: list[str]) -> int:
    """Makes the release."""
    parser = argparse.ArgumentParser(
        prog="python -m shipping release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="private key of P-256 or Ed25519, in PEM")
    parser.add_argument("--certificate", type=Path, metavar="FILE", help="its chain of certificates, for Notation")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="command lines for these alone")
    chosen = parser.parse_args(arguments)
    if reason := next(refusals(revision_of()), None):
        raise BuildError(reason)
    if chosen.folder.exists():
        raise BuildError(f"{chosen.folder} exists: name a folder that is not there yet")
    signer = load_signer(chosen.sign, chosen.certificate) if chosen.sign is not None else None
    chosen.folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=chosen.folder.parent) as work:
        printed = write_release(Path(work) / "release", signer, tuple(chosen.python or PYTHONS))
        (Path(work) / "release").rename(chosen.folder)
    say(f"wrote {chosen.folder}, {len(list(chosen.folder.iterdir()))} files")
    print(json.dumps(printed, indent=1))
    return 0

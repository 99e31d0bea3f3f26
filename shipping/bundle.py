"""`python -m shipping bundle FILE [--sign KEY]`: everything that an isolated cluster needs of Hermetic, as one tar.

The tar is an OCI layout of the operator's image. Beside it are the packaged chart, the CRDs, the manifests, the
documents, the command line as one file, the inventory of the image, and its signatures and provenance for registries.
hermetic/cli/bundle/layout.py describes its form, `hermetic bundle verify` checks it. Two builds of one commit give the
same bytes. One JSON object on stdout: the bundle, its size, image and chart by digest and the SHA-256 of the command
line for each Python.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hermetic import __version__
from hermetic.cli.bundle.description import Description
from hermetic.cli.bundle.layout import CHECKSUMS, DESCRIPTION, PLAIN_SIGNATURE, SIGNATURE, checksums, sign_checksums
from hermetic.cli.bundle.pushes import CHART as CHART_REPOSITORY
from hermetic.signing.signatures import sign
from shipping.artifacts import artifact_files
from shipping.chart import CHART, chart_of
from shipping.command_line import command_line
from shipping.helm_chart import chart_artifact
from shipping.inventory import Inventory, inventory_of
from shipping.layout import layout_files, write_tar
from shipping.operator_image import operator_image
from shipping.provenance import provenance
from shipping.revision import REPOSITORY, Revision, build_facts, builder, git, revision_of
from shipping.signer import Signer, load_signer
from testbed.console import say
from testbed.images.layers import FILE, Entry, gzipped, layer
from testbed.images.oci import Image, ImageIndex, as_json

NAME = "hermetic"
COMMAND_LINES = {"3.11": f"cli/{NAME}.pyz", "3.12": f"cli/{NAME}-cp312.pyz", "3.13": f"cli/{NAME}-cp313.pyz"}
"""The command line by the version of the Python that runs it."""
WHOLE = ("README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md", "crds", "docs", "manifests")
LOCKS = ("requirements.lock", "shipping/debian.lock")


def lock_hashes() -> dict[str, str]:
    """SHA-256 of each list of locked packages, in hexadecimal."""
    return {name: hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest() for name in LOCKS}


@dataclass(frozen=True)
class Parts:
    """What is built once of a commit: the image, the command line by Python, and the inventory of both."""

    image: Image | ImageIndex
    revision: Revision
    command_lines: Mapping[str, bytes]
    inventory: Inventory


def collect_parts(image: Image | ImageIndex, revision: Revision, *, exactly: bool = True) -> Parts:
    """The parts for an image of this commit; `exactly` as in shipping/debian.py."""
    command_lines = {python: _command_line(revision, python) for python in COMMAND_LINES}
    return Parts(image, revision, command_lines, inventory_of(image, command_lines, revision, exactly=exactly))


def bundle_files(parts: Parts, signer: Signer | None = None) -> dict[str, bytes]:
    """Every file of the bundle by its name, the checksums first; signed where there is a signer."""
    image, commit, inventory = parts.image, parts.revision, parts.inventory
    chart = chart_artifact(packaged_chart(commit))
    locks = lock_hashes()
    description = Description(
        __version__,
        image.by_digest,
        f"{CHART_REPOSITORY}@{chart.digest}",
        builder=builder(),
        locks=locks,
        **build_facts(commit),
    )
    subjects = {name.partition("@")[0]: name.rpartition(":")[2] for name in (description.image, description.chart)}
    subjects |= {
        f"{platform.repository}/linux/{platform.architecture}": platform.digest.rpartition(":")[2]
        for platform in image.images
    }
    statement = provenance(subjects, "bundle", commit, inventory.components, locks)
    files = {
        DESCRIPTION: as_json(description.as_json()),
        f"chart/{NAME}-{__version__}.tgz": chart.package,
        **{name: parts.command_lines[python] for python, name in COMMAND_LINES.items()},
        **{name: (REPOSITORY / name).read_bytes() for name in _tracked(*WHOLE)},
        **inventory.files,
        **artifact_files(image, chart, inventory.files, statement, commit, signer),
        **layout_files(image),
    }
    sums = checksums({name: _sha256(content) for name, content in files.items()})
    return {CHECKSUMS: sums, **_signatures(sums, description, signer), **files}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _signatures(sums: bytes, description: Description, signer: Signer | None) -> dict[str, bytes]:
    if signer is None:
        return {}
    envelope = sign_checksums(sums, description.version, signer.key, description.revision)
    return {SIGNATURE: envelope.as_bytes(), PLAIN_SIGNATURE: sign(signer.key, sums)}


def packaged_chart(revision: Revision | None = None) -> bytes:
    """The chart as `helm package` makes it, without the times in it, and with the commit among its annotations."""
    prefix = CHART.relative_to(REPOSITORY).as_posix()
    contents = {name.removeprefix(f"{prefix}/"): (REPOSITORY / name).read_bytes() for name in _tracked(prefix)}
    contents["Chart.yaml"] = chart_of(revision or revision_of()).encode()
    return gzipped(layer(Entry(f"{NAME}/{name}", FILE, content) for name, content in contents.items()).tar)


def _command_line(revision: Revision, python: str) -> bytes:
    """The command line as one file, for this Python."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{NAME}.pyz"
        command_line(file, python, revision=revision)
        return file.read_bytes()


def main(arguments: list[str]) -> int:
    """Builds and writes the bundle."""
    parser = argparse.ArgumentParser(
        prog="python -m shipping bundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="private key in PEM, as docs/attestation.md makes it")
    parser.add_argument(
        "--certificate", type=Path, metavar="FILE", help="its chain of certificates in PEM, for Notation"
    )
    chosen = parser.parse_args(arguments)
    signer = load_signer(chosen.sign, chosen.certificate) if chosen.sign is not None else None
    revision = revision_of()
    image = operator_image(NAME, revision=revision)
    files = bundle_files(collect_parts(image, revision), signer)
    write_tar(chosen.file, files)
    size = chosen.file.stat().st_size
    say(f"wrote {chosen.file}, {size / 1e6:.0f} MB")
    first, *later = COMMAND_LINES.values()
    chart = json.loads(files[DESCRIPTION])["chart"]
    platforms = {f"linux/{platform.architecture}": platform.digest for platform in image.images}
    facts = {
        "bundle": str(chosen.file),
        "bytes": size,
        "image": image.by_digest,
        "platforms": platforms,
        "chart": chart,
    }
    facts |= {"cliSha256": _sha256(files[first]), "otherCliSha256": {name: _sha256(files[name]) for name in later}}
    print(json.dumps(facts, indent=1))
    return 0


def _tracked(*paths: str) -> Iterator[str]:
    """The files of the commit in these places, in order: what else is in a working tree does not ship."""
    yield from sorted(name for name in git("ls-files", "-z", "--", *paths).split("\0") if name)

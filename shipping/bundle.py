"""`python -m shipping bundle FILE [--sign KEY]`: everything that an isolated cluster needs of Hermetic, as one tar.

The tar is an OCI layout of the operator's image, with the packaged chart, the CRDs, the manifests, the documents, the
command line as one file and the SBOMs of the image beside it. hermetic/cli/bundle/layout.py describes its form,
`hermetic bundle verify` checks it. Two builds of one commit give the same bytes. One JSON object on stdout: the bundle,
its size, the image by digest and the SHA-256 of the command line.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from hermetic import __version__
from hermetic.cli.attest.files import load_signing_key
from hermetic.cli.bundle.layout import CHECKSUMS, DESCRIPTION, SCHEMA, SIGNATURE, checksums, sign_checksums
from hermetic.signing.keys import SigningKey
from shipping.chart import CHART, REPOSITORY
from shipping.command_line import command_line
from shipping.debian import fetched
from shipping.layout import layout_files, write_tar
from shipping.licences import Licence
from shipping.operator_image import operator_image
from shipping.sbom import Component, Contents, cyclonedx, debian_components, spdx, wheel_components
from shipping.wheels import locked_wheels
from testbed.console import say
from testbed.errors import BuildError
from testbed.images.layers import FILE, Entry, layer
from testbed.images.oci import Image, as_json

NAME, LICENCE = "hermetic", "Apache-2.0"
COMMAND_LINE = f"cli/{NAME}.pyz"
WHOLE = ("README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md", "crds", "docs", "manifests")
EPOCH = "SOURCE_DATE_EPOCH"


def bundle_files(image: Image, key: SigningKey | None = None, *, exactly: bool = True) -> dict[str, bytes]:
    """Every file of the bundle by its name, the checksums first; signed where there is a key."""
    contents = _contents(image, exactly=exactly)
    files = {
        DESCRIPTION: as_json({"schema": SCHEMA, "version": __version__, "image": image.by_digest}),
        f"chart/{NAME}-{__version__}.tgz": packaged_chart(),
        COMMAND_LINE: _command_line(),
        **{name: (REPOSITORY / name).read_bytes() for name in _tracked(*WHOLE)},
        f"sbom/{NAME}-{__version__}.spdx.json": spdx(contents),
        f"sbom/{NAME}-{__version__}.cdx.json": cyclonedx(contents),
        **layout_files(image),
    }
    sums = checksums({name: hashlib.sha256(content).hexdigest() for name, content in files.items()})
    signature = {SIGNATURE: sign_checksums(sums, __version__, key).as_bytes()} if key is not None else {}
    return {CHECKSUMS: sums, **signature, **files}


def packaged_chart() -> bytes:
    """The chart as `helm package` makes it, but for the times in it, which differ each time helm is called."""
    prefix = CHART.relative_to(REPOSITORY).as_posix()
    entries = [
        Entry(f"{NAME}/{name.removeprefix(prefix + '/')}", FILE, (REPOSITORY / name).read_bytes())
        for name in _tracked(prefix)
    ]
    return gzip.compress(layer(entries).tar, mtime=0)


def _command_line() -> bytes:
    """The command line as one file, for the Python of the image."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{NAME}.pyz"
        command_line(file)
        return file.read_bytes()


def main(arguments: list[str]) -> int:
    """Builds and writes the bundle."""
    parser = argparse.ArgumentParser(
        prog="python -m shipping bundle", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="private key in PEM, as docs/attestation.md makes it")
    chosen = parser.parse_args(arguments)
    key = load_signing_key(chosen.sign) if chosen.sign is not None else None
    image = operator_image(NAME)
    files = bundle_files(image, key)
    write_tar(chosen.file, files)
    size = chosen.file.stat().st_size
    say(f"wrote {chosen.file}, {size / 1e6:.0f} MB")
    cli = hashlib.sha256(files[COMMAND_LINE]).hexdigest()
    facts = {"bundle": str(chosen.file), "bytes": size, "image": image.by_digest, "cliSha256": cli}
    print(json.dumps(facts, indent=1))
    return 0


def _contents(image: Image, *, exactly: bool) -> Contents:
    components = (
        Component(NAME, __version__, f"pkg:pypi/{NAME}@{__version__}", licence=Licence(LICENCE)),
        *debian_components(fetched(exactly=exactly)),
        *wheel_components(locked_wheels()),
    )
    return Contents(NAME, __version__, image.digest, _changed(), components)


def _changed() -> datetime:
    """When the sources were last changed: SOURCE_DATE_EPOCH, else the time of the commit."""
    seconds = os.environ.get(EPOCH) or _git("log", "-1", "--format=%ct")
    return datetime.fromtimestamp(int(seconds), UTC)


def _tracked(*places: str) -> Iterator[str]:
    """The files of the commit in these places, in order: what else is in a working tree does not ship."""
    yield from sorted(name for name in _git("ls-files", "-z", "--", *places).split("\0") if name)


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BuildError(f"a bundle is built from a checkout by git: {done.stderr.strip()}")
    return done.stdout.strip()

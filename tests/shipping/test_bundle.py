"""The air-gap bundle: reproducible, whole, described truly, and loaded by the commands of docs/bundle.md."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from hermetic import __version__
from hermetic.cli.attest.files import load_signing_key
from shipping import debian
from shipping.bundle import bundle_files, packaged_chart
from shipping.chart import CHART
from shipping.layout import layout_files, write_tar
from testbed.containerd import Containerd
from testbed.installation import REPOSITORY
from testbed.programs import programs
from testbed.registry import Registry
from testbed.sbom_validators import problems
from testbed.skopeo import skopeo
from tests.commandline import hermetic
from tests.install_page import commands
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

PAGE = REPOSITORY / "docs" / "bundle.md"
NAME = f"hermetic-{__version__}.tar"
REGISTRY = "contoso.azurecr.io"


@pytest.fixture(scope="module")
def files(built) -> dict[str, bytes]:
    return bundle_files(built, exactly=False)


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory) -> Path:
    """A folder with the bundle, as a person has it on the machine that loads it."""
    folder = tmp_path_factory.mktemp("bundle")
    write_tar(folder / NAME, files)
    return folder


@pytest.fixture(scope="module")
def sboms(files, tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sbom")
    names = [f"hermetic-{__version__}.{form}.json" for form in ("spdx", "cdx")]
    for name in names:
        (folder / name).write_bytes(files[f"sbom/{name}"])
    return folder / names[0], folder / names[1]


@pytest.fixture(scope="module")
def registry(tmp_path_factory) -> Iterator[Registry]:
    with Registry(tmp_path_factory.mktemp("registry")) as registry:
        yield registry


def command_of(heading: str, start: str) -> list[str]:
    """The words of the one command of the page that starts so."""
    (line,) = (line for line in commands(heading, PAGE) if line.startswith(start))
    return shlex.split(line)[1:]


@pytest.mark.sampled(0)
def test_a_second_build_gives_the_same_files_in_the_same_order(files, built):
    assert list(bundle_files(built, exactly=False).items()) == list(files.items())


def test_it_is_verified_by_the_command_of_the_page(folder, built, monkeypatch):
    monkeypatch.chdir(folder)
    (line,) = commands("Verify", PAGE)
    words = shlex.split(line)[1:]

    ran = hermetic(*words[: words.index("--public-key")])

    assert ran.code == 0, ran.err
    assert built.by_digest in ran.out


def test_the_command_line_in_it_is_put_in_place_as_the_page_says_and_verifies_the_bundle(
    files, folder, tmp_path, monkeypatch
):
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the command line of the bundle is for Python 3.11")
    monkeypatch.chdir(folder)
    unpack, checksum, install, version = (shlex.split(line) for line in commands("On the jump box", PAGE))
    place = tmp_path / "hermetic"

    subprocess.run([unpack[0], "-C", tmp_path, unpack[1], folder / unpack[2], *unpack[3:]], check=True)
    summed = subprocess.run(checksum, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()[0]
    subprocess.run([*install[:-2], tmp_path / install[-2], place], check=True)

    assert summed == hashlib.sha256(files["cli/hermetic.pyz"]).hexdigest()
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"}
    for words in (version[1:], ["bundle", "verify", str(folder / NAME)]):
        subprocess.run([place, *words], env=environment, check=True)


def test_sha256sum_reads_its_checksums(folder, tmp_path):
    with tarfile.open(folder / NAME) as archive:
        archive.extractall(tmp_path, filter="data")
    subprocess.run(["sha256sum", "--check", "--quiet", "--strict", "SHA256SUMS"], cwd=tmp_path, check=True)


def test_the_page_lists_everything_that_it_holds(files):
    listed = re.findall(r"`([^`]+)`", PAGE.read_text().split("| in the bundle | is |")[1].split("\n\n")[0])
    assert [name for name in files if not name.startswith(tuple(listed))] == []


def test_both_sboms_are_valid_by_the_libraries_of_their_formats(sboms):
    assert problems(*sboms) == []


def test_the_validators_find_what_is_wrong(sboms, tmp_path):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    spdx["relationships"][0]["relatedSpdxElement"] = "SPDXRef-Other"
    cyclonedx["components"][0]["type"] = "lib"
    changed = tmp_path / "spdx.json", tmp_path / "cdx.json"
    for file, document in zip(changed, (spdx, cyclonedx), strict=True):
        file.write_text(json.dumps(document))

    found = problems(*changed)

    assert {line.split(":")[0] for line in found} == {"SPDX", "CycloneDX"}


def test_both_sboms_name_every_package_of_the_locks(sboms):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    lock = (REPOSITORY / "requirements.lock").read_text()
    locked = {
        f"pkg:pypi/{name.lower()}@{version}" for name, version in re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE)
    }
    urls = [one["purl"] for one in cyclonedx["components"]]

    assert urls == [one["externalRefs"][0]["referenceLocator"] for one in spdx["packages"][1:]]
    assert {url for url in urls if url.startswith("pkg:pypi/")} == {*locked, f"pkg:pypi/hermetic@{__version__}"}
    names = [unquote(url.split("/")[2].split("@")[0]) for url in urls if url.startswith("pkg:deb/")]
    assert names == [package.name for package in debian.locked()]


# As their projects say, read from their own pages: PyPI's and Debian's (metadata.ftp-master.debian.org/changelogs).
LICENCES = {
    "pydantic": "MIT",
    "requests": "Apache-2.0",
    "certifi": "MPL-2.0",
    "cryptography": "Apache-2.0 OR BSD-3-Clause",
    "zlib1g": "Zlib",
    "libexpat1": "MIT",
    "libssl3": "Apache-2.0 AND (LicenseRef-libssl3-Artistic OR GPL-1.0-or-later)",
    "libc6": "LicenseRef-libc6",
    "hermetic": "Apache-2.0",
}


def test_both_sboms_name_the_licence_that_every_package_declares(sboms):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    declared = {one["name"]: one["licenseDeclared"] for one in spdx["packages"][1:]}

    assert {name: declared[name] for name in LICENCES} == LICENCES
    assert "NOASSERTION" not in declared.values()
    assert {one["name"]: one["licenses"][0]["expression"] for one in cyclonedx["components"]} == declared
    references = {word for one in declared.values() for word in re.findall(r"LicenseRef-[A-Za-z0-9.-]+", one)}
    texts = {one["licenseId"]: one["extractedText"] for one in spdx["hasExtractedLicensingInfos"]}
    assert texts.keys() == references
    assert "GNU C Library" in texts["LicenseRef-libc6"]


def test_helm_reads_the_packaged_chart_as_it_reads_the_folder(tmp_path):
    package = tmp_path / f"hermetic-{__version__}.tgz"
    package.write_bytes(packaged_chart())
    shown = [
        subprocess.run([programs("helm")["helm"], "show", "all", chart], capture_output=True, check=True).stdout
        for chart in (package, CHART)
    ]
    assert shown[0] == shown[1]
    by_helm = [programs("helm")["helm"], "package", CHART, "--destination", tmp_path / "by-helm"]
    subprocess.run(by_helm, capture_output=True, check=True)
    assert names_in((tmp_path / "by-helm" / package.name).read_bytes()) == names_in(package.read_bytes())


def names_in(package: bytes) -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return {member.name for member in archive if member.isfile()}


def test_skopeo_pushes_the_image_under_its_digest(folder, built, registry, monkeypatch):
    monkeypatch.chdir(folder)
    words = command_of("Load into a registry", "skopeo copy ")
    target = words[-1].replace(REGISTRY, registry.host)

    skopeo("copy", "--dest-tls-verify=false", *words[1:-1], target)

    inspected = skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", target)
    assert inspected.strip() == built.digest


def test_oras_copies_the_unpacked_layout_under_its_digest(folder, built, registry, tmp_path):
    lines = [line for line in commands("Load into a registry", PAGE) if line.startswith(("mkdir ", "oras "))]
    script = "\n".join(lines).replace(NAME, str(folder / NAME)).replace(REGISTRY, f"{registry.host}/by-oras")
    script = script.replace("oras cp", f"{programs('oras')['oras']} cp --to-plain-http")

    subprocess.run(["bash", "-eu", "-c", script], cwd=tmp_path, capture_output=True, check=True)

    target = f"docker://{registry.host}/by-oras/hermetic:{__version__}"
    assert skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", target).strip() == built.digest


def test_skopeo_pushes_what_make_image_writes_as_the_page_says(built, registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_tar(tmp_path / "dist" / "hermetic.tar", layout_files(built))
    (line,) = (line for line in commands("The image") if line.startswith("skopeo "))
    words = shlex.split(line.replace(REGISTRY, registry.host + "/of-the-image"))

    skopeo("copy", "--dest-tls-verify=false", *words[2:])

    inspected = skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", words[-1])
    assert inspected.strip() == built.digest


def test_helm_pushes_the_chart_that_was_unpacked(folder, registry, tmp_path):
    unpack, push = (command_of("Load into a registry", start) for start in ("tar ", "helm push "))
    subprocess.run(["tar", "-C", tmp_path, unpack[0], folder / unpack[1], *unpack[2:]], check=True)
    words = [word.replace(REGISTRY, registry.host) for word in push]
    helm = [programs("helm")["helm"], *words, "--plain-http"]

    done = subprocess.run(helm, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert re.search(r"Digest: sha256:[0-9a-f]{64}", done.stdout + done.stderr)
    assert {path.name for path in tmp_path.iterdir()} == {"chart", "crds", "manifests"}


def test_ctr_imports_the_image_under_the_name_by_which_pods_ask_for_it(folder, built, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("containerd needs root")
    monkeypatch.chdir(folder)
    words = command_of("Load onto a node", "ctr ")
    with tempfile.TemporaryDirectory(prefix="hermetic-") as place, Containerd(Path(place)) as containerd:
        # Unpacking needs a file system that containerd can lay layers over; the node's tests do that.
        containerd.ctr(*words[:-1], "--no-unpack", words[-1])
        names = containerd.ctr("--namespace", "k8s.io", "images", "list", "--quiet").split()

    assert f"{REGISTRY}/hermetic@{built.digest}" in names


def test_a_bundle_that_was_signed_is_verified_with_the_public_key(built, tmp_path):
    key, public = tmp_path / "platform.key", tmp_path / "platform.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    write_tar(tmp_path / NAME, bundle_files(built, load_signing_key(key), exactly=False))

    ran = hermetic("bundle", "verify", tmp_path / NAME, "--public-key", public)

    assert ran.code == 0, ran.err
    assert f"signed by {public}" in ran.out

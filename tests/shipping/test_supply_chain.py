"""An auditor with the files of a release, the public key and standard programs follows docs/supply-chain.md.

The release is made of the commit that is checked out, in a clone: as `make release` makes it, signed with a new key.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hermetic import __version__
from hermetic.signing.envelope import envelope_from
from hermetic.signing.keys import read_public_key, trusted
from hermetic.signing.signatures import is_signed_by, key_named_by
from shipping.verify_release import compare, files_of
from testbed.installation import REPOSITORY
from testbed.programs import programs
from testbed.registry import Registry
from testbed.syft import scanned
from tests.commandline import hermetic
from tests.install_page import commands
from tests.shipping.signature_programs import COSIGN, NOTATION, PAGE, REGISTRY, judged, on_localhost, verifier

pytestmark = pytest.mark.sampled(0)

BUNDLE = f"hermetic-{__version__}.tar"
SBOMS = ("amd64", "arm64", "cli-cp311", "cli-cp312", "cli-cp313")


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """The commit that is checked out, with the tag of its release."""
    folder = tmp_path_factory.mktemp("source") / "clone"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, folder], check=True)
    return folder


def ship(clone: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """`python -m shipping` with the code of the clone."""
    code = os.pathsep.join(map(str, (clone, clone / "operator")))
    command = [sys.executable, "-P", "-m", "shipping", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": code}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def release(clone, keys) -> Path:
    folder = clone / "dist" / f"release-{__version__}"
    signing = ("--sign", keys.private, "--certificate", keys.certificate)
    untagged = ship(clone, "release", folder, *signing, "--python", "3.11")
    assert untagged.returncode == 1
    assert f"git tag v{__version__}" in untagged.stderr
    subprocess.run(["git", "tag", f"v{__version__}"], cwd=clone, check=True)
    done = ship(clone, "release", folder, *signing, "--python", "3.11")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def folder(release, keys, tmp_path) -> Path:
    """What the auditor has: the bundle and, by another way, the public key."""
    shutil.copy(release / BUNDLE, tmp_path)
    shutil.copy(keys.public, tmp_path / "platform.pub")
    return tmp_path


def run(folder: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    script = "\n".join(lines)
    return subprocess.run(["bash", "-euc", script], cwd=folder, capture_output=True, text=True, check=False)


def digests(release: Path) -> list[str]:
    return (release / "digests.txt").read_text().split()


def head(clone: Path) -> str:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=clone, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_release_holds_what_the_page_lists_and_its_checksums_cover_it(release, keys):
    names = {path.name for path in release.iterdir()}
    stem = f"hermetic-{__version__}"
    assert names == {
        *(BUNDLE, f"hermetic-image-{__version__}.tar", f"{stem}.tgz", "hermetic-cp311.pyz", "crds.yaml"),
        *(f"{stem}-{part}.{form}.json" for part in SBOMS for form in ("spdx", "cdx")),
        *(f"{stem}.openvex.json", "THIRD_PARTY_LICENSES.txt"),
        *("provenance.intoto.json", "digests.txt", "REBUILD.md", "RELEASE_NOTES.md", "hermetic-release.pub"),
        *("SHA256SUMS", "SHA256SUMS.sig"),
    }
    assert (release / "hermetic-release.pub").read_text() == keys.public.read_text()
    verify = "openssl pkeyutl -verify -pubin -inkey hermetic-release.pub -rawin -in SHA256SUMS -sigfile SHA256SUMS.sig"
    done = run(release, [verify, "sha256sum --check --quiet SHA256SUMS"])
    assert (done.returncode, done.stdout) == (0, "Signature Verified Successfully\n"), done.stderr
    listed = {line.split("  ")[1] for line in (release / "SHA256SUMS").read_text().splitlines()}
    assert names - listed == {"SHA256SUMS", "SHA256SUMS.sig"}


def test_the_provenance_of_the_release_is_signed_and_names_its_files_and_its_commit(release, clone, keys):
    envelope = envelope_from(json.loads((release / "provenance.intoto.json").read_bytes()))
    public = read_public_key("release", keys.public.read_text())
    assert is_signed_by(key_named_by(envelope, trusted([public])), envelope)
    statement = json.loads(envelope.payload)
    assert statement["predicate"]["buildDefinition"]["externalParameters"]["revision"] == head(clone)
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in statement["subject"]}
    assert subjects[BUNDLE] == hashlib.sha256((release / BUNDLE).read_bytes()).hexdigest()
    inputs = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert sum(entry["uri"].startswith("pkg:deb/") for entry in inputs) >= 15
    assert sum(entry["uri"].startswith("pkg:pypi/") for entry in inputs) >= 50


def test_openssl_and_sha256sum_verify_the_files_by_the_commands_of_the_page(folder):
    done = run(folder, commands("Verify the files", PAGE))

    assert (done.returncode, done.stdout) == (0, "Signature Verified Successfully\n"), done.stderr


def test_a_file_or_a_list_that_was_changed_is_refused_by_the_commands_of_the_page(folder):
    unpack, verify, check = commands("Verify the files", PAGE)
    assert run(folder, [unpack]).returncode == 0
    (folder / "docs" / "install.md").write_text("changed\n")
    assert run(folder, [check]).returncode == 1
    sums = folder / "SHA256SUMS"
    digest = hashlib.sha256(b"changed\n").hexdigest()
    lines = [
        line if not line.endswith("  docs/install.md") else f"{digest}  docs/install.md"
        for line in sums.read_text().splitlines()
    ]
    sums.write_text("".join(f"{line}\n" for line in lines))
    assert run(folder, [check]).returncode == 0
    assert run(folder, [verify]).returncode == 1


def test_the_command_accepts_the_bundle_and_names_image_chart_and_commit(folder, release, clone):
    ran = hermetic("bundle", "verify", folder / BUNDLE, "--public-key", folder / "platform.pub", "-o", "json")

    assert ran.code == 0, ran.err
    printed = json.loads(ran.out)
    assert [printed["image"], printed["chart"]] == digests(release)
    assert printed["revision"] == head(clone)


def test_syft_lists_the_packages_of_the_inventory(folder):
    unpack, copy, scan = commands("Scan", PAGE)
    done = run(folder, [f"export PATH={programs('oras')['oras'].parent}:$PATH", unpack, copy])
    assert done.returncode == 0, done.stderr
    assert scan == "syft scan oci-dir:arm64 --platform linux/arm64"
    urls = {artifact["purl"] for artifact in scanned(f"oci-dir:{folder}/arm64", *scan.split()[3:])["artifacts"]}
    inventory = json.loads((folder / "bundle" / "sbom" / f"hermetic-{__version__}-arm64.cdx.json").read_bytes())
    assert urls == {component["purl"] for component in inventory["components"] if "purl" in component}


@pytest.fixture
def verifying(keys, registry, tmp_path) -> Path:
    """What somebody has who was given the public key and the certificate."""
    return verifier(tmp_path / "verifier", keys, on_localhost(registry.host))


def test_cosign_and_notation_accept_what_the_commands_of_the_page_pushed(folder, release, registry, verifying):
    lines = commands("Push signatures, inventory and provenance", PAGE)
    script = [line.replace("oras cp", "oras cp --to-plain-http").replace(REGISTRY, registry.host) for line in lines]
    done = run(folder, [f"export PATH={programs('oras')['oras'].parent}:$PATH", *script])
    assert done.returncode == 0, done.stderr
    for reference in references(release, registry):
        assert errors(verifying, reference) == {}


def test_cosign_and_notation_accept_what_the_command_loaded(folder, release, tmp_path, keys, monkeypatch):
    """Into a registry of its own, so that nothing is there already."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    (tmp_path / "registry").mkdir()
    with Registry(tmp_path / "registry") as registry:
        to = ("--to", registry.host, "--plain-http", "--public-key", folder / "platform.pub")
        ran = hermetic("bundle", "load", folder / BUNDLE, *to)
        assert ran.code == 0, ran.err
        home = verifier(tmp_path / "verifier", keys, on_localhost(registry.host))
        for reference in references(release, registry):
            assert errors(home, reference) == {}


def references(release: Path, registry: Registry) -> list[str]:
    """Index and chart, by the digests of the release."""
    return [f"{on_localhost(registry.host)}/{named}" for named in digests(release)]


def errors(home: Path, reference: str) -> dict[str, str]:
    """What the programs print where the commands of the page refuse."""
    judgements = {command: judged(home, command, reference) for command in (*COSIGN, NOTATION)}
    return {command: done.stderr for command, done in judgements.items() if done.returncode}


def test_the_bundle_is_built_again_from_its_revision_with_the_same_bytes(release, clone):
    done = ship(clone, "verify-release", release / BUNDLE)

    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["identical"], report["revision"], report["different"]) == (True, head(clone), [])
    assert report["files"] > 100
    assert {"signature.json", "SHA256SUMS.sig"} <= set(report["notCompared"])


def test_a_file_that_differs_from_the_source_is_named(release):
    bundle_files = files_of(release / BUNDLE)
    changed = {**bundle_files, "docs/install.md": b"changed"}
    assert compare(changed, bundle_files).different == ("docs/install.md",)
    assert compare({**bundle_files, "docs/more.md": b""}, bundle_files).different == ("docs/more.md",)
    assert compare(bundle_files, {**bundle_files, "docs/more.md": b""}).different == ("docs/more.md",)

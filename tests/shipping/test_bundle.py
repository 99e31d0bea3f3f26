"""The air-gap bundle: reproducible, whole, described truly, and loaded by the commands of docs/bundle.md."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from hermetic import __version__
from shipping import debian
from shipping.bundle import COMMAND_LINES, Parts, bundle_files, collect_parts, packaged_chart
from shipping.chart import CHART
from shipping.layout import layout_files, write_tar
from shipping.platforms import PLATFORMS, Platform
from shipping.revision import revision_of
from shipping.signer import load_signer
from shipping.wheels import READS_KUBECONFIGS
from testbed.containerd import Containerd
from testbed.installation import REPOSITORY
from testbed.programs import programs
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
def parts(built) -> Parts:
    return collect_parts(built, revision_of(), exactly=False)


@pytest.fixture(scope="module")
def files(parts) -> dict[str, bytes]:
    return bundle_files(parts)


@pytest.fixture(scope="module")
def folder(files, tmp_path_factory) -> Path:
    """A folder with the bundle, as a person has it on the machine that loads it."""
    folder = tmp_path_factory.mktemp("bundle")
    write_tar(folder / NAME, files)
    return folder


@pytest.fixture(scope="module", params=PLATFORMS, ids=lambda platform: platform.architecture)
def sboms(files, request, tmp_path_factory) -> tuple[Path, Path]:
    """The two forms of the SBOM of the image of a platform."""
    folder = tmp_path_factory.mktemp("sbom")
    names = [f"hermetic-{__version__}-{request.param.architecture}.{form}.json" for form in ("spdx", "cdx")]
    for name in names:
        (folder / name).write_bytes(files[f"sbom/{name}"])
    return folder / names[0], folder / names[1]


def platform_of(file: Path) -> Platform:
    return next(platform for platform in PLATFORMS if f"-{platform.architecture}." in file.name)


def command_of(heading: str, start: str) -> list[str]:
    """The words of the one command of the page that starts so."""
    (line,) = (line for line in commands(heading, PAGE) if line.startswith(start))
    return shlex.split(line)[1:]


@pytest.mark.timeout(900)
@pytest.mark.sampled(0)
def test_a_second_build_gives_the_same_files_in_the_same_order(files, built):
    assert list(bundle_files(collect_parts(built, revision_of(), exactly=False)).items()) == list(files.items())


def test_it_is_verified_by_the_command_of_the_page(folder, built, monkeypatch):
    monkeypatch.chdir(folder)
    (line,) = commands("Verify", PAGE)
    arguments = shlex.split(line)[1:]

    ran = hermetic(*arguments[: arguments.index("--public-key")])

    assert ran.code == 0, ran.err
    assert built.by_digest in ran.out
    assert f"revision: {revision_of().commit}" in ran.out


def test_the_command_line_in_it_is_put_in_place_as_the_page_says_and_verifies_the_bundle(
    files, folder, tmp_path, monkeypatch
):
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the command line of the bundle is for Python 3.11")
    monkeypatch.chdir(folder)
    unpack, checksum, install, version = (shlex.split(line) for line in commands("On the jump box", PAGE))
    executable = tmp_path / "hermetic"

    subprocess.run([unpack[0], "-C", tmp_path, unpack[1], folder / unpack[2], *unpack[3:]], check=True)
    summed = subprocess.run(checksum, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()[0]
    subprocess.run([*install[:-2], tmp_path / install[-2], executable], check=True)

    assert summed == hashlib.sha256(files["cli/hermetic.pyz"]).hexdigest()
    environment = {"HOME": str(tmp_path), "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin"}
    for arguments in (version[1:], ["bundle", "verify", str(folder / NAME)]):
        subprocess.run([executable, *arguments], env=environment, check=True)


def test_the_command_line_is_in_it_for_every_python_that_the_page_names(files):
    sizes = {name: len(content) for name, content in files.items() if name.startswith("cli/")}
    assert list(sizes) == ["cli/hermetic.pyz", "cli/hermetic-cp312.pyz", "cli/hermetic-cp313.pyz"]
    page = PAGE.read_text()
    assert [name for name in sizes if f"`{name}`" not in page] == []
    assert max(sizes.values()) < 30e6


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

    problem_lines = problems(*changed)

    assert {line.split(":")[0] for line in problem_lines} == {"SPDX", "CycloneDX"}


def test_both_sboms_name_every_package_of_the_locks(sboms):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    lock = (REPOSITORY / "requirements.lock").read_text()
    locked = {
        f"pkg:pypi/{name.lower()}@{version}" for name, version in re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE)
    }
    urls = [component["purl"] for component in libraries(cyclonedx)]

    assert urls == [package["externalRefs"][0]["referenceLocator"] for package in packages(spdx)]
    in_a_pod = {url for url in locked if url.removeprefix("pkg:pypi/").partition("@")[0] not in READS_KUBECONFIGS}
    assert {url for url in urls if url.startswith("pkg:pypi/")} == {*in_a_pod, f"pkg:pypi/hermetic@{__version__}"}
    names = [unquote(url.split("/")[2].split("@")[0]) for url in urls if url.startswith("pkg:deb/")]
    assert names == [package.name for package in debian.locked(platform_of(sboms[0]))]


def libraries(cyclonedx: dict) -> list[dict]:
    """The packages of the image, without the operating system and without what is in wheels."""
    return [component for component in cyclonedx["components"] if component["type"] == "library"]


def packages(spdx: dict) -> list[dict]:
    return [package for package in spdx["packages"] if package["SPDXID"].startswith("SPDXRef-Package-")]


def test_both_sboms_name_the_operating_system_and_how_scanners_find_advisories(sboms):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    (system,) = (component for component in cyclonedx["components"] if component["type"] == "operating-system")
    assert (system["name"], system["version"]) == ("debian", debian.RELEASE_NUMBER)
    (named,) = (package for package in spdx["packages"] if package["primaryPackagePurpose"] == "OPERATING-SYSTEM")
    assert (named["name"], named["versionInfo"]) == ("debian", debian.RELEASE_NUMBER)
    urls = {component["name"]: component["purl"] for component in libraries(cyclonedx)}
    architecture = platform_of(sboms[0]).architecture
    assert urls["libssl3t64"].endswith(f"?arch={architecture}&distro=debian-13&upstream=openssl")
    assert urls["libffi8"].endswith(f"?arch={architecture}&distro=debian-13&upstream=libffi")


def test_both_sboms_name_what_is_compiled_into_wheels(sboms):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    inside = {
        component["name"]: {part["purl"]: part for part in component["components"]}
        for component in libraries(cyclonedx)
        if "components" in component
    }
    assert inside.keys() == {"aiohttp", "cryptography", "orjson", "pydantic-core", "pyyaml"}
    assert [(part["name"], part["version"]) for part in inside["aiohttp"].values()] == [("llhttp", "9.4.2")]
    (openssl,) = (part for url, part in inside["cryptography"].items() if url.startswith("pkg:generic/openssl@"))
    assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", openssl["version"])
    assert len(inside["pydantic-core"]) > 50
    parts = {package["SPDXID"]: package for package in spdx["packages"] if "SPDXRef-Part-" in package["SPDXID"]}
    assert {part["externalRefs"][0]["referenceLocator"] for part in parts.values()} == {
        url for urls in inside.values() for url in urls
    }
    contained = {
        relationship["relatedSpdxElement"]
        for relationship in spdx["relationships"]
        if relationship["relationshipType"] == "CONTAINS"
    }
    assert parts.keys() <= contained


def test_the_command_line_has_an_sbom_for_every_python(files, tmp_path):
    for python, name in COMMAND_LINES.items():
        stem = f"hermetic-{__version__}-cli-cp{python.replace('.', '')}"
        documents = tmp_path / f"{stem}.spdx.json", tmp_path / f"{stem}.cdx.json"
        for document in documents:
            document.write_bytes(files[f"sbom/{document.name}"])
        assert problems(*documents) == []
        described = json.loads(documents[1].read_bytes())
        assert described["metadata"]["component"]["type"] == "application"
        sha256 = described["metadata"]["component"]["hashes"][0]["content"]
        assert sha256 == hashlib.sha256(files[name]).hexdigest()
        with zipfile.ZipFile(io.BytesIO(files[name])) as archive:
            packages = {path.split("/")[1] for path in archive.namelist() if path.endswith(".dist-info/METADATA")}
        listed = {f"{package['name']}-{package['version']}" for package in described["components"]}
        normalized = {package.removesuffix(".dist-info").replace("_", "-").lower() for package in packages}
        assert normalized == listed


def test_every_package_has_a_supplier_and_a_place_where_it_comes_from(sboms):
    spdx = json.loads(sboms[0].read_bytes())
    nameless = [package["name"] for package in packages(spdx) if package["supplier"] == "NOASSERTION"]
    assert nameless == []
    assert all(package["downloadLocation"] != "NOASSERTION" for package in packages(spdx))


def test_the_licences_of_all_packages_can_be_read_without_unpacking_a_layer(files):
    text = files["sbom/THIRD_PARTY_LICENSES.txt"].decode()
    lock = (REPOSITORY / "requirements.lock").read_text()
    for name in re.findall(r"^(\S+)==", lock, re.MULTILINE):
        assert re.search(rf"^{re.escape(name.lower())} [0-9]", text, re.MULTILINE), name
    assert "GNU C Library" in text
    assert "https://snapshot.debian.org/package/glibc/" in text


def test_the_vex_document_names_the_image_and_a_package_of_the_inventory(files, built):
    document = json.loads(files[f"sbom/hermetic-{__version__}.openvex.json"])
    inventories = [json.loads(files[name]) for name in files if re.fullmatch(r"sbom/.*-(?:amd|arm)64\.cdx\.json", name)]
    urls = {component["purl"] for inventory in inventories for component in libraries(inventory)}
    digests = [built.digest, *(image.digest for image in built.images)]
    assert document["@context"] == "https://openvex.dev/ns/v0.2.0"
    for statement in document["statements"]:
        products = statement["products"]
        assert [unquote(product["@id"]).partition("@")[2] for product in products] == digests
        assert [len(product["subcomponents"]) for product in products] == [2, 1, 1]
        assert {part["@id"] for product in products for part in product["subcomponents"]} <= urls
        assert (statement["status"], bool(statement["impact_statement"])) == ("not_affected", True)


def test_the_description_names_the_commit_the_builder_and_the_locks(files):
    description = json.loads(files["bundle.json"])
    revision = revision_of()
    assert (description["revision"], description["created"]) == (revision.commit, revision.moment)
    assert description["builder"] == {"python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    for name, sha256 in description["locks"].items():
        assert hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest() == sha256
    assert description["locks"].keys() == {"requirements.lock", "shipping/debian.lock"}


# As their projects say, read from their own pages: PyPI's and Debian's (metadata.ftp-master.debian.org/changelogs).
LICENCES = {
    "pydantic": "MIT",
    "requests": "Apache-2.0",
    "certifi": "MPL-2.0",
    "cryptography": "Apache-2.0 OR BSD-3-Clause",
    "zlib1g": "Zlib",
    "libexpat1": "MIT",
    "libssl3t64": "Apache-2.0 AND (LicenseRef-libssl3t64-Artistic OR GPL-1.0-or-later)",
    "libgcc-s1": "LicenseRef-gcc-14-base",
    "hermetic": "Apache-2.0",
}


def test_both_sboms_name_the_licence_that_every_package_declares(sboms):
    spdx, cyclonedx = (json.loads(file.read_bytes()) for file in sboms)
    declared = {package["name"]: package["licenseDeclared"] for package in packages(spdx)}

    assert {name: declared[name] for name in LICENCES} == LICENCES
    assert "NOASSERTION" not in declared.values()
    named = {component["name"]: component["licenses"][0]["expression"] for component in libraries(cyclonedx)}
    assert named == declared
    references = {
        word for expression in declared.values() for word in re.findall(r"LicenseRef-[A-Za-z0-9.-]+", expression)
    }
    texts = {
        license_info["licenseId"]: license_info["extractedText"] for license_info in spdx["hasExtractedLicensingInfos"]
    }
    assert texts.keys() == references
    assert "GNU compiler" in texts["LicenseRef-gcc-14-base"]
    assert "LGPL-2.1-or-later" in declared["libc6"].split(" AND ")


def test_helm_reads_the_packaged_chart_as_it_reads_the_folder_but_for_the_commit(tmp_path):
    package = tmp_path / f"hermetic-{__version__}.tgz"
    package.write_bytes(packaged_chart())
    for part in ("values", "readme", "crds"):
        assert shown(part, package) == shown(part, CHART)
    chart, in_the_folder = (yaml.safe_load(shown("chart", source)) for source in (package, CHART))
    added = {name: text for name, text in chart["annotations"].items() if name not in in_the_folder["annotations"]}
    assert added["org.opencontainers.image.revision"] == revision_of().commit
    assert {**chart, "annotations": in_the_folder["annotations"]} == in_the_folder
    assert {"home", "icon", "sources", "maintainers"} <= in_the_folder.keys()
    by_helm = [programs("helm")["helm"], "package", CHART, "--destination", tmp_path / "by-helm"]
    subprocess.run(by_helm, capture_output=True, check=True)
    assert names_in((tmp_path / "by-helm" / package.name).read_bytes()) == names_in(package.read_bytes())


def shown(part: str, chart: Path) -> bytes:
    return subprocess.run([programs("helm")["helm"], "show", part, chart], capture_output=True, check=True).stdout


def names_in(package: bytes) -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(package)) as archive:
        return {member.name for member in archive if member.isfile()}


def test_the_command_of_the_page_loads_image_and_chart(folder, built, registry, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    line = next(line for line in commands("Load into a registry", PAGE) if line.startswith("hermetic bundle load "))
    arguments = shlex.split(line.replace(REGISTRY, registry.host))[1:]

    ran = hermetic(
        *arguments[: arguments.index("--public-key")], "--prefix", "by-hermetic", "--plain-http", "-o", "json"
    )

    assert ran.code == 0, ran.err
    references = {pushed["kind"]: pushed["reference"] for pushed in json.loads(ran.out)["pushed"]}
    assert references["image"] == f"{registry.host}/by-hermetic/hermetic:{__version__}@{built.digest}"
    target = f"docker://{registry.host}/by-hermetic/hermetic:{__version__}"
    assert skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", target).strip() == built.digest
    assert references["chart"].startswith(f"{registry.host}/by-hermetic/charts/hermetic:{__version__}@sha256:")


def test_skopeo_pushes_the_image_under_its_digest(folder, built, registry, monkeypatch):
    monkeypatch.chdir(folder)
    arguments = command_of("Load into a registry", "skopeo copy ")
    target = arguments[-1].replace(REGISTRY, registry.host)

    skopeo("copy", "--dest-tls-verify=false", *arguments[1:-1], target)

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
    arguments = shlex.split(line.replace(REGISTRY, registry.host + "/of-the-image"))

    skopeo("copy", "--dest-tls-verify=false", *arguments[2:])

    inspected = skopeo("inspect", "--tls-verify=false", "--format", "{{.Digest}}", arguments[-1])
    assert inspected.strip() == built.digest


def test_helm_pushes_the_chart_that_was_unpacked(folder, registry, tmp_path):
    unpack, push = (command_of("Load into a registry", start) for start in ("tar ", "helm push "))
    subprocess.run(["tar", "-C", tmp_path, unpack[0], folder / unpack[1], *unpack[2:]], check=True)
    arguments = [word.replace(REGISTRY, registry.host) for word in push]
    helm = [programs("helm")["helm"], *arguments, "--plain-http"]

    done = subprocess.run(helm, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert re.search(r"Digest: sha256:[0-9a-f]{64}", done.stdout + done.stderr)
    assert {path.name for path in tmp_path.iterdir()} == {"chart", "crds", "manifests"}


def test_ctr_imports_the_image_under_the_name_by_which_pods_ask_for_it(folder, built, monkeypatch):
    if os.geteuid() != 0:
        pytest.skip("containerd needs root")
    monkeypatch.chdir(folder)
    arguments = command_of("Load onto a node", "ctr ")
    with tempfile.TemporaryDirectory(prefix="hermetic-") as directory, Containerd(Path(directory)) as containerd:
        # Unpacking needs a file system that containerd can lay layers over; the node's tests do that.
        containerd.ctr(*arguments[:-1], "--no-unpack", arguments[-1])
        names = containerd.ctr("--namespace", "k8s.io", "images", "list", "--quiet").split()

    assert f"{REGISTRY}/hermetic@{built.digest}" in names


def test_a_bundle_that_was_signed_is_verified_with_the_public_key(parts, tmp_path):
    key, public = tmp_path / "platform.key", tmp_path / "platform.pub"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True)
    subprocess.run(["openssl", "pkey", "-in", key, "-pubout", "-out", public], check=True)
    write_tar(tmp_path / NAME, bundle_files(parts, load_signer(key)))

    ran = hermetic("bundle", "verify", tmp_path / NAME, "--public-key", public)

    assert ran.code == 0, ran.err
    assert f"signed by {public}" in ran.out

"""The operator's image as an OCI layout: the same bytes from every build, nothing in it that nothing needs."""

from __future__ import annotations

import email
import gzip
import hashlib
import json
import os
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from packaging.requirements import Requirement

from hermetic.collect.probe.embedded_program import command
from hermetic.collect.probe.program.asking import QUESTIONS
from hermetic.collect.probe.targets import Targets
from shipping import debian
from shipping.components import Component
from shipping.inventory import contents_of
from shipping.layout import layout_files, write_tar
from shipping.operator_image import ENVIRONMENT, operator_image
from shipping.platforms import AMD64, ARM64, PLATFORMS, Platform, native_platform
from shipping.revision import revision_of
from shipping.root import PYTHON, UID
from shipping.wheel_parts import parts_of
from shipping.wheels import LOCK, PLACE, READS_KUBECONFIGS, REPOSITORY, locked_wheels, package_name
from shipping.wheels import PYTHON as PYTHON_VERSION
from testbed.emulation import EMULATOR, run_in_root
from testbed.errors import BuildError
from testbed.images.oci import Image
from testbed.syft import scanned
from tests.commandline import hermetic
from tests.sampled_groups import SHIPPING
from tests.scanners import scanned_by_rules

pytestmark = SHIPPING

NOT_IN_IT = {
    "apk", "apt", "apt-get", "ash", "bash", "busybox", "curl", "dash", "dpkg", "dpkg-deb", "env", "gcc", "ld", "perl",
    "pip", "pip3", "rpm", "sh", "su", "sudo", "tar", "wget", "zsh",
}  # fmt: skip
ELF_MACHINES = {AMD64: 62, ARM64: 183}
"""EM_X86_64 and EM_AARCH64 of elf.h: the 16 bits at offset 18 of an ELF file."""


@pytest.fixture(scope="module")
def archive(built, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("image") / "hermetic.tar"
    write_tar(file, layout_files(built))
    return file


@pytest.fixture(scope="module")
def layout(archive) -> Path:
    """The archive's content, as a folder that is an OCI layout."""
    folder = archive.parent / "layout"
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module", params=PLATFORMS, ids=lambda platform: platform.architecture)
def platform(request) -> Platform:
    return request.param


@pytest.fixture(scope="module")
def root(layout, platform, tmp_path_factory) -> Path:
    """The root of the image of a platform as a folder: every layer laid over the last."""
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    for descriptor in manifest_of(layout, platform)["layers"]:
        with tarfile.open(blob(layout, descriptor)) as content:
            content.extractall(folder, filter="tar")
    return folder


def blob(layout: Path, descriptor: dict) -> Path:
    return layout / "blobs" / descriptor["digest"].replace(":", "/")


def index_of(layout: Path) -> dict:
    (descriptor,) = json.loads((layout / "index.json").read_text())["manifests"]
    assert descriptor["mediaType"] == "application/vnd.oci.image.index.v1+json"
    return json.loads(blob(layout, descriptor).read_bytes())


def manifest_of(layout: Path, platform: Platform) -> dict:
    (descriptor,) = (
        entry
        for entry in index_of(layout)["manifests"]
        if entry["platform"] == {"architecture": platform.architecture, "os": "linux"}
    )
    return json.loads(blob(layout, descriptor).read_bytes())


def config_of(layout: Path, platform: Platform) -> dict:
    return json.loads(blob(layout, manifest_of(layout, platform)["config"]).read_bytes())


@pytest.mark.sampled(0)
def test_two_builds_give_the_same_bytes(archive, tmp_path):
    again = tmp_path / "again.tar"
    write_tar(again, layout_files(operator_image("hermetic", exactly=False)))

    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(archive.read_bytes()).digest()


def test_every_blob_has_the_digest_and_the_size_that_name_it(layout):
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((layout / "index.json").read_text())
    manifests = [manifest_of(layout, platform) for platform in PLATFORMS]
    parts = [part for manifest in manifests for part in (manifest["config"], *manifest["layers"])]
    named = [*index["manifests"], *index_of(layout)["manifests"], *parts]
    for descriptor in named:
        content = blob(layout, descriptor).read_bytes()
        assert "sha256:" + hashlib.sha256(content).hexdigest() == descriptor["digest"]
        assert len(content) == descriptor["size"]
    for manifest in manifests:
        config = json.loads(blob(layout, manifest["config"]).read_bytes())
        unpacked = [gzip.decompress(blob(layout, layer).read_bytes()) for layer in manifest["layers"]]
        assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(content).hexdigest() for content in unpacked]
    assert {PurePosixPath(path.name).name for path in layout.glob("blobs/sha256/*")} == {
        descriptor["digest"].removeprefix("sha256:") for descriptor in named
    }


def test_it_runs_as_a_numeric_user_that_is_not_root(layout, platform):
    config = config_of(layout, platform)

    assert config["config"]["User"] == "2000:2000"
    assert (config["architecture"], config["os"]) == (platform.architecture, "linux")


def test_the_platforms_have_the_same_hermetic_and_settings(layout):
    configs = [config_of(layout, platform)["config"] for platform in PLATFORMS]
    layers = [manifest_of(layout, platform)["layers"][-1] for platform in PLATFORMS]

    assert [entry["platform"]["architecture"] for entry in index_of(layout)["manifests"]] == ["amd64", "arm64"]
    assert configs[0] == configs[1]
    assert layers[0] == layers[1]


def elf_machine(path: Path) -> int | None:
    """The processor of an ELF file, None of another file."""
    with path.open("rb") as opened:
        header = opened.read(20)
    return int.from_bytes(header[18:20], "little") if header.startswith(b"\x7fELF") else None


def test_every_compiled_file_is_of_the_platform(root, platform):
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    machines = {path.relative_to(root).as_posix(): machine for path in files if (machine := elf_machine(path))}
    machines.pop(EMULATOR, None)
    assert len(machines) > 50
    assert {name for name, machine in machines.items() if machine != ELF_MACHINES[platform]} == set()


def test_the_loader_that_programs_name_is_in_the_image(root, platform):
    python = (root / PYTHON).read_bytes()
    assert f"/{platform.loader}\0".encode() in python
    target = (root / platform.loader).readlink()
    assert (root / str(target).lstrip("/") if target.is_absolute() else root / platform.loader).exists()


def test_it_has_no_shell_no_package_manager_and_no_program_but_python_and_hermetic(root):
    programs = [
        path
        for path in root.rglob("*")
        if (path.is_symlink() or path.is_file())
        and path.parent.name in {"bin", "sbin"}
        and PLACE not in path.as_posix()
    ]
    names = {path.relative_to(root).as_posix() for path in programs}

    assert names == {"usr/bin/python3", PYTHON, "usr/local/bin/hermetic"}
    assert NOT_IN_IT.isdisjoint(path.name for path in root.rglob("*") if path.is_file() and os.access(path, os.X_OK))


def test_no_file_has_a_privilege_of_its_own_or_belongs_to_a_user(layout, platform):
    for layer in manifest_of(layout, platform)["layers"]:
        with tarfile.open(blob(layout, layer)) as content:
            for member in content:
                assert not member.mode & 0o6000, member.name
                assert not member.mode & 0o002 or member.name == "tmp" or member.issym(), member.name
                assert (member.uid, member.gid, member.mtime) == (0, 0, 0), member.name


# Emulation of these would take a minute and more.
on_this_processor = pytest.mark.parametrize("platform", [native_platform()], indirect=True, ids=["native"])


@on_this_processor
def test_every_compiled_file_finds_its_libraries_in_the_image(root, platform):
    loader = (root / "lib" / platform.libraries / Path(platform.loader).name).resolve()
    compiled = [path for path in root.rglob("*.so*") if path.is_file() and not path.is_symlink() and path != loader]
    assert len(compiled) > 50
    library_path = ":".join(str(root / parent / platform.libraries) for parent in ("lib", "usr/lib"))
    missing = {}
    for path in [*compiled, root / PYTHON]:
        command = [loader, "--inhibit-cache", "--library-path", library_path, "--list", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        outside = [line for line in done.stdout.splitlines() if "=> /" in line and f"=> {root}/" not in line]
        if done.returncode != 0 or "not found" in done.stdout or outside:
            missing[path.relative_to(root).as_posix()] = outside or done.stdout + done.stderr
    assert missing == {}


def test_its_packages_are_those_of_the_lock(root):
    metadata = [path.parent.name for path in (root / PLACE).glob("*.dist-info/METADATA")]
    locked = [line for line in LOCK.read_text().splitlines() if line and line[0].isalnum()]

    assert len(metadata) == len(locked) + 1 - len(READS_KUBECONFIGS)
    package_names = {name.removesuffix(".dist-info").replace("_", "-").lower().rsplit("-", 1)[0] for name in metadata}
    named = {line.split("==")[0].replace("_", "-").lower() for line in locked} | {"hermetic"}
    assert package_names == named - READS_KUBECONFIGS


def test_it_has_every_package_that_a_pod_needs(root):
    """Those that are left out are what the client of Kubernetes alone needs, by the metadata of all packages."""
    wheels = {package_name(wheel): wheel for wheel in locked_wheels(native_platform())}
    direct = {requirement.name for requirement in map(Requirement, declared_dependencies())}
    needed, open_names = set[str](), direct - {"kubernetes"}
    while open_names:
        name = open_names.pop()
        needed.add(name)
        open_names |= required_by(wheels[name]) - needed
    assert wheels.keys() - needed == READS_KUBECONFIGS
    assert not any((root / PLACE / folder).exists() for folder in ("dateutil", "kubernetes", "oauthlib", "websocket"))


def declared_dependencies() -> list[str]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]


def required_by(wheel: Path) -> set[str]:
    """The packages that a wheel needs in the image, without those of its extras."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = email.message_from_string(archive.read(metadata).decode()).get_all("Requires-Dist", [])
    requirements = list(map(Requirement, lines))
    here = {"extra": "", "python_version": PYTHON_VERSION, "python_full_version": f"{PYTHON_VERSION}.0"}
    needs = [needed for needed in requirements if needed.marker is None or needed.marker.evaluate(here)]
    return {re.sub(r"[-_.]+", "-", needed.name).lower() for needed in needs}


def image_of(built, platform: Platform) -> Image:
    (image,) = (image for image in built.images if image.architecture == platform.architecture)
    return image


def components_of(built, platform: Platform) -> tuple[Component, ...]:
    """What the SBOM of a platform lists."""
    return contents_of(image_of(built, platform), revision_of(), exactly=False).components


@pytest.fixture(scope="module")
def listed(built, platform) -> set[tuple[str, str]]:
    """Name and version of every package in the SBOM that a scanner can find as a file."""
    return {(component.name, component.version) for component in components_of(built, platform)}


def test_syft_finds_the_packages_of_the_sbom_and_no_other(built, platform, tmp_path):
    """Of the image of a platform: Syft reads no index in a layout (https://github.com/anchore/syft/issues/1545)."""
    file = tmp_path / "image.tar"
    write_tar(file, layout_files(image_of(built, platform)))

    report = scanned(f"oci-archive:{file}", "--platform", f"linux/{platform.architecture}")

    assert (report["distro"]["id"], report["distro"]["versionID"]) == ("debian", debian.RELEASE_NUMBER)
    components = components_of(built, platform)
    assert {artifact["purl"] for artifact in report["artifacts"]} == {component.url for component in components}


def test_a_scanner_recognises_debian_and_finds_the_packages_of_the_sbom(root, listed):
    scan = scanned_by_rules(root)

    assert scan.release.startswith(f"{debian.RELEASE_NUMBER}.")
    packages = {(name, version) for name, (version, _) in scan.packages.items()}
    assert packages | set(scan.wheels.items()) == listed
    assert scan.packages["libssl3t64"][1] == "openssl", "advisories of Debian name the source package"
    assert (root / "etc/os-release").read_text() == (root / "usr/lib/os-release").read_text()


def test_every_file_of_a_debian_package_has_its_checksum_and_every_package_its_licence(root, platform):
    names = {package.name for package in debian.locked(platform)}
    status = root / "var/lib/dpkg/status.d"

    assert {path.name for path in status.iterdir()} == names | {f"{name}.md5sums" for name in names}
    assert all((root / "usr/share/doc" / name / "copyright").exists() for name in names)
    sums = dict(
        line.split("  ")[::-1] for name in names for line in (status / f"{name}.md5sums").read_text().splitlines()
    )
    assert {PYTHON, f"usr/lib/{platform.libraries}/libssl.so.3"} <= sums.keys()
    for name, md5 in sums.items():
        assert hashlib.md5((root / name).read_bytes(), usedforsecurity=False).hexdigest() == md5, name


def test_the_image_names_its_source_in_labels_and_annotations(layout, platform):
    manifest = manifest_of(layout, platform)
    config = config_of(layout, platform)
    revision = revision_of()

    assert manifest["annotations"] == config["config"]["Labels"] == revision.annotations()
    assert index_of(layout)["annotations"] == revision.annotations()
    assert manifest["annotations"]["org.opencontainers.image.revision"] == revision.commit
    assert config["created"] == revision.moment == manifest["annotations"]["org.opencontainers.image.created"]


def test_its_layers_are_compressed_without_a_time_and_are_at_most_35_mb(layout, platform):
    layers = manifest_of(layout, platform)["layers"]

    assert {layer["mediaType"] for layer in layers} == {"application/vnd.oci.image.layer.v1.tar+gzip"}
    assert sum(layer["size"] for layer in layers) <= 35e6
    for layer in layers:
        header = blob(layout, layer).read_bytes()[:10]
        assert header[:4] == b"\x1f\x8b\x08\x00", "no name of a file, no comment"
        assert header[4:8] == bytes(4), "no time"


def test_the_advisory_on_chfn_and_chsh_does_not_apply(root):
    """The statement of shipping/vex.py: of util-linux the image has the library for UUIDs alone."""
    sums = (root / "var/lib/dpkg/status.d/libuuid1.md5sums").read_text()
    files = [Path(line.split("  ")[1]).name for line in sums.splitlines()]
    assert [name for name in files if name != "copyright" and not name.startswith("libuuid.so.1")] == []
    assert {"chfn", "chsh"}.isdisjoint(path.name for path in root.rglob("ch*"))


def test_libraries_in_wheels_have_the_versions_that_the_sbom_names(root, platform):
    wheels = locked_wheels(platform)
    parts = {part.name: part.version for wheel in wheels for part in parts_of(wheel, package_name(wheel))}
    assert {"openssl", "libyaml"} <= parts.keys()
    (binding,) = (root / PLACE).glob("cryptography/hazmat/bindings/_rust.*so")
    assert f"OpenSSL {parts['openssl']}".encode() in binding.read_bytes()
    (yaml,) = (root / PLACE).glob("yaml/_yaml.*so")
    assert parts["libyaml"].encode() in yaml.read_bytes()
    (parser,) = (root / PLACE).glob("aiohttp/_http_parser*.so")
    assert b"llhttp__internal_execute" in parser.read_bytes() or b"llhttp_execute" in parser.read_bytes()


def test_a_wheel_whose_libraries_were_not_read_is_refused(tmp_path):
    """The parser in aiohttp has no version in it, so the version of the wheel decides."""
    wheel = tmp_path / "aiohttp-99.0-cp311-cp311-any.whl"
    with zipfile.ZipFile(wheel, "w"):
        pass
    with pytest.raises(BuildError, match=r"aiohttp 3\.14\.5, and the lock has 99\.0"):
        parts_of(wheel, "aiohttp")


def test_a_package_of_another_hash_is_refused(tmp_path, monkeypatch):
    lock = tmp_path / "debian.lock"
    (first, *_) = debian.locked(AMD64)
    lock.write_text(f"amd64 {first.name} {first.version} {'0' * 64}\n")
    monkeypatch.setattr(debian, "LOCK", lock)
    monkeypatch.setattr(debian, "cache_folder", lambda: tmp_path)
    other = tmp_path / "debian" / "other.deb"

    def fetches_another(_wanted, _folder, _architecture, _release):
        other.write_bytes(b"")
        return {first.name: other}

    monkeypatch.setattr(debian, "downloaded", fetches_another)

    with pytest.raises(BuildError, match="has not the SHA-256"):
        debian.fetched(AMD64)
    assert not other.exists()


def test_a_version_that_the_archive_has_no_more_is_refused_unless_the_present_one_will_do(tmp_path, monkeypatch):
    lock = tmp_path / "debian.lock"
    (first, *_) = debian.locked(AMD64)
    lock.write_text(f"amd64 {first.name} 0.0.1 {'0' * 64}\n")
    monkeypatch.setattr(debian, "LOCK", lock)
    monkeypatch.setattr(debian, "cache_folder", lambda: tmp_path)
    present = tmp_path / "present.deb"

    def fetches_the_present_one_alone(requirements, _folder, _architecture, _release):
        return {} if "=" in requirements[first.name] else {first.name: present}

    monkeypatch.setattr(debian, "downloaded", fetches_the_present_one_alone)

    with pytest.raises(BuildError, match="python -m shipping lock"):
        debian.fetched(AMD64)
    assert debian.fetched(AMD64, exactly=False) == [present]


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")


@needs_root
def test_the_command_starts_in_the_image_s_own_root(root, platform):
    """Under chroot, as its user: what the image lacks shows. QEMU runs the image of another processor."""
    done = run_in_root(root, platform, ["/usr/bin/python3", "-m", "hermetic", "--help"], ENVIRONMENT, UID)

    assert done.returncode == 0, done.stderr
    assert "attest" in done.stdout


@needs_root
def test_weights_are_verified_by_the_image_of_each_platform(root, platform):
    """The arguments of the init container, as hermetic/objects/weights_verifier.py gives them."""
    weights = root / "mnt/weights"
    (weights / ".hermetic").mkdir(parents=True, exist_ok=True)
    header = json.dumps({"a": {"dtype": "U8", "shape": [7], "data_offsets": [0, 7]}}).encode()
    file = weights / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"weights")
    assert hermetic("manifest", weights).code == 0
    verify = ["/usr/bin/python3", "-m", "hermetic", "verify", "/mnt/weights", "--timeout", "600"]

    intact = run_in_root(root, platform, verify, ENVIRONMENT, UID)
    file.write_bytes(len(header).to_bytes(8, "little") + header + b"changed")
    changed = run_in_root(root, platform, verify, ENVIRONMENT, UID)

    assert intact.returncode == 0, intact.stderr
    assert changed.returncode == 1, changed.stderr
    assert "model.safetensors" in changed.stdout + changed.stderr


@needs_root
def test_the_egress_probe_answers_in_the_image_of_each_platform(root, platform):
    """The command of the probe's pod, with questions about loopback alone."""
    questions = json.loads(Targets().questions("emulated", host_network=True))
    questions |= {"targets": [], "names": [], "resolvers": [], "imds": False, "limit": 1}
    environment = {
        QUESTIONS: json.dumps(questions),
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "1",
    }
    python, *arguments = command()

    done = run_in_root(root, platform, [f"/usr/bin/{python}", *arguments], {**ENVIRONMENT, **environment}, UID)

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["run"], len(answer["controls"])) == ("emulated", 2)


EVERY_MODULE = """
import importlib, pkgutil
import hermetic, azure.identity, kopf, prometheus_client
for module in pkgutil.walk_packages(hermetic.__path__, "hermetic."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all of them")
"""


@needs_root
@on_this_processor
def test_every_module_finds_what_it_imports_in_the_image(root, platform):
    done = run_in_root(root, platform, ["/usr/bin/python3", "-c", EVERY_MODULE], ENVIRONMENT, UID)

    assert (done.returncode, done.stdout) == (0, "all of them\n"), done.stderr


@needs_root
@on_this_processor
def test_the_image_says_that_it_reads_no_kubeconfig(root, platform):
    (root / "tmp/config").write_text("contexts: []\n")
    command = ["/usr/bin/python3", "-m", "hermetic", "check", "--kubeconfig", "/tmp/config"]
    done = run_in_root(root, platform, command, ENVIRONMENT, UID)

    assert done.returncode != 0
    assert "the operator's image reads no kubeconfig" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr

"""The operator's image as an OCI layout: the same bytes from every build, nothing in it that nothing needs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from shipping import debian
from shipping.layout import layout_files, write_tar
from shipping.operator_image import ENVIRONMENT, operator_image
from shipping.wheels import LOCK, PLACE
from testbed.errors import BuildError
from tests.sampled_groups import SHIPPING

pytestmark = SHIPPING

NOT_IN_IT = {
    "apk", "apt", "apt-get", "ash", "bash", "busybox", "curl", "dash", "dpkg", "dpkg-deb", "env", "gcc", "ld", "perl",
    "pip", "pip3", "rpm", "sh", "su", "sudo", "tar", "wget", "zsh",
}  # fmt: skip
LIBRARY_PATH = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")


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


@pytest.fixture(scope="module")
def root(layout, tmp_path_factory) -> Path:
    """The image's root as a folder: every layer laid over the last."""
    folder = tmp_path_factory.mktemp("root")
    folder.chmod(0o755)
    for one in manifest_of(layout)["layers"]:
        with tarfile.open(blob(layout, one)) as content:
            content.extractall(folder, filter="tar")
    return folder


def blob(layout: Path, descriptor: dict) -> Path:
    return layout / "blobs" / descriptor["digest"].replace(":", "/")


def manifest_of(layout: Path) -> dict:
    return json.loads(blob(layout, json.loads((layout / "index.json").read_text())["manifests"][0]).read_bytes())


@pytest.mark.sampled(0)
def test_two_builds_give_the_same_bytes(archive, tmp_path):
    again = tmp_path / "again.tar"
    write_tar(again, layout_files(operator_image("hermetic", exactly=False)))

    assert hashlib.sha256(again.read_bytes()).digest() == hashlib.sha256(archive.read_bytes()).digest()


def test_every_blob_has_the_digest_and_the_size_that_name_it(layout):
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((layout / "index.json").read_text())
    manifest = manifest_of(layout)
    named = [*index["manifests"], manifest["config"], *manifest["layers"]]
    for descriptor in named:
        content = blob(layout, descriptor).read_bytes()
        assert "sha256:" + hashlib.sha256(content).hexdigest() == descriptor["digest"]
        assert len(content) == descriptor["size"]
    config = json.loads(blob(layout, manifest["config"]).read_bytes())
    assert config["rootfs"]["diff_ids"] == [one["digest"] for one in manifest["layers"]]
    assert {PurePosixPath(path.name).name for path in layout.glob("blobs/sha256/*")} == {
        descriptor["digest"].removeprefix("sha256:") for descriptor in named
    }


def test_it_runs_as_a_numeric_user_that_is_not_root(layout):
    config = json.loads(blob(layout, manifest_of(layout)["config"]).read_bytes())

    assert config["config"]["User"] == "2000:2000"
    assert (config["architecture"], config["os"]) == ("amd64", "linux")


def test_it_has_no_shell_no_package_manager_and_no_program_but_python_and_hermetic(root):
    programs = [
        path
        for path in root.rglob("*")
        if (path.is_symlink() or path.is_file())
        and path.parent.name in {"bin", "sbin"}
        and PLACE not in path.as_posix()
    ]
    names = {path.relative_to(root).as_posix() for path in programs}

    assert names == {"usr/bin/python3", "usr/bin/python3.11", "usr/local/bin/hermetic"}
    assert NOT_IN_IT.isdisjoint(path.name for path in root.rglob("*") if path.is_file() and os.access(path, os.X_OK))


def test_no_file_has_a_privilege_of_its_own_or_belongs_to_a_user(layout):
    for one in manifest_of(layout)["layers"]:
        with tarfile.open(blob(layout, one)) as content:
            for member in content:
                assert not member.mode & 0o6000, member.name
                assert not member.mode & 0o002 or member.name == "tmp" or member.issym(), member.name
                assert (member.uid, member.gid, member.mtime) == (0, 0, 0), member.name


def test_every_compiled_file_finds_its_libraries_in_the_image(root):
    loader = root / "lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    compiled = [path for path in root.rglob("*.so*") if path.is_file() and not path.is_symlink() and path != loader]
    assert len(compiled) > 50
    places = ":".join(str(root / place) for place in LIBRARY_PATH)
    missing = {}
    for path in [*compiled, root / "usr/bin/python3.11"]:
        command = [loader, "--inhibit-cache", "--library-path", places, "--list", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        outside = [line for line in done.stdout.splitlines() if "=> /" in line and f"=> {root}/" not in line]
        if done.returncode != 0 or "not found" in done.stdout or outside:
            missing[path.relative_to(root).as_posix()] = outside or done.stdout + done.stderr
    assert missing == {}


def test_its_packages_are_those_of_the_lock(root):
    metadata = [path.parent.name for path in (root / PLACE).glob("*.dist-info/METADATA")]
    locked = [line for line in LOCK.read_text().splitlines() if line and line[0].isalnum()]

    assert len(metadata) == len(locked) + 1
    found = {name.removesuffix(".dist-info").replace("_", "-").lower().rsplit("-", 1)[0] for name in metadata}
    assert found == {line.split("==")[0].replace("_", "-").lower() for line in locked} | {"hermetic"}


def test_scanners_find_debian_packages_and_their_licences(root):
    names = {package.name for package in debian.locked()}

    assert {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()} == names
    assert all((root / "usr/share/doc" / name / "copyright").exists() for name in names)


def test_a_package_of_another_hash_is_refused(tmp_path, monkeypatch):
    lock = tmp_path / "debian.lock"
    (first, *_) = debian.locked()
    lock.write_text(f"{first.name} {first.version} {'0' * 64}\n")
    monkeypatch.setattr(debian, "LOCK", lock)
    monkeypatch.setattr(debian, "cache_folder", lambda: tmp_path)
    other = tmp_path / "debian" / "other.deb"

    def fetches_another(_wanted, _folder):
        other.write_bytes(b"")
        return {first.name: other}

    monkeypatch.setattr(debian, "downloaded", fetches_another)

    with pytest.raises(BuildError, match="has not the SHA-256"):
        debian.fetched()
    assert not other.exists()


def test_a_version_that_the_archive_has_no_more_is_refused_unless_the_present_one_will_do(tmp_path, monkeypatch):
    lock = tmp_path / "debian.lock"
    (first, *_) = debian.locked()
    lock.write_text(f"{first.name} 0.0.1 {'0' * 64}\n")
    monkeypatch.setattr(debian, "LOCK", lock)
    monkeypatch.setattr(debian, "cache_folder", lambda: tmp_path)
    present = tmp_path / "present.deb"

    def fetches_the_present_one_alone(wanted, _folder):
        return {} if "=" in wanted[first.name] else {first.name: present}

    monkeypatch.setattr(debian, "downloaded", fetches_the_present_one_alone)

    with pytest.raises(BuildError, match="python -m shipping lock"):
        debian.fetched()
    assert debian.fetched(exactly=False) == [present]


def test_the_command_starts_in_the_image_s_own_root(root):
    """Under chroot, as its user and without a network: what the image lacks shows."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    command = [
        shutil.which("chroot", path="/usr/sbin:/usr/bin"),
        "--userspec=2000:2000",
        root,
        "/usr/bin/python3",
        "-m",
        "hermetic",
        "--help",
    ]
    done = subprocess.run(command, env=dict(ENVIRONMENT), capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert "attest" in done.stdout


EVERY_MODULE = """
import importlib, pkgutil
import hermetic, azure.identity, kopf, kubernetes.aio, prometheus_client
for module in pkgutil.walk_packages(hermetic.__path__, "hermetic."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print("all of them")
"""


def test_every_module_finds_what_it_imports_in_the_image(root):
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin")
    command = [chroot, "--userspec=2000:2000", root, "/usr/bin/python3", "-c", EVERY_MODULE]
    done = subprocess.run(command, env=dict(ENVIRONMENT), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "all of them\n"), done.stderr

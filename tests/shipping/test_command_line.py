"""The command line as one file: it runs where there is nothing but Python, and no network."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from hermetic import __version__
from shipping.command_line import command_line, write
from shipping.revision import revision_of
from testbed.images.layers import text
from tests.sampled_groups import SHIPPING
from tests.scenarios import a_baked_model

pytestmark = SHIPPING

PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
OFFLINE = ["unshare", "--user", "--map-root-user", "--net"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the command line is by default for Python 3.11")
    file = tmp_path_factory.mktemp("cli") / "hermetic.pyz"
    command_line(file)
    return file


@pytest.fixture(scope="module")
def carried(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with nothing in it but the file."""
    folder = tmp_path_factory.mktemp("jump-box")
    shutil.copy(built, folder / "hermetic")
    return folder


def run(folder: Path, *arguments: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
    """As a user without anything installed: no packages of this machine, no network where that can be taken away."""
    away = [] if subprocess.run([*OFFLINE, "true"], capture_output=True, check=False).returncode else OFFLINE
    command = [*away, str(PYTHON), "-I", "-S", "hermetic", *arguments]
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **environ}
    return subprocess.run(
        command, cwd=folder, env=environment, input=stdin, capture_output=True, text=True, check=False
    )


def test_it_runs_offline_from_an_empty_folder(carried: Path) -> None:
    done = run(carried, "--version")
    named = f"hermetic, version {__version__}, revision {revision_of().commit}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, named, "")
    valid = run(carried, "validate", "-f", "-", stdin=yaml.safe_dump(a_baked_model()))
    assert valid.returncode == 0, valid.stderr
    assert run(carried, "explain", "HRM-API-001").returncode == 0
    assert run(carried, "rbac").returncode == 0, "its manifests are in it"


def test_what_talks_to_a_cluster_and_to_azure_is_in_it(carried: Path) -> None:
    (carried / "config").write_text("")
    unreachable = run(carried, "check", "--kubeconfig", "/no/such/file")
    assert (unreachable.returncode, unreachable.stderr.splitlines()[0][:20]) == (4, "error: HRM-NET-001: ")
    cluster = (
        "/subscriptions/"
        + "0" * 8
        + "-0000-0000-0000-"
        + "0" * 12
        + ("/resourceGroups/g/providers/Microsoft.ContainerService/managedClusters/c")
    )
    audit = run(carried, "audit", "--azure", cluster, "--retry-budget", "0", HERMETIC_ARM_TOKEN="x")
    assert audit.returncode == 4, audit.stderr
    assert "error: HRM-" in audit.stderr
    assert "Traceback" not in audit.stderr


def test_it_is_unpacked_once_where_the_user_says(carried: Path, tmp_path: Path) -> None:
    for _ in range(2):
        assert run(carried, "--version", HERMETIC_UNPACKED=str(tmp_path / "u")).returncode == 0
    (folder,) = (tmp_path / "u").iterdir()
    assert folder.name.startswith("cli-")
    (tmp_path / "file").write_text("")
    done = run(carried, "--version", HERMETIC_UNPACKED=str(tmp_path / "file"))
    assert done.returncode == 4
    assert done.stderr.splitlines()[1].startswith("fix: name a folder")


def test_the_same_files_give_the_same_bytes_and_another_python_is_refused(tmp_path: Path) -> None:
    entries = [text("packages/b.py", "b = 1\n"), text("packages/a.py", "a = 1\n")]
    write(tmp_path / "one", entries, "3.99")
    write(tmp_path / "two", entries[::-1], "3.99")
    first_digest, two = (hashlib.sha256((tmp_path / name).read_bytes()).digest() for name in ("one", "two"))
    assert first_digest == two
    with zipfile.ZipFile(tmp_path / "one") as archive:
        assert archive.namelist() == ["__main__.py", "packages/a.py", "packages/b.py"]
    done = subprocess.run([PYTHON, "-I", tmp_path / "one"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "this file is for Python 3.99 on Linux x86_64" in done.stderr


def interpreter(version: str) -> str | None:
    """A Python of this version on this machine."""
    installed = [*(Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python{version}"), f"python{version}"]
    runs = "import sys; print('%d.%d' % sys.version_info[:2])"
    for program in installed:
        with contextlib.suppress(OSError):
            done = subprocess.run([program, "-c", runs], capture_output=True, text=True, check=False)
            if done.stdout.strip() == version:
                return str(program)
    return None


@pytest.mark.sampled(0)
@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_the_file_for_another_python_runs_with_it_and_not_with_this_one(version: str, tmp_path: Path) -> None:
    """The lock has hashes of the wheels of each; pip takes no other (`--require-hashes --only-binary :all:`)."""
    command_line(tmp_path / "hermetic", version)
    refused = run(tmp_path, "--version")
    name = f"cli/hermetic-cp{sys.version_info[0]}{sys.version_info[1]}.pyz"
    assert (refused.returncode, name in refused.stderr) == (2, True)
    program = interpreter(version)
    if program is None:
        pytest.skip(f"no Python {version} here")
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    for arguments in (["--version"], ["explain", "HRM-REG-001"], ["bundle", "load", "x.tar", "--to", "a.example"]):
        command = [program, "-I", "-S", tmp_path / "hermetic", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == (2 if "load" in arguments else 0), done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.sampled(0)
def test_a_second_build_of_the_whole_file_gives_the_same_bytes(built: Path, tmp_path: Path) -> None:
    command_line(tmp_path / "again.pyz")
    assert (tmp_path / "again.pyz").read_bytes() == built.read_bytes()


def test_it_is_a_program(built: Path) -> None:
    assert os.access(built, os.X_OK)
    assert built.stat().st_size < 60e6

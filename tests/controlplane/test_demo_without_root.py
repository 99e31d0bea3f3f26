"""`make demo` without root and without Go: nodes are simulated, which it says, and it ends green."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.demo.environment import STAND_INS_SIMULATED
from testbed.errors import CannotRunError
from testbed.programs import CONTROL_PLANE_FAMILIES, cache_folder, programs

# In a user namespace of its own the account is not root, and has no more rights; the files stay readable.
AS_A_USER = ("unshare", "--user", "--map-user=1000", "--map-group=1000", "--")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A cache folder with the control plane's programs and nothing else."""
    try:
        program_paths = programs(*CONTROL_PLANE_FAMILIES)
    except CannotRunError as reason:
        pytest.skip(str(reason))
    (tmp_path / "hermetic").mkdir()
    for folder in {path.parent for path in program_paths.values()}:
        (tmp_path / "hermetic" / folder.name).symlink_to(folder)
    for image in ("debian", *(locked_image.name for locked_image in cache_folder().glob("locked-wheels-*"))):
        if (cache_folder() / image).is_dir():
            shutil.copytree(cache_folder() / image, tmp_path / "hermetic" / image, symlinks=True)
    return tmp_path


def python(
    cache: Path, *arguments: str, go: bool = True, user: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """This Python, with this cache folder."""
    path = os.environ["PATH"] if go else "/usr/sbin:/usr/bin:/sbin:/bin"
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PATH": path, "DEMO_EXIT": "1", "KUBECONFIG": "/no/such"}
    command = [*user, sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.sampled(0)
def test_it_ends_green_with_programs_that_were_built_before(cache: Path) -> None:
    if subprocess.run([*AS_A_USER, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no user namespaces")
    if shutil.which("go", path="/usr/sbin:/usr/bin:/sbin:/bin"):
        pytest.skip("Go is on the path of every program of this machine")
    listing = python(cache, "-m", "testbed", "programs", *CONTROL_PLANE_FAMILIES)
    assert listing.returncode == 0, listing.stderr

    done = python(cache, "-m", "testbed", "demo", go=False, user=AS_A_USER)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "no real node on this machine (a real node needs root)" in done.stdout
    assert all(stand_in in done.stdout for stand_in in STAND_INS_SIMULATED)
    assert "left out without a real node: the check of the installation, the chat call" in done.stdout
    green = done.stdout.split("== The NAT gateway")[1]
    last_seen = dict(re.findall(r"^ {10}(\S+) +(?:True|False|Unknown) +(\S+)", green, re.MULTILINE))
    assert last_seen.pop("registry-not-allowed") == "RegistryNotAllowed"
    assert set(last_seen.values()) == {"Serving"}
    assert len(last_seen) >= 4

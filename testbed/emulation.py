"""Programs of another processor, run by QEMU's emulation of user programs: no container engine, no kernel module.

A static QEMU is copied into the root of an image and is named before the program: binfmt_misc need not be set up.
https://www.qemu.org/docs/master/user/main.html
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from shipping.platforms import Platform, native_platform
from testbed.debian_archive import downloaded
from testbed.errors import BuildError
from testbed.programs import cache_folder, only_builder

PACKAGE = "qemu-user-static"
EMULATOR = "run/emulator"


def emulator(platform: Platform) -> Path:
    """QEMU for programs of a platform, taken once out of Debian's package (63 MB to fetch, 13 MB on disk)."""
    program = cache_folder() / PACKAGE / f"qemu-{platform.machine}-static"
    if not program.is_file():
        program.parent.mkdir(parents=True, exist_ok=True)
        with only_builder(PACKAGE):
            if not program.is_file():
                _fetch(program)
    return program


def _fetch(program: Path) -> None:
    with tempfile.TemporaryDirectory(dir=program.parent) as folder:
        package = downloaded({PACKAGE: PACKAGE}, Path(folder)).get(PACKAGE)
        if package is None:
            raise BuildError(f"apt-get finds no package {PACKAGE}: its sources must be those of Debian")
        content = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True).stdout
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            member = archive.extractfile(f"./usr/bin/{program.name}")
            assert member is not None
            partial = Path(folder) / program.name
            partial.write_bytes(member.read())
        partial.chmod(0o755)
        partial.rename(program)


def run_in_root(
    root: Path, platform: Platform, command: Sequence[str], environment: Mapping[str, str], user: int
) -> subprocess.CompletedProcess[str]:
    """What a command prints in the root of an image of this platform (needs root: chroot)."""
    prefix: list[str] = []
    if platform != native_platform():
        shutil.copy(emulator(platform), root / EMULATOR)
        prefix = [f"/{EMULATOR}"]
    chroot = shutil.which("chroot", path=f"/usr/sbin:/usr/bin:{os.defpath}")
    arguments = [chroot or "chroot", f"--userspec={user}:{user}", str(root), *prefix, *command]
    return subprocess.run(arguments, env=dict(environment), capture_output=True, text=True, check=False)

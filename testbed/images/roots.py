"""What images stand on: busybox, and the very Python that runs this process.

Taking the running interpreter (its standard library and the shared libraries it is linked to) rather than a
distribution's packages means that compiled wheels of the virtual environment fit into the image on every machine.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from testbed.images.layers import PROGRAM, SCRATCH_FOLDER, Entry, Layer, files_under, folder, layer, link, text

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
UNUSED = {
    "__pycache__", "dist-packages", "ensurepip", "idlelib", "lib2to3", "site-packages", "test", "tests", "tkinter",
    "turtledemo",
}  # fmt: skip


def busybox_path() -> Path | None:
    """A static busybox of this machine, or None."""
    found = shutil.which("busybox", path="/usr/bin:/bin")
    return Path(found) if found else None


@cache
def busybox_layer() -> Layer:
    """A shell and the usual small programs, two users (root, and 2000 as a container's own), a writable /tmp."""
    busybox = busybox_path()
    if busybox is None:
        raise FileNotFoundError("busybox is not installed (Debian: busybox-static)")
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    return layer(
        [
            *(link(f"bin/{applet}", "busybox") for applet in applets),
            Entry("bin/busybox", PROGRAM, busybox.read_bytes()),
            link("usr/bin/env", "../../bin/busybox"),
            text("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
            text("etc/group", "root:x:0:\n"),
            *(folder(name) for name in ("dev", "etc", "proc", "root", "run", "sys", "usr", "usr/bin", "var")),
            folder("tmp", SCRATCH_FOLDER),
        ]
    )


@cache
def python_layer() -> Layer:
    """/usr/local/bin/python3 with its standard library, and the shared libraries that either needs."""
    executable = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]  # noqa: SLF001 # no public name
    library = Path(sysconfig.get_path("stdlib", vars={"base": sys.base_prefix, "installed_base": sys.base_prefix}))
    return layer(
        [
            Entry(f"usr/local/bin/{PYTHON}", PROGRAM, executable.read_bytes()),
            link("usr/local/bin/python3", PYTHON),
            link("usr/bin/python3", f"../local/bin/{PYTHON}"),
            *files_under(library, f"usr/local/lib/{PYTHON}", _is_used),
            *shared_libraries([executable, *library.rglob("lib-dynload/*.so")]),
        ]
    )


def _is_used(path: Path) -> bool:
    return UNUSED.isdisjoint(path.parts) and not path.parts[0].startswith("config-") and path.suffix != ".pyc"


def shared_libraries(programs: Iterable[Path]) -> list[Entry]:
    """The libraries at the paths the loader finds them at; those from elsewhere (an rpath) go beside the C library."""
    listing = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False).stdout
    found = dict(re.findall(r"^\s+(\S+) => (/\S+)", listing, re.MULTILINE))
    loaders = set(re.findall(r"^\s+(/\S+) \(0x", listing, re.MULTILINE))
    home = Path(found["libc.so.6"]).parent
    entries = {str(loader).lstrip("/"): Path(loader) for loader in loaders}
    entries |= {f"{home}/{name}".lstrip("/"): Path(path) for name, path in found.items()}
    return [Entry(name, PROGRAM, path.read_bytes()) for name, path in entries.items()]

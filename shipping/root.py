"""The root of the operator's image: Python and the libraries it needs, out of Debian packages.

There is no shell, no package manager and no other program. What scanners of images look for is there, as in other
images without a package manager: the release of Debian (`etc/os-release`, `etc/debian_version`), and for each package
its copyright file, its control file (`var/lib/dpkg/status.d/NAME`) and the MD5 sums of its files that are in the image
(`NAME.md5sums`). By the control file a scanner knows the source package, which advisories of Debian name; by the sums
it knows that Python is Debian's.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from shipping.platforms import Platform
from testbed.debian_archive import field_of
from testbed.images.layers import FILE, PROGRAM, SCRATCH_FOLDER, Entry, Layer, folder, layer, link, text

PYTHON = "usr/bin/python3.13"
LIBRARY = "usr/lib/python3.13"
USER, UID = "hermetic", 2000
# Parts of the standard library that nothing in the image uses, some of them without the library they are linked to.
UNUSED_FOLDERS = {"curses", "dbm", "ensurepip", "idlelib", "pydoc_data", "sqlite3", "test", "tkinter"}
UNUSED_MODULES = ("_ctypes_test.", "_curses", "_dbm.", "_sqlite3.", "_test", "_xx", "readline.", "xx")
RELEASE_FILES = frozenset({"etc/debian_version", "etc/os-release", "usr/lib/os-release"})
STATUS = "var/lib/dpkg/status.d"
# Folders below the libraries: character sets, engines of OpenSSL, audit modules.
UNUSED_LIBRARIES = {"audit", "engines-3", "gconv", "ossl-modules"}


def root_layer(packages: Iterable[Path], platform: Platform) -> Layer:
    """What the packages of a platform bring of it, a user for the process and a folder to write to."""
    entries = [entry for package in packages for entry in _package_entries(package, platform)]
    return layer(
        [
            *entries,
            link("usr/bin/python3", "python3.13"),
            # The paths of the loader in ELF files; Debian has had all files below usr since release 13.
            *(link(name, f"usr/{name}") for name in sorted({"lib", platform.loader.partition("/")[0]})),
            text("etc/passwd", f"root:x:0:0:root:/:/nologin\n{USER}:x:{UID}:{UID}:{USER}:/tmp:/nologin\n"),
            text("etc/group", f"root:x:0:\n{USER}:x:{UID}:\n"),
            text("etc/nsswitch.conf", "hosts: files dns\n"),
            *(folder(name) for name in ("dev", "proc", "run", "sys")),
            folder("tmp", SCRATCH_FOLDER),
        ]
    )


def _package_entries(package: Path, platform: Platform) -> list[Entry]:
    entries = list(_wanted_files(package, platform))
    name = field_of(package, "Package")
    control = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout
    sums = [
        f"{hashlib.md5(entry.content, usedforsecurity=False).hexdigest()}  {entry.path}\n"
        for entry in entries
        if entry.content is not None
    ]
    return [*entries, text(f"{STATUS}/{name}", control), text(f"{STATUS}/{name}.md5sums", "".join(sorted(sums)))]


def _wanted_files(package: Path, platform: Platform) -> Iterator[Entry]:
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if not _is_wanted(path, platform) and not _is_link_to_copyright(member):
                continue
            if member.issym():
                yield link(str(path), member.linkname)
            elif member.isfile():
                read = archive.extractfile(member)
                assert read is not None
                yield Entry(str(path), PROGRAM if member.mode & 0o100 else FILE, read.read())


def _is_wanted(path: PurePosixPath, platform: Platform) -> bool:
    if str(path) in {PYTHON, f"usr/{platform.loader}", *RELEASE_FILES}:
        return True
    if path.is_relative_to(LIBRARY) and str(path) != LIBRARY:
        inside = path.relative_to(LIBRARY).parts
        unused_module = inside[0] == "lib-dynload" and inside[-1].startswith(UNUSED_MODULES)
        return UNUSED_FOLDERS.isdisjoint(inside) and not unused_module
    if path.is_relative_to(f"usr/lib/{platform.libraries}"):
        return UNUSED_LIBRARIES.isdisjoint(path.parts) and ".so" in path.name
    return path.is_relative_to("usr/share/doc") and path.name == "copyright"


def _is_link_to_copyright(member: tarfile.TarInfo) -> bool:
    """Packages of one source share a folder of documents."""
    return member.issym() and PurePosixPath(member.name).parent == PurePosixPath("usr/share/doc")

"""The real skopeo, of Debian, unpacked into the cache folder (15 MB)."""

from __future__ import annotations

import os
import subprocess

from testbed.debian_archive import unpacked

# The libraries that a machine without GnuPG's tools lacks.
PACKAGES = ("skopeo", "libgpgme11", "libassuan0")


def skopeo(verb: str, *arguments: str) -> str:
    """What skopeo prints; raises subprocess.CalledProcessError where it fails. It reads no policy file."""
    root = unpacked(PACKAGES)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu")}
    command = [str(root / "usr/bin/skopeo"), "--insecure-policy", verb, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

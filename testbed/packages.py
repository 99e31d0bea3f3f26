"""`python -m testbed packages`: the Debian packages that a real node and the tests in a browser need, and installing
those that are missing.

Everything else of the test bed is built from pinned sources; runc, the CNI plug-ins and nftables come with the system.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from testbed.console import say

SEARCH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
CNI_PLUGINS = Path("/usr/lib/cni")

# what must be there -> the package that brings it
PROGRAMS = {
    "runc": "runc",
    "nft": "nftables",
    "busybox": "busybox-static",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "mount": "mount",
}
PLUGINS = ("bridge", "host-local", "loopback", "portmap")

# any of them will do; the first is the smallest, and the package of its name brings it
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def missing_packages() -> list[str]:
    """Packages of a real node of which a needed part is not on this machine, each once."""
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program, path=SEARCH)]
    missing += ["containernetworking-plugins" for plugin in PLUGINS if not (CNI_PLUGINS / plugin).is_file()]
    return list(dict.fromkeys(missing))


def browser() -> str | None:
    """The path of a Chromium, where one is installed."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def what_to_install(packages: list[str]) -> str:
    return f"not installed: {' '.join(packages)} (as root: apt-get install {' '.join(packages)})"


def main(arguments: list[str]) -> int:
    """Exit 0 when everything is there at the end, 1 when not: the message says what to install."""
    argparse.ArgumentParser(prog="python -m testbed packages", description=__doc__).parse_args(arguments)
    packages = _missing()
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {' '.join(packages)}")
        install(packages)
        packages = _missing()
    if packages:
        say(f"tests on a real node or in a browser cannot run: {what_to_install(packages)}")
        return 1
    return 0


def _missing() -> list[str]:
    return missing_packages() + ([] if browser() else [BROWSERS[0]])


def install(packages: list[str]) -> None:
    """Asks apt-get once with the lists that are there, once more with fresh ones."""
    command = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", *packages]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for prepare in ([], ["apt-get", "update", "--quiet"]):
        if prepare:
            subprocess.run(prepare, env=environment, stdout=sys.stderr, check=False)
        if subprocess.run(command, env=environment, stdout=sys.stderr, check=False).returncode == 0:
            return

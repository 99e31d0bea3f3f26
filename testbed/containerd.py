"""One containerd that keeps images and runs nothing: for what `ctr images import` makes of an archive (root)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Self

from testbed.processes import Component, wait_until
from testbed.programs import programs

WITHOUT_PODS = '["io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri"]'


class Containerd:
    """A containerd with all that it keeps in one folder, whose path must be short: it holds a socket."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "socket"
        settings = folder / "containerd.toml"
        settings.write_text(
            f'version = 3\nroot = "{folder}/root"\nstate = "{folder}/state"\ndisabled_plugins = {WITHOUT_PODS}\n'
            f'[grpc]\naddress = "{self._socket}"\n[ttrpc]\naddress = "{folder}/ttrpc"\n'
        )
        command: list[str | Path] = [programs("containerd")["containerd"], "--config", settings]
        self._component = Component("containerd", command, folder / "containerd.log")

    def __enter__(self) -> Self:
        self._component.start()
        wait_until("containerd", lambda: self._run("version").returncode == 0, [self._component])
        return self

    def __exit__(self, *_: object) -> None:
        self._component.stop()

    def ctr(self, *arguments: str) -> str:
        """What ctr prints; raises subprocess.CalledProcessError where it fails."""
        done = self._run(*arguments)
        done.check_returncode()
        return done.stdout

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(programs("containerd")["ctr"]), "--address", str(self._socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

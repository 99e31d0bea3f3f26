"""The CRDs of OpenReports (openreports.io), as its project publishes them: files of a pinned Go module.

The module is downloaded by the Go command once and checked against go.sum; nothing of it is built or run.
"""

from __future__ import annotations

from typing import Any

import yaml

from testbed.programs import module_folder

MODULE = "github.com/openreports/reports-api"
KINDS = ("clusterreports", "reports")


def definitions() -> list[dict[str, Any]]:
    """The CustomResourceDefinitions of ClusterReport and Report. Raises CannotRunError without Go."""
    folder = module_folder(MODULE, "openreports") / "config" / "crd"
    return [yaml.safe_load((folder / f"openreports.io_{kind}.yaml").read_text()) for kind in KINDS]

"""The CRD of Kyverno's policies for images, as its project publishes it: a file of a pinned Go module.

The module is downloaded by the Go command once and checked against go.sum; nothing of it is built or run.
"""

from __future__ import annotations

from typing import Any

import yaml

from testbed.programs import module_folder

MODULE = "github.com/kyverno/api"
NAME = "imagevalidatingpolicies.policies.kyverno.io"


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition of ImageValidatingPolicy. Raises CannotRunError without Go."""
    file = module_folder(MODULE, "kyverno-api") / "config/crds/policies.kyverno.io_imagevalidatingpolicies.yaml"
    manifest: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return manifest

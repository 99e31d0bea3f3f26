"""The CRDs of policies for images, as the projects of Kyverno and of Ratify publish them: files of pinned Go modules.

The modules are downloaded by the Go command once and checked against go.sum; nothing of them is built or run here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from testbed.programs import IMAGE_POLICIES, module_folder

KYVERNO = "github.com/kyverno/api", "config/crds/policies.kyverno.io_imagevalidatingpolicies.yaml"
RATIFY = (
    "github.com/ratify-project/ratify",
    "charts/ratify/crds/keymanagementprovider-customresourcedefinition.yaml",
    "charts/ratify/crds/verifier-customresourcedefinition.yaml",
)


def definitions() -> Iterator[dict[str, Any]]:
    """The CustomResourceDefinition of each kind in manifests/image-policies. Raises CannotRunError without Go."""
    for module, *names in (KYVERNO, RATIFY):
        folder = module_folder(module, IMAGE_POLICIES.name)
        yield from (yaml.safe_load(Path(folder / name).read_text(encoding="utf-8")) for name in names)

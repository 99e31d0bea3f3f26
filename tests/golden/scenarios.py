"""What is kept as reviewed text: the name of each file and the deployment that it shows."""

from __future__ import annotations

from pathlib import Path

import yaml

from hermetic.objects.names import digest
from tests.renderings import RENDERINGS, behind_a_gateway
from tests.scenarios import Manifest
from tests.snapshots import rendered

FOLDER = Path(__file__).resolve().parent
TEMPLATES = FOLDER / "pod-templates.yaml"
SCENARIOS = {"gateway": behind_a_gateway()} | {
    name: RENDERINGS[name]
    for name in (
        "share",
        "everything-said",
        "tls-and-api-key",
        "nim-model-store",
        "nim-profile",
        "sglang",
        "sglang-guarded",
        "baked-image",
        "image-volume",
        "mig-slice",
        "amd",
        "nfs",
        "compile-caches",
        "nim-of-a-group",
        "autoscaled",
        "adapters",
        "checked-gpus",
        "offloaded-cache",
    )
}


def file_of(scenario: str) -> Path:
    return FOLDER / f"{scenario}.yaml"


def as_text(manifest: Manifest) -> str:
    """Every child in the order in which it is applied, as the YAML that a reviewer reads."""
    children = rendered(manifest).values()
    return yaml.safe_dump_all(children, sort_keys=False, width=120, explicit_start=True)


def template_digests() -> dict[str, str]:
    """The digest of every scenario's pod template, to the last label: Kubernetes replaces pods for any difference."""
    return {name: digest(rendered(manifest)["Deployment"]["spec"]["template"]) for name, manifest in RENDERINGS.items()}

"""Fake nodes: kwok simulates the kubelet of every node that carries the annotation `kwok.x-k8s.io/node: fake`."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from pathlib import Path

import yaml

from testbed.failure_modes import failure_stages, unless_a_failure_mode
from testbed.programs import PROGRAMS, cache_folder, module_folder

MODULE = "sigs.k8s.io/kwok"
FAKE = {"kwok.x-k8s.io/node": "fake"}

# kwok built as a module has no stages of its own; these come from its module folder
STOCK_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)

FLAGS = (
    "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
    "--cidr=10.0.0.0/24",
    "--node-ip=10.0.0.1",
    "--node-lease-duration-seconds=40",
)


def write_stages(path: Path) -> Path:
    """Writes kwok's configuration: the stock stages of nodes and pods, and those of our failure modes."""
    stock = stock_stages()
    quiet = [unless_a_failure_mode(yaml.safe_load((stock / name).read_text())) for name in STOCK_STAGES]
    path.write_text(yaml.safe_dump_all([*quiet, *failure_stages()], sort_keys=False, width=1000))
    return path


def stock_stages() -> Path:
    """The stages of kwok's module, kept beside the built programs: Go is needed only until they are."""
    sources = "\0".join(STOCK_STAGES).encode() + (PROGRAMS / "go.sum").read_bytes()
    pinned = hashlib.sha256(sources).hexdigest()[:16]
    folder = cache_folder() / f"kwok-stages-{pinned}"
    if not folder.is_dir():
        cache_folder().mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".kwok-stages-", dir=cache_folder()))
        for name in STOCK_STAGES:
            (partial / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(module_folder(MODULE) / "kustomize" / "stage" / name, partial / name)
        partial.chmod(0o755)  # as the folders of the programs: a cache may be shared
        try:
            partial.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(partial)
    return folder

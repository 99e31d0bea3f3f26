"""What the garbage collector of Kubernetes does with objects whose owner is gone, from the log of its process.

Deleting them is kube-controller-manager's work, not the operator's. It repeats a failed attempt after a pause that
doubles from 5 ms to 1,000 s (client-go, `workqueue.DefaultTypedControllerRateLimiter`, used by graph_builder.go), for
each object by itself and however healthy the API server is meanwhile. So an object whose owner went during an outage
remains for up to as long again as attempts have failed, and for 1,000 s at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from testbed.api import Api
from testbed.controlplane import ControlPlane
from tests.controlplane.end_state import COLLECTIONS
from tests.scenarios import Manifest

LONGEST_PAUSE_SECONDS = 1000.0
# Every decision of the garbage collector; the rest of the process logs as it does by default.
LOG_FLAGS = ("--vmodule=garbagecollector=5,graph_builder=5",)
LINES = 12
BEGUN = '"Processing item"'
FAILED = ("error syncing item", "item hasn't been observed via informer yet")
NODE = re.compile(r"}, dependentsLock.*}}: ")  # of the node that an error prints whole


def log_of(plane: ControlPlane) -> Path:
    """The log of the process that the garbage collector is part of."""
    (log,) = (component.log for component in plane.components if component.name == "kube-controller-manager")
    return log


def ownerless(api: Api, namespace: str) -> Iterator[tuple[str, Manifest]]:
    """(collection/name, object) of every object whose owner, by uid, is not in the namespace."""
    lists = {path.rsplit("/", 1)[-1]: api.get(path.format(namespace))["items"] for path in COLLECTIONS}
    living = {manifest["metadata"]["uid"] for items in lists.values() for manifest in items}
    for collection, items in lists.items():
        for manifest in items:
            owners = _owners(manifest)
            if owners and not living.intersection(owners):
                yield f"{collection}/{manifest['metadata']['name']}", manifest


def is_backing_off(log: Path, ownerless: Sequence[Manifest]) -> bool:
    """Whether the last attempt failed for each of these objects (at least one) or its owner: it will be repeated."""
    lines = [line for line in _lines(log) if "garbagecollector.go:" in line and BEGUN not in line]
    return bool(ownerless) and all(_failed_last(lines, orphan) for orphan in ownerless)


def history(log: Path, ownerless: Sequence[tuple[str, Manifest]]) -> Iterator[str]:
    """When each of these objects was made, its last lines in the log, and those of its owner."""
    lines = _lines(log)
    for name, manifest in ownerless:
        created, owners = manifest["metadata"]["creationTimestamp"], _owners(manifest)
        yield f"{name} of {created}, uid {manifest['metadata']['uid']}, has an owner that is gone: {', '.join(owners)}"
        about = [line for line in lines if _is_about(line, manifest)]
        yield from (f"    {NODE.sub('}: ', line)}" for line in about[-LINES:] or ["no line about it"])


def _failed_last(lines: Sequence[str], manifest: Manifest) -> bool:
    last = next((line for line in reversed(lines) if _is_about(line, manifest)), "")
    return any(failure in last for failure in FAILED)


def _is_about(line: str, manifest: Manifest) -> bool:
    return any(uid in line for uid in (manifest["metadata"]["uid"], *_owners(manifest)))


def _owners(manifest: Manifest) -> list[str]:
    return [owner["uid"] for owner in manifest["metadata"].get("ownerReferences") or ()]


def _lines(log: Path) -> list[str]:
    return log.read_text(errors="replace").splitlines()

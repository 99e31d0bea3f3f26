"""What may and may not change once a deployment is there: only the API server sees both sides of a change."""

from __future__ import annotations

from dataclasses import dataclass

from tests.corpus.manifests import (
    ABSENT,
    DIGEST,
    NIM_IMAGE,
    Manifest,
    changed,
    vllm_on_azure_files,
    vllm_with_everything_said,
)
from tests.corpus.refused_groups import of_nodes


@dataclass(frozen=True)
class Update:
    """A change from one valid deployment to another; `path` and `says` are empty where it is allowed."""

    name: str
    before: Manifest
    after: Manifest
    path: str = ""
    says: str = ""
    rows: tuple[int, ...] = ()


def _update(name: str, changes: dict[str, object], path: str = "", says: str = "") -> Update:
    before = vllm_on_azure_files()
    return Update(name, before, changed(before, changes), path, says, rows=(5,))


FORBIDDEN_UPDATES = (
    _update(
        "vLLM to NIM",
        {"spec.engine": {"nim": {"image": NIM_IMAGE, "line": "2.1"}}},
        path="spec.engine",
        says="from `vllm` to `nim`: the choice among `vllm`, `nim`, `sglang` is immutable; delete the object and "
        "create it anew",
    ),
    _update(
        "Azure Files to a claim",
        {"spec.weights": {"persistentVolumeClaim": {"claimName": "a"}}},
        path="spec.weights",
        says="from `azureFiles` to `persistentVolumeClaim`: the choice among",
    ),
    _update(
        "served name",
        {"spec.model.name": "other"},
        path="spec.model.name",
        says="'meta/llama-3.1-8b-instruct' to 'other': `name` is immutable; delete the object and create it anew",
    ),
    *(
        Update(name, before, after, "spec.accelerator.nodes", "must not change between one and several")
        for name, before, after in (
            ("one node to two", vllm_on_azure_files(), of_nodes(2)),
            ("two nodes to one", of_nodes(2), vllm_on_azure_files()),
        )
    ),
)
ALLOWED_UPDATES = (
    Update("two nodes to three", of_nodes(2), of_nodes(3)),
    _update("image and version", {"spec.engine.vllm": {"image": f"r.io/vllm@{DIGEST}", "version": "0.33.0"}}),
    _update("share and folder", {"spec.weights.azureFiles": {"account": "other", "share": "other-share"}}),
    _update("aliases", {"spec.model.aliases": ["llama"]}),
    _update("replicas", {"spec.replicas": 0}),
    _update("endpoint away", {"spec.endpoint": ABSENT}),
    _update("GPUs", {"spec.accelerator.count": 2}),
    Update(
        "everything said, to the shortest",
        vllm_with_everything_said(),
        changed(
            vllm_with_everything_said(),
            {"spec.replicas": ABSENT, "spec.resources": ABSENT, "spec.endpoint": ABSENT, "spec.isolation": ABSENT},
        ),
    ),
)

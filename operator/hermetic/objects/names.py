"""Names, labels and annotations of children: the only place that defines them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from hermetic.kinds import MODEL_DEPLOYMENT

MODEL_LABEL = "hermetic.dev/modeldeployment"
NAMESPACE_LABEL = "hermetic.dev/namespace"
OWNER_UID_LABEL = "hermetic.dev/owner-uid"
GROUP_LABEL = "hermetic.dev/group"
MANAGED_BY = ("app.kubernetes.io/managed-by", "hermetic")
INTENT_ANNOTATION = "hermetic.dev/intent"
TEMPLATE_ANNOTATION = "hermetic.dev/pod-template"
TEMPLATE_LABEL = TEMPLATE_ANNOTATION
MEMORY_ANNOTATION = "hermetic.dev/group-memory"
# Labels by which a pod is watched, selected by Service and NetworkPolicy, and compared with its template.
SELECTED_BY = (MANAGED_BY[0], MODEL_LABEL, TEMPLATE_LABEL)

# The label selector of every watch and list of children.
CHILD_SELECTOR = "=".join(MANAGED_BY)


@dataclass(frozen=True, slots=True)
class Owner:
    """The identity of one ModelDeployment. `uid` distinguishes it from earlier and later ones of the same name."""

    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> tuple[str, str]:
        return (self.namespace, self.name)


def selector(owner: Owner) -> dict[str, str]:
    """The labels by which the pods of one deployment are found; they never change."""
    return {MODEL_LABEL: owner.name}


def labels(owner: Owner, engine: str) -> dict[str, str]:
    """The labels of every child and pod. All follow from the spec and the owner's identity."""
    return {
        "app.kubernetes.io/name": engine.lower(),
        "app.kubernetes.io/instance": owner.name,
        "app.kubernetes.io/component": "model-server",
        MANAGED_BY[0]: MANAGED_BY[1],
        **selector(owner),
    }


def metadata(owner: Owner, engine: str, name: str = "") -> dict[str, Any]:
    """Metadata of a namespaced child: owned, so that the garbage collector removes it with the ModelDeployment."""
    return {
        "name": name or owner.name,
        "namespace": owner.namespace,
        "labels": labels(owner, engine),
        "ownerReferences": [
            {
                "apiVersion": MODEL_DEPLOYMENT.api_version,
                "kind": MODEL_DEPLOYMENT.kind,
                "name": owner.name,
                "uid": owner.uid,
                "controller": True,
            }
        ],
    }


def is_controlled_by(live: Mapping[str, Any], owner: Owner) -> bool:
    """Whether the controller of a namespaced object is this ModelDeployment, by uid."""
    references = live["metadata"].get("ownerReferences") or ()
    return any(reference.get("controller") and reference.get("uid") == owner.uid for reference in references)


def template_mark(workload: Mapping[str, Any]) -> str:
    """The digest of the template that a workload was applied with; "" where others removed it."""
    return str((workload["metadata"].get("annotations") or {}).get(TEMPLATE_ANNOTATION, ""))


def template_of(labelled: Mapping[str, Any]) -> str:
    """The template mark of a pod (or of a template itself); "" without one."""
    return str((labelled.get("metadata", {}).get("labels") or {}).get(TEMPLATE_LABEL, ""))


def volume_names(owner: Owner, source: dict[str, Any]) -> tuple[str, str]:
    """(PersistentVolume, claim) for this source and this very object.

    A volume cannot be changed, and a released one cannot be bound again: another source, or another object of the same
    name, gets names of its own.
    """
    suffix = digest({"uid": owner.uid, "source": source})[:10]
    return (f"hermetic-{owner.namespace}-{owner.name}-{suffix}", f"{owner.name}-weights-{suffix}")


def is_claim_of(name: str, model: str) -> bool:
    """Whether a claim of this name is one for the weights of a model of that name."""
    return name.startswith(f"{model}-weights-")


def digest(value: Any) -> str:
    """SHA-256 of a JSON value, independent of the order of keys, in hex.

    It is that of the text of the standard library, for objects of earlier versions carry such digests. orjson writes
    the same text, a float excepted: what is rendered has none. Raises UnicodeEncodeError for a lone surrogate.
    """
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_SUBCLASS)
    except orjson.JSONEncodeError:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return hashlib.sha256(text).hexdigest()


def with_intent(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with its own digest in an annotation: dropping a field from it changes the digest."""
    meta = manifest["metadata"]
    annotations = {**meta.get("annotations", {}), INTENT_ANNOTATION: digest(manifest)[:16]}
    return {**manifest, "metadata": {**meta, "annotations": annotations}}

"""Identity and owner of an object: by ownerReferences and labels; of a pod also by fields that cannot change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermetic.kinds import BY_KIND, HTTP_ROUTE, MODEL_DEPLOYMENT, PERSISTENT_VOLUME, POD, UNLABELLED_POD, Kind
from hermetic.objects.children import CHILDREN
from hermetic.objects.http_route import MOST_MEMBERS, is_of_group, members_of
from hermetic.objects.names import MANAGED_BY, MODEL_LABEL, NAMESPACE_LABEL
from hermetic.objects.pod import ENGINE

Key = tuple[str, str]  # (namespace, name) of a ModelDeployment
Name = tuple[str, str]  # (namespace or "", name) of any object
About = tuple[str, str, str]  # (uid, namespace, name) of what an Event is about
Manifest = Mapping[str, Any]

CHILD_KINDS = frozenset(CHILDREN)
PODS = (POD, UNLABELLED_POD)
DEFAULT_ACCOUNT = "default"


def other_part(kind: Kind) -> Kind:
    """Of the two parts in which pods are watched (labelled, unlabelled), the other one."""
    (other,) = (part for part in PODS if part is not kind)
    return other


def about_of(metadata: Mapping[str, Any]) -> About:
    """How an Event refers to the object with this metadata."""
    return (metadata["uid"], metadata.get("namespace") or "", metadata["name"])


def name_of(metadata: Mapping[str, Any]) -> Name:
    """Namespace and name."""
    return (metadata.get("namespace") or "", metadata["name"])


def kind_of(manifest: Manifest) -> Kind:
    """The kind; UNLABELLED_POD for a pod without our label, which another watch delivers."""
    labels = manifest["metadata"].get("labels") or {}
    if manifest["kind"] == POD.kind and labels.get(MANAGED_BY[0]) != MANAGED_BY[1]:
        return UNLABELLED_POD
    return BY_KIND[manifest["kind"]]


def owners_of(kind: Kind, manifest: Manifest) -> tuple[Key, ...]:
    """The models that own it: for a pod, the one of its service account and the one that its label names.

    The route of a group is owned by all members.
    """
    metadata = manifest["metadata"]
    if kind is HTTP_ROUTE and is_of_group(metadata["name"]):
        return tuple((metadata["namespace"], name) for name, _ in members_of(manifest)[:MOST_MEMBERS])
    labelled = _owner(kind, manifest)
    born = _born_of(manifest) if kind in PODS else None
    return tuple(dict.fromkeys(key for key in (born, labelled) if key is not None))


def _born_of(pod: Manifest) -> Key | None:
    """The model that a pod was made for, by fields that never change in a pod: its account and our container."""
    spec = pod.get("spec") or {}
    account = str(spec.get("serviceAccountName") or DEFAULT_ACCOUNT)
    ours = any(container.get("name") == ENGINE for container in spec.get("containers") or ())
    return (pod["metadata"].get("namespace") or "", account) if ours and account != DEFAULT_ACCOUNT else None


def _owner(kind: Kind, manifest: Manifest) -> Key | None:
    """The owner: the controller in ownerReferences, else (volumes, pods, objects of others) what the labels name."""
    metadata = manifest["metadata"]
    labels = metadata.get("labels") or {}
    if kind is MODEL_DEPLOYMENT:
        return name_of(metadata)
    if kind.kind not in CHILD_KINDS and kind not in PODS:
        return None
    for reference in metadata.get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == MODEL_DEPLOYMENT.kind:
            return (metadata["namespace"], reference["name"])
    if MODEL_LABEL not in labels:
        return None
    namespace = labels.get(NAMESPACE_LABEL, "") if kind is PERSISTENT_VOLUME else metadata.get("namespace", "")
    return (namespace, labels[MODEL_LABEL])

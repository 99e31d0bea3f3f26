"""What every Kubernetes object has, and how one is named in a finding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from hermetic.api.field_managers import Place, last_writer, record
from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.questions import Body, Source
from hermetic.audit.estate.resource import Part, Resource
from hermetic.errors import FactDamaged

EVERYWHERE = ""
"""The scope of a list across all namespaces; "inference" is one namespace, "kube-system/coredns" one object of it."""

# Annotations can hold whole manifests with what people typed into them: only these are ever kept.
ANNOTATIONS_READ = (
    "service.beta.kubernetes.io/",
    "kubernetes.azure.com/",
    "kubernetes.io/ingress.class",
    "service.cilium.io/",
    "io.cilium/global-service",
    "appgw.ingress.kubernetes.io/",
)


class Trimmed(Part):
    """A part of which less is kept than its fields: what people typed into it may be a secret, or change for ever."""

    @classmethod
    def trimmed(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """What remains of an object that already holds nothing but the fields of this model."""
        raise NotImplementedError


class OwnerReference(Part):
    """Who made the object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class ManagedFields(Part):
    """Who wrote some fields, and when. Of which fields, only those are kept that a finding may blame."""

    manager: str | None = None
    operation: str | None = None
    time: str | None = None
    subresource: str | None = None
    fields_v1: FreeMap[Any] | None = None


class Metadata(Trimmed):
    """Name, labels, the annotations that a check reads, and of all who wrote the object the one to ask."""

    name: str = ""
    namespace: str = ""
    labels: FreeMap[str] | None = None
    annotations: FreeMap[str] | None = None
    owner_references: list[OwnerReference] = []
    managed_fields: list[ManagedFields] | None = None

    @classmethod
    def trimmed(cls, kept: dict[str, Any]) -> dict[str, Any]:
        """Without annotations that no check reads, and with no more of who wrote it than a finding may name."""
        if "managedFields" in kept:
            last = record(kept["managedFields"])
            rest = {key: value for key, value in kept.items() if key != "managedFields"}
            kept = {**rest, "managedFields": last} if last else rest
        annotations = kept.get("annotations")
        if not isinstance(annotations, Mapping):
            return kept
        read = {key: value for key, value in annotations.items() if str(key).startswith(ANNOTATIONS_READ)}
        return {**kept, "annotations": read}

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages it; None where nobody does."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class KubernetesObject(Resource):
    """One object of the API server. `TYPE` is group/version/plural without an empty group: "apps/v1/daemonsets".

    Its `id` is the reference that findings bear and exceptions match: "apps/v1/DaemonSet kube-system/cilium", and for
    objects without a namespace "v1/Node aks-gpu-0".
    """

    SOURCE: ClassVar[Source] = "kube"
    WRAPPED: ClassVar[bool] = False
    KIND: ClassVar[str]
    NAMESPACED: ClassVar[bool] = True
    ALSO_SERVED_AS: ClassVar[tuple[str, ...]] = ()
    """Other versions of the kind in which the fields that are read are the same, the newest first."""

    metadata: Metadata = Metadata()

    @classmethod
    def read(cls, body: Body) -> Self:
        """The typed fact of an answer, named by its reference."""
        value = {key: field for key, field in body.value.items() if key not in {"id", "name"}}
        return super().read(Body({**value, "id": reference(cls, body.value)}, body.evidence))

    @classmethod
    def tells(cls, kept: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Whether what is kept of an object can matter to a check; what cannot is forgotten."""
        return True

    @property
    def namespace(self) -> str:
        """Its namespace; "" for what has none."""
        return self.metadata.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels as written."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations that were kept, as written."""
        return self.metadata.annotations or {}

    def writer(self, *places: Place) -> str:
        """Who wrote the first of these places, or else the object, last, in one bounded line; "" where not known."""
        try:
            entries = self.metadata.managed_fields or ()
            return last_writer([_as_written(one) for one in entries], *places)
        except FactDamaged:
            return ""


def _as_written(one: ManagedFields) -> dict[str, Any]:
    named = one.model_dump(exclude_none=True, exclude={"fields_v1"})
    return named if one.fields_v1 is None else {**named, "fieldsV1": one.fields_v1}


def reference(kind: type[KubernetesObject], manifest: Mapping[str, Any]) -> str:
    """ "v1/Service inference/llama" of a manifest."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return reference_to(kind, str(named.get("namespace") or ""), str(named.get("name") or "(no name)"))


def reference_to(kind: type[KubernetesObject], namespace: str, name: str) -> str:
    """ "v1/Namespace inference" of a name."""
    return f"{kind.TYPE.rpartition('/')[0]}/{kind.KIND} {namespace + '/' if namespace else ''}{name}"

"""The common fields of all Kubernetes objects, and their references in findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeVar

from hermetic.api.field_managers import Place, last_writer, record
from hermetic.audit.estate.arm_fields import FreeMap
from hermetic.audit.estate.kubernetes.kept_annotations import kept as kept_annotations
from hermetic.audit.estate.questions import Body, Source
from hermetic.audit.estate.resource import Part, Resource
from hermetic.errors import FactDamaged

EVERYWHERE = ""
"""The scope of a list across all namespaces; "inference" is one namespace, "kube-system/coredns" one object of it."""


class Trimmed(Part):
    """A part that keeps less than its declared fields: user input may be secret, and status changes constantly."""

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Reduce an object that already has declared fields only."""
        raise NotImplementedError


class WithUnreadFields(Part):
    """A part that keeps the names of the fields that the audit neither reads nor knows: they may change what it does.

    An API server prunes what its definition of the kind does not have: such a field means something to the engine.
    """

    HARMLESS: ClassVar[frozenset[str]] = frozenset()
    """Fields that need not be read: they describe, are about ingress, or can only restrict."""

    unread_fields: list[str] | None = None

    @classmethod
    def marked(cls, fields: dict[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of an object, with the names of its unread fields."""
        unread = sorted(str(key) for key in value.keys() - fields.keys() - cls.HARMLESS if value[key] is not None)
        return {**fields, "unreadFields": unread} if unread else fields


def unread_fields(part: Part) -> Iterator[str]:
    """The unread fields of a part and of all parts in it."""
    if isinstance(part, WithUnreadFields):
        yield from part.unread_fields or ()
    for value in vars(part).values():
        for item in value if isinstance(value, list) else (value,):
            if isinstance(item, Part):
                yield from unread_fields(item)


class OwnerReference(Part):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class ManagedFields(Part):
    """A field manager, the time, and those of its fields that a finding may blame."""

    manager: str | None = None
    operation: str | None = None
    time: str | None = None
    subresource: str | None = None
    fields_v1: FreeMap[Any] | None = None


class Metadata(Trimmed):
    """Name, labels, the annotations that a check reads, and the field managers that a finding may name."""

    name: str = ""
    namespace: str = ""
    labels: FreeMap[str] | None = None
    annotations: FreeMap[str] | None = None
    owner_references: list[OwnerReference] = []
    managed_fields: list[ManagedFields] | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop annotations that no check reads, and field managers that no finding may name."""
        if "managedFields" in fields:
            last = record(fields["managedFields"])
            other_fields = {key: value for key, value in fields.items() if key != "managedFields"}
            fields = {**other_fields, "managedFields": last} if last else other_fields
        annotations = fields.get("annotations")
        if not isinstance(annotations, Mapping):
            return fields
        return {**fields, "annotations": kept_annotations(annotations)}

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages it; None without one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class KubernetesObject(Resource):
    """One object of the API server. `TYPE` is group/version/plural without an empty group: "apps/v1/daemonsets".

    Its `id` is the reference that findings contain and exceptions match: "apps/v1/DaemonSet kube-system/cilium", and
    for objects without a namespace "v1/Node aks-gpu-0".
    """

    SOURCE: ClassVar[Source] = "kube"
    WRAPPED: ClassVar[bool] = False
    KIND: ClassVar[str]
    NAMESPACED: ClassVar[bool] = True
    ALSO_SERVED_AS: ClassVar[tuple[str, ...]] = ()
    """Other versions of the kind that have the same fields, as far as they are read; the newest first."""

    metadata: Metadata = Metadata()

    @classmethod
    def read(cls, body: Body) -> Self:
        """Parse the fact of an answer; its id is its reference."""
        manifest = body.value  # once: it may be parsed at each access
        value = {key: field for key, field in manifest.items() if key not in {"id", "name"}}
        return super().read(Body({**value, "id": reference(cls, manifest)}, body.evidence))

    @classmethod
    def is_relevant(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """Whether what is kept of an object can matter to a check; otherwise the object is dropped."""
        return True

    @property
    def namespace(self) -> str:
        """Its namespace; "" for a cluster-scoped object."""
        return self.metadata.namespace

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels as written."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations that were kept, as written."""
        return self.metadata.annotations or {}

    def writer(self, *field_paths: Place) -> str:
        """The last writer of the first of these places, else of the object, in one bounded line; "" where unknown."""
        try:
            entries = self.metadata.managed_fields or ()
            return last_writer([_as_written(entry) for entry in entries], *field_paths)
        except FactDamaged:
            return ""


K = TypeVar("K", bound=KubernetesObject)

DECLARED: list[type[KubernetesObject]] = []
"""Every kind that `api_object` declares."""


def api_object(
    kind: str, name: str, *, namespaced: bool = True, also_served_as: tuple[str, ...] = ()
) -> Callable[[type[K]], type[K]]:
    """Declare the decorated model as that of a kind, to be listed: group/version/plural and the name of the kind."""

    def declare(model: type[K]) -> type[K]:
        model.TYPE, model.KIND, model.NAMESPACED, model.ALSO_SERVED_AS = kind, name, namespaced, also_served_as
        DECLARED.append(model)
        return model

    return declare


def _as_written(entry: ManagedFields) -> dict[str, Any]:
    named = entry.model_dump(exclude_none=True, exclude={"fields_v1"})
    return named if entry.fields_v1 is None else {**named, "fieldsV1": entry.fields_v1}


def reference(kind: type[KubernetesObject], manifest: Mapping[str, Any]) -> str:
    """ "v1/Service inference/llama" from a manifest."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return reference_to(kind, str(named.get("namespace") or ""), str(named.get("name") or "(no name)"))


def reference_to(kind: type[KubernetesObject], namespace: str, name: str) -> str:
    """ "v1/Namespace inference" from a name."""
    return f"{kind.TYPE.rpartition('/')[0]}/{kind.KIND} {namespace + '/' if namespace else ''}{name}"

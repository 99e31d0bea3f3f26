"""Pod templates that no pod shows now, and that may run later.

The controller is scaled to zero or suspended; its pods were not scheduled, or were refused by a quota or an admission
policy; or its template is newer than its pods, as when it is changed while paused. Where the latest template has pods,
the pods are evaluated: of that controller only who wrote it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hermetic.audit.estate.kubernetes.objects import KubernetesObject, Metadata, OwnerReference, Trimmed, api_object
from hermetic.audit.estate.kubernetes.pods import Pod, PodCondition, PodSpec, PodStatus
from hermetic.audit.estate.kubernetes.volumes import without_plain_volumes
from hermetic.audit.estate.resource import Part
from hermetic.errors import FactDamaged


class PodTemplate(Trimmed):
    metadata: Metadata = Metadata()
    spec: PodSpec | None = None

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Reduce it as a pod's spec is."""
        spec = fields.get("spec")
        return {**fields, "spec": without_plain_volumes(spec)} if isinstance(spec, Mapping) else fields


class ControllerSpec(Part):
    """The number of pods, and their template."""

    replicas: int | None = None
    paused: bool | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    template: PodTemplate | None = None


class ControllerStatus(Part):
    """Number of pods of the latest template, in the field of each kind. Not kept, because it changes constantly.

    Of a DaemonSet that keeps its template, `desired_number_scheduled` is kept: the number of nodes that it selects.
    """

    replicas: int | None = None
    updated_replicas: int | None = None
    updated_number_scheduled: int | None = None
    desired_number_scheduled: int | None = None
    active: int | None = None
    conditions: list[PodCondition] | None = None


class Controller(Trimmed, KubernetesObject):
    """The common fields of the kinds. `COUNTED` is the status field that counts pods of the latest template."""

    COUNTED: ClassVar[str] = "updatedReplicas"

    spec: ControllerSpec = ControllerSpec()
    status: ControllerStatus = ControllerStatus()

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop the status, and the template where it has pods."""
        spec, status = fields.get("spec"), fields.get("status")
        other_fields = {key: value for key, value in fields.items() if key != "status"}
        if not isinstance(spec, Mapping) or cls.rests(spec, status if isinstance(status, Mapping) else {}):
            return other_fields
        return {**other_fields, "spec": {}, "metadata": cls._signature(fields.get("metadata"))}

    @staticmethod
    def _signature(metadata: Any) -> Any:
        """Its identity and its field managers; of an object made by another controller without the latter."""
        if not isinstance(metadata, Mapping):
            return metadata
        owners = metadata.get("ownerReferences")
        owned = isinstance(owners, list) and any(
            isinstance(owner, Mapping) and owner.get("controller") for owner in owners
        )
        read = {"name", "namespace"} if owned else {"name", "namespace", "managedFields"}
        return {key: value for key, value in metadata.items() if key in read}

    @classmethod
    def rests(cls, spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
        """Whether its latest template may have no pod: zero replicas, or none counted in the status."""
        return spec.get("replicas") == 0 or not status.get(cls.COUNTED)

    @classmethod
    def is_relevant(cls, fields: Mapping[str, Any]) -> bool:
        """False where neither a template nor field managers were kept."""
        spec, metadata = fields.get("spec"), fields.get("metadata")
        signed = isinstance(metadata, Mapping) and bool(metadata.get("managedFields"))
        return not isinstance(spec, Mapping) or bool(spec) or signed

    @property
    def template(self) -> PodTemplate | None:
        """The template, where it was kept."""
        return self.spec.template


@api_object("apps/v1/deployments", "Deployment")
class Deployment(Controller):
    pass


@api_object("apps/v1/statefulsets", "StatefulSet")
class StatefulSet(Controller):
    pass


@api_object("apps/v1/replicasets", "ReplicaSet")
class ReplicaSet(Controller):
    """Nothing is kept of a Deployment's: the Deployment has the template that runs next."""

    COUNTED: ClassVar[str] = "replicas"

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Drop the template, where a Deployment made it."""
        metadata = fields.get("metadata")
        owners = metadata.get("ownerReferences") if isinstance(metadata, Mapping) else None
        is_deployments = isinstance(owners, list) and any(_is_a_deployment(owner) for owner in owners)
        return super().trimmed({**fields, "spec": {}, "status": {"replicas": 1}} if is_deployments else fields)


@api_object("v1/replicationcontrollers", "ReplicationController")
class ReplicationController(Controller):
    COUNTED: ClassVar[str] = "replicas"


@api_object("apps/v1/daemonsets", "DaemonSet")
class DaemonSet(Controller):
    """All are kept: the name of one identifies a policy engine."""

    COUNTED: ClassVar[str] = "updatedNumberScheduled"

    @classmethod
    def trimmed(cls, fields: dict[str, Any]) -> dict[str, Any]:
        """Keep the number of nodes that it selects beside its template."""
        trimmed, status = super().trimmed(fields), fields.get("status")
        if not trimmed.get("spec") or not isinstance(status, Mapping) or "desiredNumberScheduled" not in status:
            return trimmed
        return {**trimmed, "status": {"desiredNumberScheduled": status["desiredNumberScheduled"]}}

    @classmethod
    def is_relevant(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003
        """True: its name matters."""
        return True

    @property
    def waits_for_windows(self) -> bool:
        """Whether it selects nodes of Windows and no other, and its controller counts none: it has no pod.

        False where a field cannot be read.
        """
        try:
            spec, desired = (self.template or PodTemplate()).spec, self.status.desired_number_scheduled
            is_for_windows = spec is not None and spec.is_windows_only
        except FactDamaged:
            return False
        return is_for_windows and desired == 0


@api_object("batch/v1/jobs", "Job")
class Job(Controller):
    @classmethod
    def rests(cls, spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
        """Whether it is suspended, or waits for an external controller or another attempt. Not once it has ended.

        One without a status is new, and its controller is about to create its pods: False.
        """
        conditions = status.get("conditions")
        some = (
            [condition for condition in conditions if isinstance(condition, Mapping)]
            if isinstance(conditions, list)
            else []
        )
        if any(
            condition.get("type") in {"Complete", "Failed"} and condition.get("status") == "True" for condition in some
        ):
            return False
        waits = bool(status) or bool(spec.get("managedBy"))
        return bool(spec.get("suspend")) or (waits and not status.get("active"))


class JobTemplate(Part):
    """The template of a CronJob's Jobs."""

    spec: ControllerSpec = ControllerSpec()


class CronJobSpec(Part):
    """A CronJob has pods at scheduled times only: its template always counts."""

    job_template: JobTemplate = JobTemplate()


@api_object("batch/v1/cronjobs", "CronJob")
class CronJob(KubernetesObject):
    spec: CronJobSpec = CronJobSpec()

    @property
    def template(self) -> PodTemplate | None:
        return self.spec.job_template.spec.template


Resting = Deployment | StatefulSet | ReplicaSet | ReplicationController | DaemonSet | Job | CronJob


CONTROLLERS: tuple[type[Resting], ...] = (
    Deployment,
    StatefulSet,
    ReplicaSet,
    ReplicationController,
    DaemonSet,
    Job,
    CronJob,
)


def as_pod(controller: Resting) -> Pod | None:
    """The pod that a template would create, named by its controller; None where the template was not kept."""
    owner = OwnerReference.model_construct(
        api_version=controller.TYPE.rpartition("/")[0],
        kind=controller.KIND,
        name=controller.metadata.name,
        controller=True,
    )
    try:
        template = controller.template
        if template is None:
            return None
        spec, metadata = template.spec or PodSpec(), template.metadata
        return _pod(controller, owner, labels=metadata.labels, annotations=metadata.annotations, spec=spec)
    except FactDamaged as damage:
        pod = _pod(controller, owner, labels=None, annotations=None, spec=PodSpec())
        for field in ("spec", "metadata"):
            pod.lose(field, damage)
        return pod


def _is_a_deployment(owner: Any) -> bool:
    if not isinstance(owner, Mapping) or not owner.get("controller"):
        return False
    return owner.get("kind") == "Deployment" and str(owner.get("apiVersion", "")).startswith("apps/")


def _pod(controller: Resting, owner: OwnerReference, *, spec: PodSpec, **metadata_fields: Any) -> Pod:
    metadata = Metadata.model_construct(
        name=controller.metadata.name,
        namespace=controller.namespace,
        owner_references=[owner],
        managed_fields=controller.metadata.managed_fields,
        **metadata_fields,
    )
    return Pod.model_construct(id=controller.id, name="", metadata=metadata, spec=spec, status=PodStatus()).seen_by(
        controller.evidence
    )

"""Whether the live template and the live pods run what was rendered, container by container."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, get_args

from hermetic.api.text import one_line
from hermetic.engines.launch import InitContainerName
from hermetic.objects.names import MANAGED_BY, Owner, selector, template_of
from hermetic.objects.pod import ENGINE
from hermetic.objects.weights_verifier import VERIFIER
from hermetic.objects.workloads.registry import is_controlled, member_labels
from hermetic.objects.workloads.workload_kind import Workload
from hermetic.plan.allowed_sources import image_is_allowed
from hermetic.plan.snapshot import ClusterSnapshot
from hermetic.plan.tampering.container_digests import containers, contents, differing
from hermetic.plan.tampering.field_owners import FieldStep, spelled, writers
from hermetic.plan.tampering.foreign_fields import lasting

OURS = {"containers": {ENGINE}, "initContainers": {*get_args(InitContainerName)}}
"""The containers of each kind that are rendered."""
ROLLED_OUT = timedelta(minutes=1)
"""How long after a rollout a pod of an earlier template may still be seen: the watches of kinds are not in step."""

PODS_TRUNCATED = (
    "more pods of others have the label or the ServiceAccount of this model than are read: delete them, and allow "
    "in this namespace no pods but those of controllers to have them"
)


@dataclass(frozen=True, slots=True)
class Strange:
    """Something in a template or pod that was not rendered; `of_image`: a container or an image, else another field."""

    message: str
    of_image: bool


def strange(snapshot: ClusterSnapshot, now: datetime) -> Strange | None:
    """The first thing in the template or in a pod that was not rendered, containers and images first."""
    differences = tuple(_everything(snapshot, now))
    return next((difference for difference in differences if difference.of_image), next(iter(differences), None))


def contents_by_mark(workload: Workload) -> dict[str, dict[str, Any]]:
    """The contents of each live template, by its mark; of an absent one, by ""."""
    return {template_of(part.template): contents(part.template.get("spec") or {}) for part in workload.parts}


def rolled_out_at(snapshot: ClusterSnapshot) -> datetime | None:
    """When pods of earlier templates must be gone after the last rollout; None while a rollout is in progress."""
    completed_at = snapshot.workload.rollout.completed_at
    return None if completed_at is None else completed_at + ROLLED_OUT


def is_left_over(pod: Mapping[str, Any], snapshot: ClusterSnapshot) -> bool:
    """Whether a pod still runs and is not of the present template."""
    workload = snapshot.workload
    ended = has_ended(pod) or "deletionTimestamp" in pod["metadata"]
    return (
        not ended
        and bool(workload.template)
        and not any(template_of(pod) == template_of(part.template) for part in workload.parts)
    )


def all_of(template: Mapping[str, Any], snapshot: ClusterSnapshot) -> bool:
    """Whether pods run, and each is marked as one of this rendered template."""
    marks = {template_of(pod) for pod in running(snapshot)}
    return marks == {template_of(template)}


def running(snapshot: ClusterSnapshot) -> Iterator[Mapping[str, Any]]:
    """The pods that have not ended and are not being deleted."""
    return (pod for pod in snapshot.pods if not has_ended(pod) and "deletionTimestamp" not in pod["metadata"])


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether the pod's phase is final: none of its containers runs again."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def appears_rendered(pod: Mapping[str, Any], owner: Owner) -> bool:
    """Whether a pod has the account, the labels and the controller of the pods of a model."""
    account = (pod.get("spec") or {}).get("serviceAccountName")
    return account == owner.name and has_rendered_identity(pod, owner)


def has_rendered_identity(pod: Mapping[str, Any], owner: Owner) -> bool:
    """Whether a pod has the labels and the controller of the pods of a model."""
    return is_controlled(pod, owner) and not any(True for _ in _labels("", pod, owner))


def _everything(snapshot: ClusterSnapshot, now: datetime) -> Iterator[Strange]:
    workload, rolled_out = snapshot.workload, rolled_out_at(snapshot)
    subject, expected = f"{workload.kind_name} '{snapshot.owner.name}'", contents_by_mark(workload)
    for part in workload.parts:
        template = f"the template of {part.kind_name} '{part.name or snapshot.owner.name}'"
        yield from _images(template, expected[template_of(part.template)], snapshot)
    yield from _lasting(snapshot)
    if snapshot.pods_truncated:
        yield Strange(PODS_TRUNCATED, of_image=True)
    for pod in sorted(snapshot.pods, key=lambda pod: str(pod["metadata"]["name"])):
        content, where = pod.get("spec"), f"pod '{pod['metadata']['name']}'"
        if not content or has_ended(pod):
            continue
        yield from _images(where, content, snapshot)
        yield from _labels(where, pod, snapshot.owner)
        if not is_controlled(pod, snapshot.owner):
            controller = workload.kind.controller_of_pods(snapshot.owner)
            yield Strange(f"{where} is not controlled by {controller}", of_image=False)
        # A pod of an earlier template is being replaced, and that template is not known any more.
        if workload.is_present(pod):
            yield from _fields(where, content, expected[template_of(pod)])
        elif is_left_over(pod, snapshot) and rolled_out is not None and rolled_out <= now:
            message = f"{where} is not of the present template of {subject}, whose rollout is complete"
            yield Strange(message, of_image=False)


def _lasting(snapshot: ClusterSnapshot) -> Iterator[Strange]:
    for (kind, name), live in sorted(snapshot.children.items()):
        for steps in lasting(live):
            by = "".join(f", written by '{writer}' (field manager)" for writer in writers(live, steps)[:1])
            clause = (
                f"has {spelled(steps)}, which Hermetic did not render{by}, and which the API server does not let go"
            )
            yield Strange(f"{kind} '{one_line(name)}' {clause}: delete it, and it is made anew", of_image=False)


def _labels(where: str, pod: Mapping[str, Any], owner: Owner) -> Iterator[Strange]:
    """Whether the pod still has the labels that its Services and NetworkPolicies select."""
    metadata = pod["metadata"]
    for name, value in {**selector(owner), MANAGED_BY[0]: MANAGED_BY[1], **member_labels(pod, owner)}.items():
        if (metadata.get("labels") or {}).get(name) != value:
            by = writers(pod, (FieldStep("metadata"), FieldStep("labels"), FieldStep(name)))
            named = ", ".join(f"'{writer}'" for writer in by)
            wrote = f", written by {named} (field manager)" if named else ""
            lost = "; no NetworkPolicy of the model covers it" if name in selector(owner) else ""
            yield Strange(f"{where} does not have the label {name}={value}{wrote}{lost}", of_image=False)


def _images(where: str, content: Mapping[str, Any], snapshot: ClusterSnapshot) -> Iterator[Strange]:
    for kind, container in containers(content):
        name, image = one_line(container["name"]), one_line(container["image"])
        runs = f"{where} holds container '{name}' ({kind}) with image '{image}'"
        if container["name"] not in OURS.get(kind, ()):
            yield Strange(f"{runs}, which Hermetic did not render", of_image=True)
        elif "@sha256:" not in container["image"]:
            yield Strange(f"{runs}, which is not named by digest", of_image=True)
        elif container["name"] == VERIFIER and container["image"] in snapshot.policy.integrity.verifiers:
            continue
        elif not image_is_allowed(snapshot, container["image"]):
            yield Strange(f"{runs}, whose registry may not be used in this namespace", of_image=True)


def _fields(where: str, content: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Strange]:
    containers_of_template = {(kind, item["name"]): item for kind, item in containers(expected)}
    for kind, item in containers(content):
        template_container = containers_of_template.get((kind, item["name"]))
        if template_container is None:
            continue
        if item["image"] != template_container["image"]:
            image = one_line(item["image"])
            yield Strange(f"{where}: container '{item['name']}' has another image than its template: '{image}'", True)
        if fields := differing(item["marks"], template_container["marks"]):
            yield Strange(
                f"{where}: container '{item['name']}' differs from its template in: {', '.join(fields)}", False
            )
    if fields := differing(content["marks"], expected["marks"]):
        yield Strange(f"{where} differs from its template in: {', '.join(fields)}", False)

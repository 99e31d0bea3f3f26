"""Who last wrote the object of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hermetic.api.field_managers import JOB_TEMPLATE, TEMPLATE, Place
from hermetic.audit.estate.estate import Estate, derived
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.templates import CONTROLLERS, CronJob, Resting
from hermetic.audit.estate.observation import Observation
from hermetic.audit.estate.resource import Resource
from hermetic.errors import FactDamaged

_WORKLOADS = tuple(f"{kind.TYPE.rpartition('/')[0]}/{kind.KIND} " for kind in CONTROLLERS)


def writer_of(estate: Estate, resource: str, observations: Iterable[Observation], blames: Iterable[Place] = ()) -> str:
    """The last field manager of what is blamed, or of the object, in one bounded line; "" where unknown.

    `observations` are those of the finding. A finding about a workload rests on its pods, which a controller made: then
    the writer of its template is returned, and `blames` are places of the pod.
    """
    is_workload = resource.startswith(_WORKLOADS)
    field_paths = tuple(_in_template(resource, blames)) if is_workload else tuple(blames)
    blamed = (
        observation
        for observation in observations
        if isinstance(observation, Resource) and _is_about(observation, resource)
    )
    writer = next((observation.writer(*field_paths) for observation in blamed), "")
    if writer or not is_workload:
        return writer
    workload = _workloads(estate).get(resource)
    return "" if workload is None else workload.writer(*field_paths)


def _is_about(observation: Resource, resource: str) -> bool:
    try:
        return observation.id == resource
    except FactDamaged:
        return False


def _in_template(resource: str, blames: Iterable[Place]) -> Iterator[Place]:
    root = JOB_TEMPLATE if f"/{CronJob.KIND} " in resource else TEMPLATE
    yield from ((*root, *field_path) for field_path in blames)
    yield root


@derived
def _workloads(estate: Estate) -> Mapping[str, Resting]:
    return {workload.id: workload for kind in CONTROLLERS for workload in estate.every(kind, EVERYWHERE)}

"""Who last wrote the object of a finding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hermetic.api.field_managers import Place
from hermetic.audit.estate.estate import Estate
from hermetic.audit.estate.kubernetes.objects import EVERYWHERE
from hermetic.audit.estate.kubernetes.templates import CONTROLLERS
from hermetic.audit.estate.observation import Observation
from hermetic.audit.estate.resource import Resource

_WORKLOADS = tuple(f"{kind.TYPE.rpartition('/')[0]}/{kind.KIND} " for kind in CONTROLLERS)


def writer_of(estate: Estate, resource: str, looks: Iterable[Observation], blames: Iterable[Place] = ()) -> str:
    """The last field manager of what is blamed, or of the object, in one bounded line; "" where unknown.

    `looks` are the observations of the finding. A finding about a workload rests on its pods, which a controller made:
    then the writer of the workload itself is returned.
    """
    blamed = (look for look in looks if isinstance(look, Resource) and look.id == resource)
    found = next((one.writer(*blames) for one in blamed), "")
    if found or not resource.startswith(_WORKLOADS):
        return found
    return estate.once("writers of workloads", lambda: _of_workloads(estate)).get(resource, "")


def _of_workloads(estate: Estate) -> Mapping[str, str]:
    return {one.id: one.writer() for kind in CONTROLLERS for one in estate.every(kind, EVERYWHERE)}
